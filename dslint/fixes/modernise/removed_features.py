"""Keys of features that DeepSpeed took out: a run stops where one of them is there, even switched off.

deepspeed/runtime/config.py, _reject_removed_config_keys: some since 0.19.7, the others since 0.19.8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dslint.fixes.modernise.subject import ZERO, Plan, Subject
from dslint.runs.removed_keys import SWITCHES


@dataclass(frozen=True)
class Removed:
    """A feature that is gone.

    Attributes:
        since: the first release that refuses its key.
        did: what it did.
        instead: what there is today.
    """

    since: str
    did: str
    instead: str


FEATURES = {
    ("nebula",): Removed(
        "0.19.7",
        "checkpoints were written by a cloud's Nebula service",
        "they now go to the folder that the script gives to save_checkpoint; checkpoint.writer has faster writers",
    ),
    ("compression_training",): Removed(
        "0.19.7",
        "the model was quantized, pruned or thinned out while it trained",
        "it now trains as it is: compress it with another tool, or stay with DeepSpeed 0.19.6",
    ),
    ("quantize_training",): Removed(
        "0.19.7",
        "the weights got fewer and fewer bits while training went on",
        "they now keep their type: quantize with another tool, or stay with DeepSpeed 0.19.6",
    ),
    ("sparse_attention",): Removed(
        "0.19.7",
        "the script could ask for a layout of sparse attention",
        "the model must bring its own attention, such as PyTorch's flex_attention",
    ),
    ("sparse_gradients",): Removed(
        "0.19.8",
        "gradients of embeddings were sent in a sparse form",
        "they are now sent whole, with the same result; embeddings built with sparse=True are still sent sparse",
    ),
    ("eigenvalue",): Removed(
        "0.19.8",
        "eigenvalues steered quantize_training",
        "nothing is left that would use them",
    ),
    ("graph_harvesting",): Removed(
        "0.19.8",
        "the optimizer's work was recorded as CUDA graphs",
        "the results stay the same",
    ),
    ("curriculum_learning",): Removed(
        "0.19.8",
        "training began with short sequences",
        "they now have their full length from the start: shorten them in the data, or use "
        "data_efficiency.data_sampling.curriculum_learning, which has other keys",
    ),
    ("progressive_layer_drop",): Removed(
        "0.19.8",
        "layers were left out at random",
        "every layer is now computed in every step",
    ),
    (ZERO, "mics_shard_size"): Removed(
        "0.19.7",
        "weights were split over groups of ranks instead of all of them",
        "they are now split over all; zero_hpz_partition_size keeps a second copy for each group",
    ),
    (ZERO, "mics_hierarchical_params_gather"): Removed(
        "0.19.7",
        "MiCS gathered weights in two stages",
        "weights are gathered in one",
    ),
    (ZERO, "zeropp_loco_param"): Removed(
        "0.19.8",
        "errors of quantized gradients were fed back",
        "zero_quantized_gradients works without that",
    ),
}


def removed_features(subject: Subject) -> Iterator[Plan]:
    """Keys of removed features go: there is no other way to get past their refusal."""
    for path, feature in FEATURES.items():
        if subject.has(*path) and subject.is_from(feature.since):
            yield _without(subject, path, feature)


def _without(subject: Subject, path: tuple[str, ...], feature: Removed) -> Plan:
    if is_off(subject, path):
        return without_effect(subject, path, feature.since)
    text = f"taken out: DeepSpeed {feature.since} took the feature out ({feature.did}); {feature.instead}"
    return Plan("dropped", path, text, (subject.delete(*path),))


def is_off(subject: Subject, path: tuple[str, ...]) -> bool:
    """Whether the value of a removed feature's key switched it off."""
    value = subject.at(*path)
    return SWITCHES[path][1](value) if path in SWITCHES else not value


def without_effect(subject: Subject, path: tuple[str, ...], since: str) -> Plan:
    """A removed feature's key goes that did nothing."""
    text = f"taken out: it was switched off, and DeepSpeed {since} refuses the key even so"
    return Plan("carried over", path, text, (subject.delete(*path),))

"""Sections and keys of features that DeepSpeed took out: a run stops where one of them is there, even switched off.

deepspeed/runtime/config.py, _reject_removed_config_keys: some since 0.19.7, the others since 0.19.8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dslint.fixes.modernise.subject import ZERO, Plan, Subject, dotted, truth
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
    changes = (subject.delete(*path),)
    if _is_off(subject, path):
        text = f"taken out: it was switched off, and DeepSpeed {feature.since} refuses the key even so"
        return Plan("carried over", path, text, changes)
    text = f"taken out: DeepSpeed {feature.since} took the feature out ({feature.did}); {feature.instead}"
    return Plan("dropped", path, text, changes)


def _is_off(subject: Subject, path: tuple[str, ...]) -> bool:
    value = subject.at(*path)
    return SWITCHES[path][1](value) if path in SWITCHES else not value


AMP_REFUSED_SINCE = "0.19.8"


def apex_amp(subject: Subject) -> Iterator[Plan]:
    """`amp` becomes `torch_autocast` where Apex cast automatically; what it did otherwise is left.

    Refused since 0.19.8. Apex's O1, its default, ran listed operations in fp16 and scaled the loss; PyTorch's autocast
    took its place, and at stage 0 in fp16 DeepSpeed scales the loss as well (deepspeed/runtime/engine.py,
    torch_autocast_z0_gradscaler). amp did not go with ZeRO, fp16 or bf16 (_do_optimizer_sanity_check of 0.19.7).
    O0 was plain fp32; O2 and O3 cast the model itself, as the section fp16 does with other rules.
    """
    if not subject.is_from(AMP_REFUSED_SINCE) or not subject.has("amp"):
        return
    if _is_off(subject, ("amp",)):
        text = f"taken out: it was switched off, and DeepSpeed {AMP_REFUSED_SINCE} refuses the key even so"
        yield Plan("carried over", ("amp",), text, (subject.delete("amp"),))
    elif _casts_automatically(subject):
        section = {"enabled": True, "dtype": "fp16"}
        made = (subject.rename("amp", to="torch_autocast"), subject.set("torch_autocast", to=section))
        text = "is now `torch_autocast` in fp16, which took the place of Apex's O1; roundings may differ"
        yield Plan("carried over", ("amp",), text, made)
    else:
        text = (
            f"DeepSpeed {AMP_REFUSED_SINCE} refuses it, since Apex was taken out: choose fp16 (near to Apex's O2), bf16 "
            "or torch_autocast (near to O1)"
        )
        yield Plan("left", ("amp",), text)


def _casts_automatically(subject: Subject) -> bool:
    section = subject.section("amp")
    alone = not any(
        truth(subject.at(name, "enabled")) is not False for name in ("fp16", "bf16") if subject.has(name)
    )
    without_zero = subject.at(ZERO, "stage") in (None, 0) and not truth(subject.at(ZERO))
    plain = set(section) <= {"enabled", "opt_level"} and truth(section.get("enabled")) is True
    return plain and alone and without_zero and section.get("opt_level", "O1") == "O1" and _is_free(subject)


def _is_free(subject: Subject) -> bool:
    return not subject.has("torch_autocast")


ELASTICITY_REFUSED_SINCE = "0.19.8"


def elastic_batches(subject: Subject) -> Iterator[Plan]:
    """`elasticity` goes where it was off, or where the batch sizes stand beside it.

    Refused since 0.19.8. Switched on, it worked out the batch sizes (deepspeed/elasticity/elasticity.py of 0.19.7,
    compute_elastic_config), so that without it somebody must say them.
    """
    path = ("elasticity",)
    if not subject.is_from(ELASTICITY_REFUSED_SINCE) or not subject.has(*path):
        return
    has_sizes = subject.has("train_batch_size") or subject.has("train_micro_batch_size_per_gpu")
    if _is_off(subject, path):
        text = f"taken out: it was switched off, and DeepSpeed {ELASTICITY_REFUSED_SINCE} refuses the key even so"
        yield Plan("carried over", path, text, (subject.delete(*path),))
    elif has_sizes:
        text = (
            f"taken out: DeepSpeed {ELASTICITY_REFUSED_SINCE} took the feature out, which worked out the batch sizes; "
            "those that the config gives now count"
        )
        yield Plan("dropped", path, text, (subject.delete(*path),))
    else:
        text = (
            f"DeepSpeed {ELASTICITY_REFUSED_SINCE} refuses it: take it out, and give train_batch_size or "
            "train_micro_batch_size_per_gpu, which it worked out"
        )
        yield Plan("left", path, text)


_COMPILE_SINCE, _COMPILE_AGAIN = "0.14.4", "0.16.6"
_COMPILE_KEYS = ("enabled", "backend", "kwargs", "disable")


def compile_switches(subject: Subject) -> Iterator[Plan]:
    """The keys of `compile` that called torch.compile go.

    From 0.13.2 to 0.14.3 `enabled`, `backend` and `kwargs` had DeepSpeed compile the model
    (deepspeed/runtime/compiler.py, CompileConfig); then the section was ignored, and from 0.16.6 on it has other keys
    and refuses these (deepspeed/compile/config.py). `disable` was never read. The script calls engine.compile().
    """
    if not subject.is_from(_COMPILE_SINCE):
        return
    section = subject.section("compile")
    old = [name for name in _COMPILE_KEYS if name in section]
    if not old:
        return
    whole = len(old) == len(section)
    changes = [subject.delete("compile")] if whole else [subject.delete("compile", name) for name in old]
    path = ("compile",) if whole else ("compile", old[0])
    if truth(section.get("enabled")) or "disable" in section:
        text = (
            f"{_named(old)} taken out: DeepSpeed calls torch.compile since {_COMPILE_SINCE} only where the script "
            "calls engine.compile(backend=…, compile_kwargs=…)"
        )
        yield Plan("dropped", path, text, tuple(changes))
    else:
        text = (
            f"{_named(old)} taken out: nothing was compiled, and DeepSpeed {_COMPILE_AGAIN} refuses the old keys"
        )
        yield Plan("carried over", path, text, tuple(changes))


def _named(names: list[str]) -> str:
    return " and ".join(f"`{dotted(('compile', name))}`" for name in names)

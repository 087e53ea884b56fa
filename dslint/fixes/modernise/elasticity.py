"""Batch sizes that DeepSpeed worked out for a changing number of GPUs, until it took that out."""

from __future__ import annotations

from collections.abc import Iterator

from dslint.fixes.modernise.removed_features import is_off, without_effect
from dslint.fixes.modernise.subject import Plan, Subject

REFUSED_SINCE = "0.19.8"


def elastic_batches(subject: Subject) -> Iterator[Plan]:
    """`elasticity` goes where it was off, or where the batch sizes stand beside it.

    Refused since 0.19.8 (deepspeed/runtime/config.py, _reject_removed_config_keys). Switched on, it worked out the
    batch sizes (deepspeed/elasticity/elasticity.py of 0.19.7, compute_elastic_config), so that without it somebody
    must say them.
    """
    path = ("elasticity",)
    if not subject.is_from(REFUSED_SINCE) or not subject.has(*path):
        return
    if is_off(subject, path):
        yield without_effect(subject, path, REFUSED_SINCE)
    elif subject.has("train_batch_size") or subject.has("train_micro_batch_size_per_gpu"):
        text = (
            f"taken out: DeepSpeed {REFUSED_SINCE} took the feature out, which worked out the batch sizes; those "
            "that the config gives now count"
        )
        yield Plan("dropped", path, text, (subject.delete(*path),))
    else:
        text = (
            f"DeepSpeed {REFUSED_SINCE} refuses it: take it out, and give train_batch_size or "
            "train_micro_batch_size_per_gpu, which it worked out"
        )
        yield Plan("left", path, text)

"""The section `zero_optimization`: forms and keys of its first years."""

from __future__ import annotations

from collections.abc import Iterator

from dslint.fixes.modernise.subject import ZERO, Kind, Plan, Subject, truth

_OLD_BUCKET, _BUCKET = "allgather_size", "allgather_bucket_size"


def section_for_boolean(subject: Subject) -> Iterator[Plan]:
    """`zero_optimization: true` becomes a section with stage 1, false one with stage 0.

    DeepSpeed took the boolean for these from the beginning and still does, with a warning
    (deepspeed/runtime/zero/config.py, read_zero_config_deprecated); with true it reads the size of the buckets
    from `allgather_size`. Hugging Face stops at it with an AttributeError.
    """
    value = subject.at(ZERO)
    if not isinstance(value, bool):
        return
    section = {"stage": int(value)}
    size = subject.at(_OLD_BUCKET)
    if value and size is not None:
        section[_BUCKET] = size
    text = f"is now a section with stage {int(value)}, as DeepSpeed reads the old form"
    yield Plan("carried over", (ZERO,), text, (subject.set(ZERO, to=section),))


def old_bucket_size(subject: Subject) -> Iterator[Plan]:
    """`allgather_size` goes where it has no effect.

    It is read only for `zero_optimization: true` (deepspeed/runtime/zero/config.py, read_zero_config_deprecated),
    in 0.3.1 as in 0.19.8; a section has `allgather_bucket_size`.
    """
    if not subject.has(_OLD_BUCKET) or isinstance(subject.at(ZERO), bool):
        return
    is_said = subject.section(ZERO).get(_BUCKET) == subject.at(_OLD_BUCKET)
    kind: Kind = "carried over" if is_said else "dropped"
    why = (
        f"`{ZERO}.{_BUCKET}` says the same" if is_said else f"it had no effect; a section `{ZERO}` has `{_BUCKET}`"
    )
    yield Plan(kind, (_OLD_BUCKET,), f"taken out: {why}", (subject.delete(_OLD_BUCKET),))


def unused_switch(subject: Subject) -> Iterator[Plan]:
    """`disable_allgather` goes: it is parsed and never looked at.

    deepspeed/runtime/config.py, get_disable_allgather; in the releases from 0.3.1 to 0.19.8 nothing asks for it.
    """
    if subject.has("disable_allgather"):
        text = "taken out: DeepSpeed reads it and never looks at it"
        yield Plan("dropped", ("disable_allgather",), text, (subject.delete("disable_allgather"),))


def old_stage_1(subject: Subject) -> Iterator[Plan]:
    """`legacy_stage1: true` goes.

    From 0.4.0 to 0.5.8 it chose an older implementation of stage 1; from 0.5.9 on initialize raises an Exception
    for it (deepspeed/runtime/engine.py, DeepSpeedEngine._configure_zero_optimizer).
    """
    path = (ZERO, "legacy_stage1")
    if subject.is_from("0.5.9") and truth(subject.at(*path)):
        text = (
            "taken out: the older implementation of stage 1 is gone since DeepSpeed 0.5.9; the newer one computes "
            "the same, but doesn't load its checkpoints"
        )
        yield Plan("dropped", path, text, (subject.delete(*path),))

"""Values that DeepSpeed took once and refuses today."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dslint.fixes.modernise.subject import Plan, Subject, truth

_FLOOR = ("fp16", "min_loss_scale")
_WHOLE_SINCE = "0.17.1"
_POSITIVE_SINCE = "0.19.3"


def loss_scale_floor(subject: Subject) -> Iterator[Plan]:
    """A `min_loss_scale` below 1 becomes 1.

    Since 0.17.1 it must be a whole number (deepspeed/runtime/precision_config.py, DeepSpeedFP16Config), since
    0.19.3 a positive one while the loss scale is dynamic (_validate_dynamic_loss_scale_params). At the floor a
    further overflow ends the run (runtime/fp16/loss_scaler.py, DynamicLossScaler.update_scale).
    """
    value = subject.at(*_FLOOR)
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_refused(subject, value):
        return
    text = f"{value} is now 1, the lowest that DeepSpeed takes since {_since(value)}: the loss scale stops there"
    yield Plan("dropped", _FLOOR, text, (subject.set(*_FLOOR, to=1),))


def _since(value: float) -> str:
    return _POSITIVE_SINCE if _is_whole(value) else _WHOLE_SINCE


def _is_refused(subject: Subject, value: float) -> bool:
    if value >= 1 or not subject.is_from(_since(value)):
        return False
    is_dynamic = subject.at("fp16", "loss_scale") in (None, 0, "auto")
    is_on = truth(subject.at("fp16", "enabled")) is not False and subject.has("fp16", "enabled")
    return not _is_whole(value) or (is_dynamic and is_on)


def _is_whole(value: float) -> bool:
    return isinstance(value, int) or value.is_integer()


_COUNTS = {
    **dict.fromkeys(("WarmupLR", "WarmupDecayLR", "WarmupCosineLR"), ("warmup_num_steps", "0.19.3")),
    "LRRangeTest": ("lr_range_test_step_size", "0.19.4"),
}
_LEAST_WARMUP = 2


def whole_step_counts(subject: Subject) -> Iterator[Plan]:
    """Counts of steps become whole and positive.

    The warm-up takes no other since 0.19.3, LRRangeTest since 0.19.4 (deepspeed/runtime/lr_schedules.py). A
    warm-up of fewer than 2 steps counted as one of 2, and still does: WarmupLR and WarmupCosineLR take the larger.
    """
    name, since = _COUNTS.get(_text(subject.at("scheduler", "type")), ("", "0"))
    path = ("scheduler", "params", name)
    value = subject.at(*path) if name else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not subject.is_from(since):
        return
    if isinstance(value, int) and value > 0:
        return
    whole = _same_count(name, value)
    if whole is None:
        yield Plan("left", path, f"since DeepSpeed {since} only whole numbers from 1 on are taken: decide on one")
    else:
        text = (
            f"{value} is now {whole}, which means the same: since {since} only whole numbers from 1 on are taken"
        )
        yield Plan("carried over", path, text, (subject.set(*path, to=whole),))


def _same_count(name: str, value: float) -> int | None:
    return _LEAST_WARMUP if name == "warmup_num_steps" and value < _LEAST_WARMUP else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""

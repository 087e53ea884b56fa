"""Batch sizes as DeepSpeed completes them (deepspeed/runtime/config.py, _set_batch_related_parameters)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dslint.runs.unknown import UNDECIDABLE, Unknown

Amount = int | float | None | Unknown


@dataclass(frozen=True)
class Batch:
    """The three batch sizes; None where neither file nor arithmetic gives one.

    Attributes:
        train: samples an optimizer step over all data-parallel ranks.
        micro: samples a rank and forward pass.
        accumulation: forward passes an optimizer step.
    """

    train: Amount
    micro: Amount
    accumulation: Amount


def complete(train: Any, micro: Any, accumulation: Any, dp_size: Any) -> Batch:
    """Derives what is missing, with DeepSpeed's own (floor) divisions; dp_size in ranks."""
    train, micro, accumulation, ranks = (_amount(value) for value in (train, micro, accumulation, dp_size))
    if train is None and micro is None:
        return Batch(None, None, accumulation)
    if micro is None and accumulation is None:
        return Batch(train, _divide(train, ranks), 1)
    if train is None and accumulation is None:
        return Batch(_multiply(micro, ranks), micro, 1)
    if train is None:
        return Batch(_multiply(_multiply(micro, accumulation), ranks), micro, accumulation)
    if micro is None:
        return Batch(train, _divide(_divide(train, ranks), accumulation), accumulation)
    if accumulation is None:
        return Batch(train, micro, _divide(_divide(train, micro), ranks))
    return Batch(train, micro, accumulation)


def _amount(value: Any) -> Amount:
    if value is None or isinstance(value, (int, float, Unknown)):
        return value
    return UNDECIDABLE


def _multiply(left: Amount, right: Amount) -> Amount:
    doubt = _doubt(left, right)
    return doubt if doubt is not None else left * right  # type: ignore[operator]


def _divide(left: Amount, right: Amount) -> Amount:
    doubt = _doubt(left, right)
    if doubt is not None:
        return doubt
    return left // right if right else UNDECIDABLE  # type: ignore[operator]


def _doubt(left: Amount, right: Amount) -> Unknown | None:
    if isinstance(left, Unknown):
        return left | right if isinstance(right, Unknown) else left
    return right if isinstance(right, Unknown) else None


def is_fraction(value: Any) -> bool:
    """Whether a batch size is a number that isn't whole, which DeepSpeed doesn't notice."""
    return isinstance(value, float) and value != int(value)

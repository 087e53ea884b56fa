"""Batch sizes are completed as DeepSpeed completes them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dslint.runs.batch import Batch, complete
from dslint.runs.unknown import UNDECIDABLE, Unknown, needs

AMOUNT = st.none() | st.integers(1, 64)


def as_deepspeed(train: Any, micro: Any, accumulation: Any, ranks: int) -> tuple[Any, Any, Any] | None:
    """deepspeed/runtime/config.py, _set_batch_related_parameters, by trial."""
    kind = pytest.importorskip("deepspeed.runtime.config").DeepSpeedConfig
    config = kind.__new__(kind)
    config.train_batch_size = train
    config.train_micro_batch_size_per_gpu = micro
    config.gradient_accumulation_steps = accumulation
    config.world_size = ranks
    try:
        config._set_batch_related_parameters()
    except AssertionError:
        return None
    return config.train_batch_size, config.train_micro_batch_size_per_gpu, config.gradient_accumulation_steps


@pytest.mark.deepspeed
@settings(deadline=None)
@given(AMOUNT, AMOUNT, AMOUNT, st.sampled_from([1, 2, 3, 8]))
def test_any_three_numbers_are_completed_as_deepspeed_does(
    train: int | None, micro: int | None, accumulation: int | None, ranks: int
) -> None:
    theirs = as_deepspeed(train, micro, accumulation, ranks)
    ours = complete(train, micro, accumulation, ranks)
    if theirs is None:
        assert (ours.train, ours.micro) == (None, None)
    else:
        assert (ours.train, ours.micro, ours.accumulation) == theirs


def test_an_unknown_number_of_ranks_leaves_open_only_what_depends_on_it() -> None:
    unknown = needs("the number of GPUs (--gpus)")
    assert complete(64, 4, 2, unknown) == Batch(64, 4, 2)
    assert complete(64, 4, None, unknown) == Batch(64, 4, unknown)
    assert complete(None, 4, None, unknown) == Batch(unknown, 4, 1)
    assert isinstance(complete(64, None, None, unknown).micro, Unknown)


def test_texts_are_undecidable() -> None:
    assert complete("64", 4, None, 8).accumulation == UNDECIDABLE

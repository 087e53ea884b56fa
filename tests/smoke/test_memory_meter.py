"""Counting the memory of tensors."""

from __future__ import annotations

import pytest


@pytest.mark.deepspeed
@pytest.mark.parametrize(
    ("changes", "top"), [([], 0), ([5, -5, 3], 5), ([5, 3, -4, 10, -14], 14), ([-8, 4], 0), ([7], 7)]
)
def test_the_highest_level_counts(changes: list[int], top: int) -> None:
    from dslint.smoke.rank.memory_meter import highest

    assert highest(changes) == top

"""What a wrong value plainly stands for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dslint.runs.keys import KeyTable
from dslint.runs.meant import meant_value, plain_number
from dslint.runs.schema import load_schema

KEYS = KeyTable(load_schema())


def meant(key: str, value: Any) -> Any:
    node = KEYS.node(tuple(key.split(".")))
    assert node is not None
    return meant_value(value, node, KEYS)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("train_micro_batch_size_per_gpu", "16", 16),
        ("train_micro_batch_size_per_gpu", " 16 ", 16),
        ("zero_optimization.reduce_bucket_size", "5e8", 500_000_000),
        ("gradient_clipping", "1.5", 1.5),
        ("zero_optimization.offload_optimizer.device", "CPU", "cpu"),
        ("torch_autocast.enabled", "No", False),
        ("torch_autocast.enabled", "true", True),
        ("torch_autocast.enabled", 1, True),
        ("torch_autocast.enabled", {"enabled": False}, False),
        ("zero_optimization.overlap_comm", [False], False),
        ("bf16", True, {"enabled": True}),
        ("zero_optimization", 2, {"stage": 2}),
        ("zero_optimization", "1", {"stage": 1}),
    ],
)
def test_what_can_be_read_in_one_way_is_meant(key: str, value: Any, expected: Any) -> None:
    found = meant(key, value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("train_micro_batch_size_per_gpu", "-4"),
        ("train_micro_batch_size_per_gpu", "four"),
        ("train_micro_batch_size_per_gpu", None),
        ("train_micro_batch_size_per_gpu", "AUTO"),
        ("zero_optimization.stage", 4),
        ("zero_optimization", 4),
        ("zero_optimization.offload_optimizer.device", "gpu"),
        ("torch_autocast.enabled", "sometimes"),
        ("scheduler", True),
        ("gradient_clipping", ["auto"]),
    ],
)
def test_what_can_be_read_in_several_ways_is_left_alone(key: str, value: Any) -> None:
    assert meant(key, value) is None


@pytest.mark.parametrize("text", ["", "1M", "1,000", "1_000", "0x10", "nan", "inf", "1e999", "\u0661", "9" * 50])
def test_other_texts_are_no_plain_numbers(text: str) -> None:
    assert plain_number(text) is None


@pytest.mark.parametrize("value", [True, None, {}, [], [1, 2], ["x"], float("nan"), float("inf")])
def test_other_values_are_no_plain_numbers(value: Any) -> None:
    assert plain_number(value) is None


def test_a_list_of_one_stands_for_its_number() -> None:
    assert plain_number([0.001]) == 0.001
    assert plain_number(["2"]) == 2


@given(st.integers(-(10**15), 10**15) | st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_in_quotes_is_that_number(number: float) -> None:
    assert plain_number(str(number)) == number


@given(st.text(max_size=50) | st.floats() | st.integers() | st.lists(st.none() | st.text(max_size=3)))
def test_any_value_gets_an_answer(value: Any) -> None:
    found = plain_number(value)
    assert found is None or float("-inf") < found < float("inf")

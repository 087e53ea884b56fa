"""Did-you-mean for keys: sure where an error stands on it, silent where two things are just alike."""

from __future__ import annotations

import pytest

from dslint.runs.near_names import Near, near_name
from dslint.runs.schema import load_schema

TOP = list(load_schema()["properties"])


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("zero_optimisation", "zero_optimization"),
        ("Zero_Optimization", "zero_optimization"),
        ("zero-optimization", "zero_optimization"),
        ("gradient_cliping", "gradient_clipping"),
        ("gradient_acumulation_steps", "gradient_accumulation_steps"),
        ("gradient_accumulation", "gradient_accumulation_steps"),
        ("micro_batch_size_per_gpu", "train_micro_batch_size_per_gpu"),
        ("train_batchsize", "train_batch_size"),
        ("otpimizer", "optimizer"),
    ],
)
def test_slips_and_other_spellings_are_recognised(written: str, meant: str) -> None:
    assert near_name(written, TOP) == Near(meant, is_slip=True)


@pytest.mark.parametrize("written", ["fp32", "fp8", "int8", "log", "warmup", "min_lr", "model_path", "backend"])
def test_other_words_are_no_slips(written: str) -> None:
    assert near_name(written, TOP) is None


@pytest.mark.parametrize(
    ("written", "meant"), [("max_grad_norm", "gradient_clipping"), ("zero_stage", "zero_optimization")]
)
def test_words_of_other_tools_are_known_but_no_slips(written: str, meant: str) -> None:
    assert near_name(written, TOP) == Near(meant, is_slip=False)


def test_no_known_key_is_a_slip_of_another() -> None:
    for key in TOP:
        others = [other for other in TOP if other != key]
        near = near_name(key, others)
        assert (
            near is None or not near.is_slip or near.key in ("bf16", "bfloat16") or _are_siblings(key, near.key)
        ), (
            key,
            near,
        )


def _are_siblings(one: str, other: str) -> bool:
    """Keys that really exist beside each other under similar names."""
    return one in other or other in one

"""init_inference: what is reported, and the correct scripts that look much the same."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from tests.runs.judging import codes

START = """
import deepspeed
import torch
from helpers import net, args, words
"""


def found(script: str, **case: Any) -> list[str]:
    return codes("DS682", "DS683", "DS684", "DS685", "DS686", "DS687", "DS688", script=START + script, **case)


@pytest.mark.parametrize(
    "given",
    [
        'config={"dtype": torch.half}, dtype=torch.float16',
        'config={"dtype": "fp16"}, replace_with_kernel_inject=True',
        'config={"dtype": args.dtype}, dtype=torch.float16',
        'config={"max_out_tokens": 5}, max_out_tokens=5',
        'config="inference.json", dtype=torch.float16',
        "config=args.config, dtype=torch.float16",
    ],
)
def test_settings_that_may_agree(given: str) -> None:
    assert found(f"engine = deepspeed.init_inference(net, {given})\n") == []


@pytest.mark.parametrize(
    "given",
    [
        'config={"dtype": torch.bfloat16}, dtype=torch.float16',
        'config={"max_out_tokens": 5}, max_out_tokens=6',
        'config={"dtype": "fp32"}, dtype=torch.float32',
    ],
)
def test_settings_that_differ(given: str) -> None:
    assert found(f"engine = deepspeed.init_inference(net, {given})\n") == ["DS682"]


def test_names_of_every_kind_are_known() -> None:
    given = "kernel_inject=False, tp={'tp_size': 1}, injection_dict=args.policy, max_tokens=9, mpu=None, ckpt_config={}"
    assert found(f"engine = deepspeed.init_inference(net, {given})\n") == []
    assert found("engine = deepspeed.init_inference(model=net, **args.settings)\n") == []
    assert found("engine = deepspeed.init_inference(net, dtypes=torch.half)\n") == ["DS684"]


def test_a_key_that_is_set_under_a_condition_only_may_be_missing() -> None:
    script = """
config = {"dtype": torch.half}
if args.odd:
    config["oddity"] = 1
engine = deepspeed.init_inference(net, config=config)
"""
    assert found(script) == []


def test_the_module_inside_of_the_engine_may_be_trained() -> None:
    script = """
engine = deepspeed.init_inference(net)
loss = engine(words)
loss.backward()
optimizer.step()
engine.module.step()
other, *_ = deepspeed.initialize(model=net, config="ds_config.json")
other.backward(other(words))
"""
    assert found(script) == []


def test_one_variable_for_two_engines() -> None:
    script = """
if args.train:
    engine, *_ = deepspeed.initialize(model=net, config="ds_config.json")
else:
    engine = deepspeed.init_inference(net)
if args.train:
    engine.backward(engine(words))
"""
    assert found(script) == []


@pytest.mark.parametrize(("beams", "expected"), [("1", []), ("args.beams", []), ("4", ["DS685"])])
def test_beams(beams: str, expected: list[str]) -> None:
    script = f"engine = deepspeed.init_inference(net)\nengine.generate(words, num_beams={beams})\n"
    assert found(script) == expected
    assert found(f"deepspeed.init_inference(net).module.generate(words, num_beams={beams})\n") == []


def test_a_policy_without_kernels_and_kernels_without_a_policy() -> None:
    assert found("engine = deepspeed.init_inference(net, injection_policy={net: ('a',)})\n") == []
    assert found("engine = deepspeed.init_inference(net, injection_policy=None, kernel_inject=True)\n") == []
    assert found("engine = deepspeed.init_inference(net, injection_policy={net: 1}, kernel_inject=args.k)\n") == []
    assert found("engine = deepspeed.init_inference(net, injection_policy={net: 1}, kernel_inject=True)\n") == [
        "DS687"
    ]


@pytest.mark.parametrize(
    ("given", "gpus", "expected"),
    [
        ("tensor_parallel={'tp_size': 4}", 2, ["DS688"]),
        ("mp_size=4", 2, ["DS688"]),
        ("tensor_parallel={'tp_size': 4}", 4, []),
        ("tensor_parallel={'tp_size': args.size}", 2, []),
        ("tensor_parallel={}", 1, []),
        ("tensor_parallel=args.tp", 1, []),
    ],
)
def test_sizes_against_ranks(given: str, gpus: int, expected: list[str]) -> None:
    assert found(f"engine = deepspeed.init_inference(net, {given})\n", gpus=gpus) == expected


def test_the_engine_goes_into_one_name() -> None:
    assert found("engine = deepspeed.init_inference(net)\nengine, tokens = engine, 1\n") == []
    assert found(textwrap.dedent("engine, *rest = deepspeed.init_inference(net)\n")) == []

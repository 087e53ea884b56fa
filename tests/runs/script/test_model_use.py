"""Models of Transformers on DeepSpeed's own engine: generation out of step, embeddings resized too late."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runs.judging import codes

START = """
import deepspeed
from transformers import AutoModelForCausalLM
from transformers.integrations import HfDeepSpeedConfig
from helpers import anything, name, rows, tokenizer
model = AutoModelForCausalLM.from_pretrained(name)
"""
ENGINE = 'engine, *_ = deepspeed.initialize(model=model, config="ds_config.json")\n'


def found(text: str, stage: int = 3, **case: Any) -> list[str]:
    config = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": stage}}
    return codes("DS746", "DS747", script=START + text, config=config, **case)


@pytest.mark.parametrize(
    "call", ["engine.module.generate(rows)", "model.generate(rows)", "model.generate(rows, synced_gpus=False)"]
)
def test_generation_out_of_step_under_stage_3(call: str) -> None:
    assert found(ENGINE + call + "\n", gpus=2) == ["DS746"]
    assert found(ENGINE + call + "\n", stage=2, gpus=2) == []
    assert found(ENGINE + call + "\n", gpus=1) == []


@pytest.mark.parametrize(
    "text",
    [
        ENGINE + "model.generate(rows, synced_gpus=True)\n",
        ENGINE + "model.generate(rows, synced_gpus=anything())\n",
        ENGINE + "model.generate(rows, **anything())\n",
        "kept = HfDeepSpeedConfig('ds_config.json')\n" + ENGINE + "model.generate(rows)\n",
        "model.generate(rows)\n" + ENGINE,
        ENGINE + "with deepspeed.zero.GatheredParameters(model.parameters()):\n    model.generate(rows)\n",
        ENGINE + "other = AutoModelForCausalLM.from_pretrained(name)\nother.generate(rows)\n",
        ENGINE + "if anything().zero_stage < 3:\n    model.generate(rows)\n",
        ENGINE + "anything().generate(rows)\n",
    ],
)
def test_generation_in_step_or_elsewhere_is_silent(text: str) -> None:
    assert found(text, gpus=2) == []


def test_embeddings_resized_after_initialize() -> None:
    assert found(ENGINE + "model.resize_token_embeddings(80)\n", stage=2) == ["DS747"]
    assert found(ENGINE + "model.resize_token_embeddings(80)\n", stage=0) == []


@pytest.mark.parametrize(
    "text",
    [
        "model.resize_token_embeddings(80)\n" + ENGINE,
        ENGINE + "if len(tokenizer) > 80:\n    model.resize_token_embeddings(len(tokenizer))\n",
        ENGINE + "other = AutoModelForCausalLM.from_pretrained(name)\nother.resize_token_embeddings(80)\n",
        "def grow(model):\n    model.resize_token_embeddings(80)\ngrow(model)\n" + ENGINE,
    ],
)
def test_embeddings_resized_in_time_or_elsewhere(text: str) -> None:
    assert found(text, stage=2) == []

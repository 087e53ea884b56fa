"""Facts about the keys of a config."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dslint.documents.config_reader import read_config
from dslint.documents.source import Source
from dslint.lint import facts_of
from dslint.runs.facts import Facts
from dslint.runs.run import Options, Run


def facts(config: dict[str, Any], loader: str | None = None) -> Facts:
    document = read_config(Source("ds_config.json", json.dumps(config).encode()))
    return facts_of(Run(document, None, Options(loader=loader), None))


@pytest.mark.parametrize(
    "config",
    [
        {"zero_optimization": {"prefetch_bucket_size": "auto"}},
        {"zero_optimization": {"gather_16bit_weights_on_model_save": "auto"}},
        {"bfloat16": {"enabled": "auto"}},
    ],
)
def test_nobody_fills_a_key_under_its_other_name(config: dict[str, Any]) -> None:
    of = facts(config)
    assert of.loader != "hf"
    assert len(facts(config, loader="hf").value("keys.unfilled_auto")) == 1


@pytest.mark.parametrize("key", ["steps_per_print", "zero_allow_untested_optimizer"])
def test_auto_below_a_key_that_accelerate_replaces_is_not_strange(key: str) -> None:
    assert facts({"train_batch_size": 1, key: {"x": "auto"}}, loader="hf").value("keys.strange_auto") == ()
    assert facts({"train_batch_size": 1, "other": {"x": "auto"}}, loader="hf").value("keys.strange_auto") != ()


@pytest.mark.parametrize(("value", "refused"), [("x", False), ([], False), (1, True), (None, True)])
def test_timers_may_be_whatever_can_hold_a_throughput(value: object, refused: bool) -> None:
    (item,) = facts({"train_batch_size": 1, "timers": value}).value("keys.wrong")
    assert item.fields["refused"] is refused


@pytest.mark.parametrize(
    ("value", "wrong"), [(True, False), (False, True), (0, True), (1.5, False), (None, False)]
)
def test_steps_per_print_may_be_true(value: object, wrong: bool) -> None:
    assert bool(facts({"train_batch_size": 1, "steps_per_print": value}).value("keys.wrong")) is wrong

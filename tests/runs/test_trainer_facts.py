"""Values that the Trainer compares with arguments that can't be equal to them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dslint.documents.config_reader import read_config
from dslint.documents.source import Source
from dslint.lint import facts_of
from dslint.runs.run import Options, Run


def unmatchable(section: str, **params: Any) -> list[str]:
    text = json.dumps({section: {"params": params}})
    document = read_config(Source("ds_config.json", text.encode()))
    facts = facts_of(Run(document, None, Options(loader="hf"), None))
    return [item.fields["key"] for item in facts.value("trainer.unmatchable")]


@pytest.mark.parametrize("value", ["1e-5", [0.1], {}])
def test_a_rate_that_is_no_number_is_none_that_the_trainer_has(value: object) -> None:
    assert unmatchable("optimizer", lr=value) == ["optimizer.params.lr"]
    assert unmatchable("scheduler", warmup_max_lr=value) == ["scheduler.params.warmup_max_lr"]


@pytest.mark.parametrize("value", ["auto", 0.1, 0, True, None])
def test_a_number_or_what_is_filled_can_be_equal(value: object) -> None:
    assert unmatchable("optimizer", lr=value, eps=value, weight_decay=value) == []


@pytest.mark.parametrize(("value", "cannot"), [(0, True), (-1, True), (False, True), (1, False), ("auto", False)])
def test_the_trainer_takes_at_least_one_step(value: object, cannot: bool) -> None:
    assert bool(unmatchable("scheduler", total_num_steps=value)) is cannot


def test_a_placeholder_may_be_anything() -> None:
    document = read_config(Source("ds_config.json", b'{"optimizer": {"params": {"lr": ${RATE}}}}'))
    facts = facts_of(Run(document, None, Options(loader="hf"), None))
    assert facts.value("trainer.unmatchable") == ()


@pytest.mark.parametrize(("text", "value"), [("true", True), ("False", False), ("1", True)])
def test_a_switch_in_quotes_is_found_with_what_deepspeed_makes_of_it(text: str, value: bool) -> None:
    document = read_config(Source("ds_config.json", json.dumps({"bf16": {"enabled": text}}).encode()))
    (item,) = facts_of(Run(document, None, Options(loader="hf"), None)).value("trainer.text_switches")
    assert (item.fields["key"], item.fields["value"]) == ("bf16.enabled", value)
    assert document.source.slice(item.span) == f'"enabled": "{text}"'


@pytest.mark.parametrize("written", [{"fp16": {"enabled": "auto"}}, {"bf16": {"enabled": True}}, {"bf16": "true"}])
def test_what_the_trainer_can_compare_is_no_switch_in_quotes(written: dict[str, Any]) -> None:
    document = read_config(Source("ds_config.json", json.dumps(written).encode()))
    assert facts_of(Run(document, None, Options(loader="hf"), None)).value("trainer.text_switches") == ()

"""Facts about the optimizer and the scheduler of a config, with their places and advice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dslint.documents.config_reader import read_config
from dslint.documents.source import Source
from dslint.lint import facts_of
from dslint.runs.facts import Facts
from dslint.runs.run import Options, Run
from dslint.runs.unknown import Unknown


def facts(config: dict[str, Any], loader: str | None = None) -> Facts:
    document = read_config(Source("ds_config.json", json.dumps(config).encode()))
    return facts_of(Run(document, None, Options(loader=loader), None))


def optimizer(type_name: str, **params: Any) -> Facts:
    return facts({"optimizer": {"type": type_name, "params": params}})


def scheduler(type_name: str, **params: Any) -> Facts:
    return facts({"scheduler": {"type": type_name, "params": params}})


def found(facts: Facts, name: str) -> dict[str, str]:
    """The keys of a list fact, with their advice."""
    return {item.fields["key"]: item.fields["advice"] for item in facts.value(name)}


@pytest.mark.parametrize(
    ("type_name", "param", "advice"),
    [
        ("AdamW", "weight_deacy", ": did you mean `weight_decay`?"),
        ("AdamW", "beta1", ": did you mean `betas`?"),
        ("AdamW", "learning_rate", ": did you mean `lr`?"),
        ("SGD", "beta1", ""),  # SGD has no betas either
        ("SGD", "nestrov", ": did you mean `nesterov`?"),
        ("AdamW", "use_triton", ""),
    ],
)
def test_an_unknown_optimizer_parameter_gets_advice(type_name: str, param: str, advice: str) -> None:
    assert found(optimizer(type_name, lr=0.1, **{param: 1}), "optimizer.unknown_params") == {param: advice}


@pytest.mark.parametrize(
    ("type_name", "param", "advice"),
    [
        ("WarmupLR", "warmup_steps", ": did you mean `warmup_num_steps`?"),
        ("WarmupLR", "warmup_max_l", ": did you mean `warmup_max_lr`?"),
        ("WarmupLR", "total_steps", ""),  # WarmupLR has no end
        ("WarmupDecayLR", "total_steps", ": did you mean `total_num_steps`?"),
    ],
)
def test_an_unknown_scheduler_parameter_gets_advice(type_name: str, param: str, advice: str) -> None:
    assert found(scheduler(type_name, **{param: 1}), "scheduler.unknown_params") == {param: advice}


def test_a_parameter_shows_its_place() -> None:
    of = optimizer("AdamW", lr=0.1, beta1=0.9)
    (item,) = of.value("optimizer.unknown_params")
    assert item.source.slice(item.span) == '"beta1": 0.9'


@pytest.mark.parametrize(("type_name", "rate"), [("AdamW", 0.001), ("Adagrad", 0.01), ("Nonsense", None)])
def test_default_learning_rate(type_name: str, rate: float | None) -> None:
    assert optimizer(type_name).value("optimizer.default_lr") == rate


def test_without_an_optimizer_there_is_nothing_to_say() -> None:
    of = facts({"train_batch_size": 1})
    assert of.value("optimizer.kind") is None
    assert of.value("optimizer.default_lr") is None
    assert of.value("scheduler.kind") is None
    for name in ("optimizer.unknown_params", "optimizer.unfilled_auto", "scheduler.unfilled_auto"):
        assert of.value(name) == ()


def test_auto_that_the_trainer_does_not_fill() -> None:
    of = optimizer("SGD", lr="auto", momentum="auto", weight_decay="auto")
    assert list(found(of, "optimizer.unfilled_auto")) == ["momentum"]
    of = scheduler("OneCycle", cycle_min_lr="auto", total_num_steps="auto")
    assert list(found(of, "scheduler.unfilled_auto")) == ["cycle_min_lr"]


def test_numbers_as_text() -> None:
    assert list(found(optimizer("AdamW", lr="1e-5", eps="auto"), "optimizer.text_params")) == ["lr"]


def test_optimizer_values_that_are_no_numbers() -> None:
    of = optimizer("AdamW", lr=[0.1], eps=None, weight_decay={}, betas=None)
    assert list(found(of, "optimizer.not_numbers")) == ["lr", "eps", "weight_decay"]
    of = optimizer("Adafactor", lr=0.1, eps=[1e-30, 1e-3], weight_decay="0.1")
    assert found(of, "optimizer.not_numbers") == {}
    assert facts({"optimizer": None}).value("optimizer.not_numbers") == ()


def test_scheduler_values_that_are_no_numbers() -> None:
    of = scheduler("WarmupDecayLR", warmup_max_lr="0.1", warmup_min_lr=0, total_num_steps="auto")
    assert list(found(of, "scheduler.not_numbers")) == ["warmup_max_lr"]
    assert facts({"scheduler": {"params": {"warmup_max_lr": "0.1"}}}).value("scheduler.not_numbers") == ()


@pytest.mark.parametrize(
    ("number", "has_fraction"), [("100", False), ("100.0", True), ("1e2", True), ("1E2", True), ("0.5", False)]
)
def test_step_counts_that_are_a_fraction_for_json_alone(number: str, has_fraction: bool) -> None:
    text = f'{{"scheduler": {{"type": "WarmupLR", "params": {{"warmup_num_steps": {number}}}}}}}'
    document = read_config(Source("ds_config.json", text.encode()))
    of = facts_of(Run(document, None, Options(), None))
    assert bool(of.value("scheduler.counts_with_fraction")) is has_fraction


def test_an_untested_optimizer_depends_on_the_stage() -> None:
    config = {"optimizer": {"type": "SGD", "params": {"lr": 0.1}}, "zero_optimization": {"stage": 1}}
    assert facts(config).value("optimizer.is_untested") is True
    assert facts({**config, "zero_optimization": {"stage": 0}}).value("optimizer.is_untested") is False
    assert isinstance(facts({**config, "optimizer": {"type": 7}}).value("optimizer.is_untested"), (Unknown, bool))


def test_an_auto_that_is_filled_is_unknown() -> None:
    of = facts({"optimizer": {"type": "AdamW", "params": {"torch_adam": "auto", "lr": "auto"}}}, loader="hf")
    assert isinstance(of.value("config.optimizer.params.lr"), Unknown)


def field(facts: Facts, name: str, field_name: str) -> Any:
    (item,) = facts.value(name)
    return item.fields[field_name]


@pytest.mark.parametrize(
    ("params", "new_name"),
    [
        ({"weight_deacy": 0.1}, "weight_decay"),
        ({"learning_rate": 0.1}, "lr"),
        ({"learning_rate": 0.1, "lr": 0.1}, None),  # the name is taken
        ({"beta1": 0.9}, None),  # betas are a list
        ({"adam_epsilon": "auto"}, "eps"),
        ({"nothing_like_it": 1}, None),
    ],
)
def test_a_parameter_gets_another_name_only_where_that_can_be_meant(
    params: dict[str, Any], new_name: str | None
) -> None:
    assert field(optimizer("AdamW", **params), "optimizer.unknown_params", "new_name") == new_name


def test_a_number_in_quotes_is_known() -> None:
    assert field(optimizer("AdamW", lr="1e-5"), "optimizer.text_params", "number") == 1e-5
    assert field(optimizer("AdamW", lr="small"), "optimizer.text_params", "number") is None


@pytest.mark.parametrize(
    ("value", "total", "steps"),
    [
        (0, 100, 1),
        ("10", 100, 10),
        (0.1, 100, 10),
        (0.001, 100, 1),
        (0.1, "auto", None),  # a share of nobody knows what
        (-1, 100, None),
        ("few", 100, None),
        (True, 100, None),
    ],
)
def test_warm_up_steps_that_are_plainly_meant(value: Any, total: Any, steps: int | None) -> None:
    run = scheduler("WarmupDecayLR", warmup_num_steps=value, total_num_steps=total)
    items = run.value("scheduler.refused_values")
    assert [item.fields["steps"] for item in items] == ([] if value is True else [steps])

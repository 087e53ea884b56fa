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


def unknown(config: dict[str, Any], name: str = "keys.unknown") -> dict[str, Any]:
    (item,) = facts(config).value(name)
    return dict(item.fields)


@pytest.mark.parametrize(
    ("config", "new_name"),
    [
        ({"zero_optimisation": {"stage": 2}}, "zero_optimization"),
        ({"max_grad_norm": 1.0}, "gradient_clipping"),
        ({"zero_stage": 2}, None),  # zero_optimization takes no number
        ({"max_grad_norm": 1.0, "gradient_clipping": 1.0}, None),  # the name is taken
        ({"zero_optimization": {"overlap_com": True}}, "overlap_comm"),
        ({"zero_optimization": {"overlap_com": "auto"}}, None),  # the Trainer doesn't fill it
        ({"zero_optimization": {"reduce_buket_size": "auto"}}, "reduce_bucket_size"),
        ({"compile": {"enabled": True}}, None),  # it was removed
        ({"something": 1}, None),
    ],
)
def test_a_key_gets_another_name_only_where_that_can_be_meant(
    config: dict[str, Any], new_name: str | None
) -> None:
    assert unknown({"train_batch_size": 1, **config})["new_name"] == new_name


@pytest.mark.parametrize(
    ("config", "home"),
    [
        ({"reduce_bucket_size": 1}, "zero_optimization.reduce_bucket_size"),
        ({"reduce_bucket_size": 1, "zero_optimization": {"stage": 2}}, "zero_optimization.reduce_bucket_size"),
        ({"reduce_bucket_size": 1, "zero_optimization": True}, None),  # stage 1 would be lost
        ({"reduce_bucket_size": 1, "zero_optimization": {"reduce_bucket_size": 2}}, None),
        ({"check_grad_overflow": True, "bfloat16": {"enabled": True}}, None),  # bf16 or bfloat16
        ({"zero_optimization": {"zero_allow_untested_optimizer": True}}, "zero_allow_untested_optimizer"),
        ({"backend": "MPI"}, None),  # compile.backend was removed
        ({"something": 1}, None),
    ],
)
def test_a_key_moves_only_where_there_is_room_for_it(config: dict[str, Any], home: str | None) -> None:
    assert unknown({"train_batch_size": 1, **config})["home"] == home


@pytest.mark.parametrize(
    ("key", "new_name"),
    [
        ("gradient_cliping", "gradient_clipping"),
        ("max_grad_norm", "gradient_clipping"),
        ("zero_stage", None),
        ("learning_rate", None),
    ],
)
def test_a_strange_auto_gets_the_name_of_a_key_that_the_trainer_fills(key: str, new_name: str | None) -> None:
    assert unknown({"train_batch_size": 1, key: "auto"}, "keys.strange_auto")["new_name"] == new_name


def test_accelerate_has_defaults_of_its_own_for_an_auto() -> None:
    (item,) = facts({"zero_optimization": {"stage": "auto"}}).value("keys.unfilled_auto")
    assert (item.fields["accelerates"], item.fields["default"]) == (2, 0)


def test_a_value_inside_of_a_list_has_no_entry_to_set() -> None:
    params = {"lr": 0.001, "betas": ["0.9", 0.99]}
    found = facts({"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": params}}).value("keys.wrong")
    assert [item.fields["meant"] for item in found] == [None]


@pytest.mark.parametrize(("size", "below", "above"), [(1.5, 1, 2), (0.5, 0, 1)])
def test_a_fraction_of_a_batch_lies_between_two_whole_numbers(size: float, below: int, above: int) -> None:
    found = unknown({"train_micro_batch_size_per_gpu": size}, "batch_fractions")
    assert (found["below"], found["above"]) == (below, above)

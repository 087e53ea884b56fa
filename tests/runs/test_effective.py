"""Effective values: defaults by release, conversions, old names, "auto", placeholders."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dslint.documents.config_reader import read_config
from dslint.documents.source import Source
from dslint.runs.effective import EffectiveConfig
from dslint.runs.keys import KeyTable
from dslint.runs.schema import schema_for
from dslint.runs.unknown import UNDECIDABLE, Unknown


def config_of(value: Any, *, trainer: bool = False, release: tuple[int, ...] = (0, 19, 8)) -> EffectiveConfig:
    text = value if isinstance(value, str) else json.dumps(value)
    document = read_config(Source("ds_config.json", text.encode()))
    return EffectiveConfig(document, KeyTable(schema_for(release)), filled_by_trainer=trainer)


def value_of(value: Any, path: str, **options: Any) -> Any:
    return config_of(value, **options).value(tuple(path.split(".")))


STAGE = "zero_optimization.stage"
GATHER = "zero_optimization.stage3_gather_16bit_weights_on_model_save"


def test_an_absent_key_has_the_default_of_the_release() -> None:
    assert value_of({}, "gradient_clipping") == 1.0
    assert value_of({}, "gradient_clipping", release=(0, 19, 2)) == 0.0
    assert value_of({}, STAGE) == 0
    assert value_of({}, "train_batch_size") is None


@pytest.mark.parametrize(
    ("config", "path", "expected"),
    [
        ({"bf16": {"enabled": "true"}}, "bf16.enabled", True),
        ({"bf16": {"enabled": "Off"}}, "bf16.enabled", False),
        ({"zero_optimization": {"stage": "3"}}, STAGE, 3),
        ({"zero_optimization": {"stage": True}}, STAGE, 1),
        ({"zero_optimization": {"reduce_bucket_size": 5e8}}, "zero_optimization.reduce_bucket_size", 500_000_000),
        ({"zero_optimization": {"stage": "three"}}, STAGE, UNDECIDABLE),
        ({"zero_optimization": {"reduce_bucket_size": 0.5}}, "zero_optimization.reduce_bucket_size", UNDECIDABLE),
    ],
)
def test_typed_sections_convert_as_pydantic_does(config: Any, path: str, expected: Any) -> None:
    assert value_of(config, path) == expected


def test_plain_keys_stay_as_they_are() -> None:
    assert value_of({"train_batch_size": "8"}, "train_batch_size") == "8"


@pytest.mark.parametrize(
    ("config", "path", "expected"),
    [
        ({"zero_optimization": True}, STAGE, 1),
        ({"zero_optimization": False}, STAGE, 0),
        ({"zero_optimization": {"cpu_offload": True}}, "zero_optimization.offload_optimizer.device", "cpu"),
        ({"zero_optimization": {"cpu_offload": False}}, "zero_optimization.offload_optimizer.device", "none"),
        ({"zero_optimization": {"stage3_gather_fp16_weights_on_model_save": True}}, GATHER, True),
        ({"zero_optimization": {"gather_16bit_weights_on_model_save": True}}, GATHER, True),
        ({"bfloat16": {"enabled": True}}, "bf16.enabled", True),
        ({"bfloat16": {"enabled": True}, "bf16": {"enabled": False}}, "bf16.enabled", False),
    ],
)
def test_old_names_count_under_their_new_ones(config: Any, path: str, expected: Any) -> None:
    assert value_of(config, path) == expected
    assert config_of(config).given(tuple(path.split("."))) is True


def test_an_old_name_is_shown_where_it_stands() -> None:
    config = config_of({"zero_optimization": {"cpu_offload": True}})
    source, span = config.place(("zero_optimization", "offload_optimizer", "device"))
    assert source.slice(span) == '"cpu_offload": true'


def test_written_is_what_the_file_has_under_this_very_name() -> None:
    config = config_of({"zero_optimization": True})
    assert config.written(("zero_optimization",)) is True
    assert config.written(("zero_optimization", "stage")) is None


def test_auto_is_unknown_where_the_trainer_fills_it_and_the_default_where_nobody_does() -> None:
    auto = {
        "bf16": {"enabled": "auto"},
        "zero_optimization": {"stage3_gather_16bit_weights_on_model_save": "auto"},
    }
    assert isinstance(value_of(auto, "bf16.enabled", trainer=True), Unknown)
    assert value_of(auto, "bf16.enabled", trainer=False) is False
    assert value_of(auto, GATHER, trainer=True) is False
    assert value_of({"train_batch_size": "auto"}, "train_batch_size") == "auto"


def test_a_placeholder_is_unknown_and_so_is_all_inside_it() -> None:
    text = '{"zero_optimization": {\n"stage": ZERO_STAGE,\n"overlap_comm": true\n}}'
    assert value_of(text, STAGE) == UNDECIDABLE
    assert value_of(text, "zero_optimization.overlap_comm") is True
    assert value_of('{"zero_optimization": ZERO\n}', STAGE) == UNDECIDABLE


def test_a_section_that_is_none_says_nothing_about_its_keys() -> None:
    assert value_of({"fp16": True, "train_batch_size": 1}, "fp16.enabled") == UNDECIDABLE


def test_a_file_of_another_kind_has_no_values() -> None:
    assert value_of({"name": "x"}, STAGE) == UNDECIDABLE
    assert value_of("[1]", STAGE) == UNDECIDABLE


def test_an_absent_key_is_shown_at_the_section_around_it() -> None:
    config = config_of('{"fp16": {"enabled": true}}')
    source, span = config.place(("fp16", "loss_scale"))
    assert source.slice(span) == '"fp16": {"enabled": true}'
    source, span = config.place(("bf16", "enabled"))
    assert source.slice(span) == "{"

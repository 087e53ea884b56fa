"""The quick check of a config accepts nothing that jsonschema, the validator of record, rejects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dslint.runs.keys import KeyTable
from dslint.runs.schema import load_schema
from dslint.runs.schema_check import fits, wrong_values

SCHEMA = load_schema()
PATHS = [path for path in KeyTable(SCHEMA).paths() if len(path) < 4]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 5),
    st.sampled_from([2e8, 5e8, 0.5, -1.0, 1e-5, 10**9, 1e300, float("inf")]),
    st.sampled_from(
        ["auto", "true", "no", "5", "5e8", "0.5", "3", "cpu", "nvme", "fp16", "bf16", "x", "", "AUTO"]
    ),
)
VALUES = st.one_of(
    SCALARS, st.lists(SCALARS, max_size=3), st.dictionaries(st.sampled_from(["a", "enabled"]), SCALARS)
)


@st.composite
def configs(draw: Any) -> dict[str, Any]:
    """Configs with known keys and values of all kinds."""
    config: dict[str, Any] = {}
    for path in draw(st.lists(st.sampled_from(PATHS), max_size=6)):
        section = config
        for name in path[:-1]:
            if not isinstance(section.get(name), dict):
                section[name] = {}
            section = section[name]
        section[path[-1]] = draw(VALUES)
    return config


@settings(max_examples=1500, deadline=None)
@given(configs())
def test_what_the_quick_check_accepts_jsonschema_accepts(config: dict[str, Any]) -> None:
    if fits(config, SCHEMA, SCHEMA):
        assert list(wrong_values(config, SCHEMA)) == []


def test_the_quick_check_knows_all_that_an_ordinary_config_needs() -> None:
    example = Path(__file__).resolve().parents[2] / "examples" / "ds_config.json"
    assert fits(json.loads(example.read_text()), SCHEMA, SCHEMA)


def test_every_default_obeys_its_own_schema() -> None:
    keys = KeyTable(SCHEMA)
    for path in keys.paths():
        node = keys.node(path)
        assert node is not None
        if node.get("default") is not None:
            assert fits(node["default"], node, SCHEMA), path


def test_an_unknown_keyword_is_left_to_jsonschema() -> None:
    assert not fits(3, {"contains": {"const": 3}}, SCHEMA)


@pytest.mark.parametrize(
    ("config", "paths"),
    [
        ({"zero_optimization": {"stage": 7}}, [("zero_optimization", "stage")]),
        ({"fp16": 3, "bf16": {"enabled": "maybe"}}, [("bf16", "enabled"), ("fp16",)]),
        ({"train_batch_size": "8"}, [("train_batch_size",)]),
        ({"train_batch_size": "auto", "zero_optimization": {"reduce_bucket_size": 5e8}}, []),
        ({"zero_optimization": {"unknown": 1}}, []),
    ],
)
def test_wrong_values_come_with_their_paths(config: dict[str, Any], paths: list[tuple[str, ...]]) -> None:
    assert sorted(path for path, _ in wrong_values(config, SCHEMA)) == sorted(paths)

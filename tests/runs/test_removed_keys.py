"""Keys of removed features: whether the feature was on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dslint.documents.config_reader import read_config
from dslint.documents.source import Source
from dslint.runs.removed_keys import names_switched_off, switched_off


def off(config: dict[str, Any]) -> list[str]:
    return names_switched_off(read_config(Source("ds_config.json", json.dumps(config, indent=1).encode())))


@pytest.mark.parametrize(
    ("key", "value", "is_off"),
    [
        ("amp", {"enabled": False}, True),
        ("amp", {"enabled": False, "opt_level": "O1"}, True),
        ("amp", {}, True),
        ("amp", None, True),
        ("amp", {"enabled": True}, False),
        ("amp", {"enabled": "auto"}, False),
        ("sparse_gradients", False, True),
        ("sparse_gradients", True, False),
        ("compression_training", {"layer_reduction": {"enabled": False}}, True),
        ("compression_training", {"sparse_pruning": {"shared_parameters": {"enabled": True}}}, False),
        ("sparse_attention", {"mode": "dense"}, False),
    ],
)
def test_a_key_at_the_top(key: str, value: Any, is_off: bool) -> None:
    assert off({key: value}) == ([key] if is_off else [])


@pytest.mark.parametrize(
    ("key", "value", "is_off"),
    [
        ("mics_shard_size", -1, True),
        ("mics_shard_size", 8, False),
        ("mics_shard_size", "auto", False),
        ("mics_hierarchical_params_gather", False, True),
        ("zeropp_loco_param", None, True),
        ("zeropp_loco_param", {}, False),
    ],
)
def test_a_key_of_zero(key: str, value: Any, is_off: bool) -> None:
    assert off({"zero_optimization": {key: value}}) == ([f"zero_optimization.{key}"] if is_off else [])


def test_the_release_and_the_place() -> None:
    document = read_config(Source("ds_config.json", b'{"sparse_gradients": false, "nebula": {}}'))
    found = {item.fields["key"]: item for item in switched_off(document)}
    assert found["sparse_gradients"].fields["removed_in"] == "0.19.8"
    assert found["nebula"].fields["removed_in"] == "0.19.7"
    assert document.source.slice(found["sparse_gradients"].span) == '"sparse_gradients": false'


def test_no_config_at_all() -> None:
    assert switched_off(read_config(Source("ds_config.json", b"[1, 2]"))) == ()
    assert switched_off(read_config(Source("ds_config.json", b"{"))) == ()

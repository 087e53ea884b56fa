"""The schema of a release is the newest one with what came later undone."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dslint.runs.releases import parse_release
from dslint.runs.schema import load_schema, schema_for


def key(schema, path):
    for name in path.split("."):
        schema = schema["properties"].get(name)
        if schema is None:
            return None
    return schema


def every_object(node):
    if "properties" in node:
        yield node
        for child in node["properties"].values():
            yield from every_object(child)


NEWEST = parse_release(load_schema()["x-deepspeed"]).key


def test_newest_release_has_every_key_of_the_schema():
    for newest, loaded in zip(every_object(schema_for(NEWEST)), every_object(load_schema()), strict=True):
        assert list(newest["properties"]) == list(loaded["properties"])
        assert newest.get("additionalProperties") == loaded.get("additionalProperties")


def test_a_key_is_unknown_before_its_first_release():
    assert key(schema_for((0, 19, 7)), "disable_python_gc") is None
    assert key(schema_for((0, 19, 8)), "disable_python_gc") is not None


def test_a_section_is_unknown_before_its_first_release():
    assert key(schema_for((0, 9, 0)), "tensor_parallel") is None
    assert key(schema_for((0, 19, 0)), "tensor_parallel") is not None


@pytest.mark.parametrize(
    ("release", "known"),
    [((0, 13, 1), False), ((0, 14, 3), True), ((0, 14, 4), False), ((0, 16, 5), False), ((0, 16, 6), True)],
)
def test_a_key_that_was_away_for_a_time_is_unknown_in_it(release, known):
    assert (key(schema_for(release), "compile") is not None) is known


def test_a_removed_key_has_its_former_shape_up_to_its_last_release():
    assert key(schema_for((0, 19, 7)), "sparse_gradients")["type"] == "boolean"
    assert key(schema_for((0, 19, 8)), "sparse_gradients")["not"] == {}


def test_a_removed_key_keeps_its_advice_after_its_last_release():
    assert "x-advice" in key(schema_for((0, 19, 8)), "amp")


def test_a_removed_key_inside_a_typed_section_comes_back_too():
    assert "not" not in key(schema_for((0, 19, 6)), "zero_optimization.mics_shard_size")
    assert "not" in key(schema_for((0, 19, 7)), "zero_optimization.mics_shard_size")


@pytest.mark.parametrize(
    ("path", "release", "default"),
    [
        ("gradient_clipping", (0, 19, 2), 0.0),
        ("gradient_clipping", (0, 19, 3), 1.0),
        ("steps_per_print", (0, 14, 0), 10),
        ("steps_per_print", (0, 19, 0), None),
        ("zero_optimization.offload_optimizer.pin_memory", (0, 19, 4), False),
        ("zero_optimization.offload_optimizer.pin_memory", (0, 19, 5), True),
        ("bf16.immediate_grad_update", NEWEST, False),
    ],
)
def test_defaults_are_those_of_the_release(path, release, default):
    assert key(schema_for(release), path)["default"] == default


def test_a_section_is_open_before_it_refused_unknown_keys():
    before, after = (key(schema_for(release), "fp16") for release in ((0, 16, 0), (0, 19, 0)))
    assert (before["x-unknown-keys"], before["additionalProperties"]) == ("ignored", True)
    assert (after["x-unknown-keys"], after["additionalProperties"]) == ("raises", False)


def test_a_release_with_fewer_numbers_stands_for_its_first():
    assert key(schema_for((0, 19)), "expert_parallel") is None


def test_a_release_newer_than_any_known_is_like_the_newest():
    assert schema_for((9, 0, 0)) == schema_for(NEWEST)


def test_the_loaded_schema_is_left_alone():
    before = repr(load_schema())
    schema_for((0, 10, 0))
    assert repr(load_schema()) == before


def test_every_property_has_a_description_of_one_line():
    for section in every_object(load_schema()):
        for name, node in section["properties"].items():
            assert node["description"].strip(), name
            assert "\n" not in node["description"], name


def test_every_object_says_what_an_unknown_key_does():
    for section in every_object(load_schema()):
        assert section["x-unknown-keys"] in ("raises", "ignored", "checked-by-rule")
        assert section["additionalProperties"] is (section["x-unknown-keys"] != "raises")


def test_names_that_replace_others_exist():
    for section in every_object(load_schema()):
        for node in section["properties"].values():
            if "x-renamed-to" in node:
                assert key(load_schema(), node["x-renamed-to"]) is not None
            if "x-alias-of" in node:
                assert node["x-alias-of"] in section["properties"]


def test_reading_the_schema_imports_nothing_heavy():
    code = (
        "import sys; from dslint.runs.schema import schema_for; schema_for((0, 19, 8));"
        "assert not {'jsonschema', 'deepspeed', 'torch', 'yaml'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

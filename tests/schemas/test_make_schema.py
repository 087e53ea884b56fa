"""The committed schema is what the generator writes, and its value shapes are those of pydantic."""

from __future__ import annotations

import importlib.util
import json
import math
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "schemas" / "ds_config.schema.json").read_text(encoding="utf-8"))

jsonschema = pytest.importorskip("jsonschema")
Validator = jsonschema.Draft202012Validator


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def definition(name):
    return Validator({"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]})


def test_schema_is_valid_json_schema():
    Validator.check_schema(SCHEMA)


def test_every_default_is_a_value_the_schema_accepts():
    def walk(node, path):
        for name, child in node.get("properties", {}).items():
            if child.get("default") is not None and "not" not in child:
                whole = {**child, "$defs": SCHEMA["$defs"]}
                errors = [e.message for e in Validator(whole).iter_errors(child["default"])]
                assert not errors, (path, name, errors)
            walk(child, f"{path}.{name}")

    walk(SCHEMA, "")


# -- what pydantic makes of values -----------------------------------------------------------------

# fmt: off
EDGES = [
    None, True, False, 0, 1, 2, 3, 4, -1, 0.0, 1.0, 1.5, -1.0, 2e8, 10**30, [], {}, [1], "", " ", "auto",
    "0", "1", "2", "3", "4", "-1", "+1", "01", "00", "0_1", "-0", "1.0", "1.00", "1.", ".5", "1.5", "-0.0",
    "+1.0", "2.0", "1e3", "1E3", "5e8", "2e-3", "1e+3", "1e", "e1", "1.0e0", "1_000", "1__0", "_1", "1_",
    "1_000.0", "1_0.0", "1._0", "1_.0", "1._", "1.0_0", "1e1_0", "--1", "1,000", "0x10", "inf", "-inf",
    "+inf", "infinity", "NaN", "true", "True", "tRuE", "false", "yes", "Y", "no", "n", "on", "off", "t",
    "F", "fp16", "１",
    " 1 ", "\t1", "1 0", "- 1", " true", " 1_0", " 1.5 ", " 1_0.5",
]
# fmt: on


def pairs():
    pydantic = pytest.importorskip("pydantic")
    annotated = pytest.importorskip("annotated_types")
    from typing import Annotated

    return {
        "coerced_bool": pydantic.TypeAdapter(bool),
        "coerced_int": pydantic.TypeAdapter(int),
        "coerced_int_from_0": pydantic.TypeAdapter(Annotated[int, annotated.Ge(0)]),
        "coerced_int_from_1": pydantic.TypeAdapter(Annotated[int, annotated.Gt(0)]),
        "coerced_float": pydantic.TypeAdapter(float),
    }


NAMES = ["coerced_bool", "coerced_int", "coerced_int_from_0", "coerced_int_from_1", "coerced_float"]


def pydantic_accepts(adapter, value):
    from pydantic import ValidationError

    try:
        adapter.validate_python(value)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", EDGES, ids=repr)
def test_definitions_accept_what_pydantic_accepts(name, value):
    assert definition(name).is_valid(value) == pydantic_accepts(pairs()[name], value)


@pytest.mark.parametrize("name", NAMES)
def test_definitions_accept_what_pydantic_accepts_of_any_value(name):
    hypothesis = pytest.importorskip("hypothesis")
    from hypothesis import strategies as st

    adapter, validator = pairs()[name], definition(name)
    values = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(min_value=-(2**62), max_value=2**62),
        st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15),
        st.text(alphabet="0123456789+-_.eE \t", max_size=8),
        st.text(alphabet="truefalsyonTRUEFALSYON01", max_size=5),
        st.sampled_from(["TRUE", "FALSE", "INF", "Nan", "inFinity", "OFF", "Yes"]),
        st.lists(st.integers(), max_size=2),
        st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    )

    @hypothesis.settings(max_examples=1000, deadline=None, derandomize=True)
    @hypothesis.given(values)
    def check(value):
        # Pydantic drops zeros in front before it looks for a sign, which nobody relies on.
        hypothesis.assume(not (isinstance(value, str) and re.match(r"\s*[+-]?0[0_]*[+-]", value)))
        assert validator.is_valid(value) == pydantic_accepts(adapter, value)

    check()


# -- against DeepSpeed -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def deepspeed():
    return pytest.importorskip("deepspeed")


@pytest.fixture(scope="module")
def accepts(deepspeed):
    from deepspeed.runtime.config import DeepSpeedConfig

    def judge(config):
        try:
            DeepSpeedConfig(json.loads(json.dumps({"train_micro_batch_size_per_gpu": 1, **config})))
        except Exception:
            return False
        return True

    return judge


@pytest.mark.deepspeed
def test_committed_schema_is_current(deepspeed):
    if deepspeed.__version__ != SCHEMA["x-deepspeed"]:
        pytest.skip(f"the schema describes DeepSpeed {SCHEMA['x-deepspeed']}, not {deepspeed.__version__}")
    module = script("make_schema")
    assert module.TARGET.read_text(encoding="utf-8") == module.schema_text()


@pytest.mark.deepspeed
def test_pipeline_defaults_are_those_of_deepspeed(deepspeed):
    from deepspeed.runtime.config import get_pipeline_config

    keys = SCHEMA["properties"]["pipeline"]["properties"]
    for name, default in get_pipeline_config({}).items():
        assert keys[name]["default"] == default


SECTION_VALUES = [None, True, False, 0, 1, "x", "auto", {}, {"no_such_key": 1}]
# Accepted by accident: an empty or wrong value of a section that nothing reads afterwards.
ACCIDENTS = {("timers", "'x'"), ("timers", "'auto'"), ("expert_parallel", "0")}


@pytest.mark.deepspeed
@pytest.mark.parametrize("value", SECTION_VALUES, ids=repr)
@pytest.mark.parametrize("name", sorted(k for k, v in SCHEMA["properties"].items() if "properties" in v))
def test_sections_are_accepted_as_deepspeed_does(accepts, name, value):
    if (name, repr(value)) in ACCIDENTS:
        pytest.skip("accepted by accident")
    assert Validator(SCHEMA).is_valid({name: value}) == accepts({name: value})


def typed_values():
    samples = [
        None,
        True,
        0,
        1,
        2,
        0.5,
        -1,
        -0.5,
        1e9,
        "1",
        "0.5",
        "-1",
        "yes",
        "cpu",
        "auto",
        "x",
        [],
        ["z1"],
        {},
    ]
    for name, section in SCHEMA["properties"].items():
        yield from within(name, section, (name,), samples)


def within(name, section, path, samples):
    for key, node in section.get("properties", {}).items():
        if "properties" in node:
            yield from within(key, node, (*path, key), samples)
        elif section["x-unknown-keys"] == "raises" and "x-until" not in node:
            for sample in samples:
                yield (*path, key), sample


# Values at an open bound that are no numbers, which JSON Schema holds bounds against.
BEYOND_SCHEMA = [
    ("zero_optimization.zenflow.topk_ratio", True),
    ("zero_optimization.zenflow.topk_ratio", "1"),
]
# What more a key needs so that its accepted values pass: DeepSpeed also checks keys against each other.
COMPANIONS = {
    "zero_optimization.compute_grad_norm": {"zero_optimization": {"stage": 1}},
    "zero_optimization.offload_optimizer.ratio": {"zero_optimization": {"stage": 3}},
    "fp16.fp16_master_weights_and_grads": {"zero_optimization": {"stage": 1}},
    "bf16.bf16_master_weights_and_grads": {"zero_optimization": {"stage": 1}},
    "bfloat16.bf16_master_weights_and_grads": {"zero_optimization": {"stage": 1}},
    "bf16.bf16_optimizer_states": {
        "zero_optimization": {"stage": 1},
        "bf16": {"bf16_master_weights_and_grads": True},
    },
    "bfloat16.bf16_optimizer_states": {
        "zero_optimization": {"stage": 1},
        "bfloat16": {"bf16_master_weights_and_grads": True},
    },
}


def put(config, path, value):
    *sections, last = path
    for name in sections:
        config = config.setdefault(name, {})
    config[last] = value


@pytest.mark.deepspeed
def test_typed_keys_accept_what_deepspeed_accepts(accepts):
    validator = Validator(SCHEMA)
    wrong = []
    for path, value in typed_values():
        config = json.loads(json.dumps(COMPANIONS.get(".".join(path), {})))
        put(config, path, value)
        valid = validator.is_valid(config)
        if valid != accepts(config) and (".".join(path), value) not in BEYOND_SCHEMA:
            wrong.append((".".join(path), value, "schema accepts" if valid else "schema refuses"))
    assert not wrong


def untyped_keys(section, path=()):
    for name, node in section["properties"].items():
        if section["x-unknown-keys"] == "ignored" and "properties" not in node:
            yield (*path, name), node
        elif section["x-unknown-keys"] == "ignored" and node["x-unknown-keys"] == "ignored":
            yield from untyped_keys(node, (*path, name))


# Refused for another reason than the value itself: batch arithmetic, or keys and hardware that must go along.
NEEDS_MORE = {
    ("train_batch_size", 0.5),
    ("train_micro_batch_size_per_gpu", None),
    ("aio.use_gds", True),
    ("data_efficiency.data_sampling.curriculum_learning.enabled", True),
    ("data_efficiency.data_sampling.dynamic_batching.enabled", True),
}


@pytest.mark.deepspeed
def test_untyped_keys_are_refused_where_parsing_fails(accepts):
    validator = Validator(SCHEMA)
    samples = [
        None,
        True,
        False,
        0,
        2,
        0.5,
        -1,
        "1",
        "yes",
        "cpu",
        "FP16",
        "Warn",
        "fast",
        "sum",
        "",
        [1],
        ["x"],
        {},
    ]
    wrong = []
    for path, _ in untyped_keys(SCHEMA):
        for value in samples:
            config = {}
            put(config, path, value)
            known = (".".join(path), value) in NEEDS_MORE if not isinstance(value, (list, dict)) else False
            if validator.is_valid(config) and not known and not accepts(config):
                wrong.append((".".join(path), value))
    assert not wrong


@pytest.mark.deepspeed
def test_removed_keys_are_refused(accepts):
    for name, node in SCHEMA["properties"].items():
        if "x-until" in node:
            assert not accepts({name: {}})
            assert not Validator(SCHEMA).is_valid({name: {}})


def test_finite_numbers_only_are_accepted_as_loss_scale():
    validator = definition("loss_scale")
    for value in (0, 128, 1.5, "128", "1e3", " 2 ", ".5"):
        assert validator.is_valid(value) is (float(value) >= 0 and math.isfinite(float(value)))
    for value in (-1, True, "-1", "inf", "nan", "x", None):
        assert not validator.is_valid(value)


# -- history ---------------------------------------------------------------------------------------

BASE = "class DeepSpeedConfigModel:\n    class Config:\n        extra = 'forbid'\n"
SOURCES = {
    "0.9.0": {
        "runtime/config_utils.py": BASE,
        "runtime/constants.py": "CLIP = 'clip'\nCLIP_DEFAULT = 0.\nFP16_ON = 'on'\nFP16_ON_DEFAULT = False\n",
        "runtime/config.py": "x = CLIP\ny = FP16_ON\n",
        "runtime/old.py": "z = d.get('gone')\n",
    },
    "0.10.0": {
        "runtime/config_utils.py": BASE,
        "runtime/constants.py": "CLIP = 'clip'\nCLIP_DEFAULT = 1.0\n",
        "runtime/config.py": (
            "x = CLIP\nclass Half(DeepSpeedConfigModel):\n"
            "    on: bool = False\n    size: int = Field(pp_int(5e8), ge=0, alias='long_size')\n"
            "_REMOVED_TOP_LEVEL_CONFIG_KEYS = {'gone': 'no more'}\n"
        ),
    },
}
KEYS = {
    "clip": {"constant": "runtime.constants:CLIP"},
    "fp16": {"model": "runtime.config:Half", "before": "runtime.constants:FP16_", "keys": {}},
    "gone": {"until": "0.9.0"},
}


@pytest.fixture
def history(tmp_path):
    import io
    import tarfile

    module = script("key_history")
    archives = []
    for release, files in SOURCES.items():
        archives.append(tmp_path / f"deepspeed-{release}.tar.gz")
        with tarfile.open(archives[-1], "w:gz") as tar:
            for name, text in files.items():
                info = tarfile.TarInfo(f"deepspeed-{release}/deepspeed/{name}")
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text.encode()))
    return module.history({"keys": KEYS}, archives)


def test_history_finds_a_key_before_and_after_it_got_a_model(history):
    assert history["keys"]["fp16.on"] == {"first": "0.9.0", "last": "0.10.0"}


def test_history_finds_first_releases_and_aliases(history):
    assert history["keys"]["fp16.long_size"]["first"] == "0.10.0"
    assert history["keys"]["fp16.size"]["first"] == "0.10.0"


def test_history_finds_changed_defaults(history):
    assert history["keys"]["clip"]["defaults"] == [{"until": "0.9.0", "default": 0.0}]


def test_history_ends_with_the_release_before_the_removal(history):
    assert history["keys"]["gone"] == {"first": "0.9.0", "last": "0.9.0"}


def test_history_tells_since_when_unknown_keys_are_refused(history):
    assert history["raises"] == {"fp16": "0.10.0"}

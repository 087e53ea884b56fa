"""What Accelerate makes of its own files; each claim was seen with accelerate 1.15.0."""

from __future__ import annotations

from typing import Any

import pytest

from dslint.documents.document import Document
from dslint.documents.source import Source
from dslint.documents.yaml_reader import read_yaml
from dslint.lint import facts_of
from dslint.rulebook.cases import run_of
from dslint.runs import accelerate, accelerate_facts
from dslint.runs.unknown import UNDECIDABLE, Unknown

DEEPSPEED = "distributed_type: DEEPSPEED\n"
WITH_FILE = DEEPSPEED + "deepspeed_config:\n  deepspeed_config_file: ds.json\n"


def document(text: str) -> Document:
    return read_yaml(Source("accelerate.yaml", text.encode()))


def keys(items: Any) -> list[Any]:
    return [item.fields["key"] for item in items]


def config(text: str) -> Any:
    return accelerate.as_config(document(text)).value


def test_inline_keys_as_a_config() -> None:
    section = "deepspeed_config:\n  zero_stage: '3'\n  zero3_save_16bit_model: true\n"
    made = config(DEEPSPEED + "mixed_precision: bf16\n" + section)
    assert made["zero_optimization"] == {"stage": 3, "stage3_gather_16bit_weights_on_model_save": True}
    assert made["bf16"] == {"enabled": True}
    assert made["train_micro_batch_size_per_gpu"] == "auto"
    assert made["gradient_accumulation_steps"] == "auto"
    assert made["gradient_clipping"] == "auto"


def test_stage_two_where_none_is_given() -> None:
    assert config(DEEPSPEED)["zero_optimization"] == {"stage": 2}


@pytest.mark.parametrize(("clipping", "made"), [("1.0", 1.0), ("auto", "auto"), ("0", None), ("0.0", None)])
def test_clipping(clipping: str, made: Any) -> None:
    text = DEEPSPEED + f"deepspeed_config:\n  gradient_clipping: {clipping}\n"
    assert config(text).get("gradient_clipping") == made
    assert bool(accelerate_facts.clipping_of_zero(document(text))) == (made is None)


def test_unknown_inline_keys() -> None:
    text = DEEPSPEED + "deepspeed_config:\n  zero_stage: 2\n  steps_per_print: 1\n  num_processes: 4\n"
    assert keys(accelerate_facts.unknown_keys(document(text))) == ["steps_per_print"]


@pytest.mark.parametrize(
    ("kind", "is_unused", "is_unknown"),
    [
        ("DEEPSPEED", False, False),
        ("MULTI_GPU", True, False),
        ("'NO'", True, False),
        ("deepspeed", False, True),
        ("MULTI_GPUS", False, True),
    ],
)
def test_distributed_type(kind: str, is_unused: bool, is_unknown: bool) -> None:
    found = document(f"distributed_type: {kind}\ndeepspeed_config:\n  zero_stage: 2\n")
    assert bool(accelerate_facts.unused_section(found)) == is_unused
    assert bool(accelerate_facts.unknown_type(found)) == is_unknown


def test_no_distributed_type() -> None:
    (item,) = accelerate_facts.unknown_type(document("deepspeed_config:\n  zero_stage: 2\n"))
    assert item.fields["type"] is None


def test_keys_outside_of_sections() -> None:
    text = "gradient_clipping: 1.0\nnum_machine: 1\ndebug: false\ndeepspeed_config:\n  zero_stage: 2\n"
    found = accelerate_facts.unknown_top_keys(document(text))
    assert {item.fields["key"]: item.fields["advice"] for item in found} == {
        "gradient_clipping": ": it belongs into `deepspeed_config`",
        "num_machine": ": did you mean `num_machines`?",
    }


def test_a_file_for_sagemaker_has_other_keys() -> None:
    text = DEEPSPEED + "compute_environment: AMAZON_SAGEMAKER\nec2_instance_type: ml.p3\n"
    assert accelerate_facts.unknown_top_keys(document(text)) == ()


def test_keys_beside_a_config_file() -> None:
    text = WITH_FILE + "  zero_stage: 3\n  zero3_init_flag: true\n  deepspeed_multinode_launcher: standard\n"
    assert keys(accelerate_facts.keys_beside_config_file(document(text))) == ["zero_stage"]
    assert accelerate_facts.keys_beside_config_file(document(text.replace("_config_file", "_hostfile"))) == ()


def test_precision_beside_a_config_file() -> None:
    (item,) = accelerate_facts.precision_beside_config_file(document("mixed_precision: 'no'\n" + WITH_FILE))
    assert item.fields["value"] == "no"
    assert accelerate_facts.precision_beside_config_file(document(WITH_FILE)) == ()


def near(items: Any) -> dict[str, tuple[Any, Any]]:
    return {item.fields["key"]: (item.fields["near"], item.fields["slip"]) for item in items}


def test_the_key_that_was_meant_is_told_unless_it_is_there_as_well() -> None:
    text = DEEPSPEED + "deepspeed_config:\n  zero_stag: 2\n  gradient_cliping: 1.0\n  gradient_clipping: 2.0\n"
    assert near(accelerate_facts.unknown_keys(document(text))) == {
        "zero_stag": ("zero_stage", True),
        "gradient_cliping": (None, False),
    }
    text = DEEPSPEED + "num_machine: 1\nnum_machines: 1\nnum_process: 2\nzero_stage: 2\n"
    found = accelerate_facts.unknown_top_keys(document(text))
    assert near(found) == {
        "num_machine": (None, False),
        "num_process": ("num_processes", True),
        "zero_stage": (None, False),
    }
    assert [item.fields["home"] for item in found] == [None, None, "deepspeed_config.zero_stage"]


def test_the_type_that_counts_instead_has_a_place() -> None:
    found = document("distributed_type: MULTI_GPU\ndeepspeed_config:\n  zero_stage: 2\n")
    (item,) = accelerate_facts.unused_section(found)
    assert found.source.slice(item.fields["type_place"]) == "distributed_type: MULTI_GPU"


@pytest.mark.parametrize(
    ("key", "value", "is_same"),
    [
        ("zero_stage", 2, True),
        ("zero_stage", "'2'", True),
        ("zero_stage", 3, False),
        ("offload_param_device", "none", True),
        ("offload_param_nvme_path", "none", True),
        ("offload_param_device", "cpu", False),
        ("gradient_accumulation_steps", 1, None),
    ],
)
def test_a_key_may_say_what_the_config_file_says(key: str, value: Any, is_same: bool | None) -> None:
    written = {"gradient_accumulation_steps": "auto", "zero_optimization": {"stage": 2}}
    facts = facts_of(run_of({"accelerate": WITH_FILE + f"  {key}: {value}\n", "config": written}))
    (item,) = facts.value("accelerate.keys_beside_config_file")
    assert isinstance(item.fields["same"], Unknown) if is_same is None else item.fields["same"] is is_same


def test_inline_keys_are_the_config_unless_a_file_is_named() -> None:
    inline = facts_of(run_of({"accelerate": DEEPSPEED}))
    named = facts_of(run_of({"accelerate": WITH_FILE, "config": {"zero_optimization": {"stage": 2}}}))
    assert inline.value("accelerate.is_config") is True
    assert named.value("accelerate.is_config") is False
    assert facts_of(run_of({"config": {}})).value("accelerate.is_config") is False


def test_an_init_flag_of_no_use() -> None:
    found = document(DEEPSPEED + "deepspeed_config:\n  zero3_init_flag: true\n")
    assert accelerate_facts.useless_init_flag(found, 3) == ()
    assert accelerate_facts.useless_init_flag(found, UNDECIDABLE) == UNDECIDABLE
    assert len(accelerate_facts.useless_init_flag(found, 2)) == 1  # type: ignore[arg-type]
    assert accelerate_facts.useless_init_flag(document(DEEPSPEED), 2) == ()


def test_no_accelerate_file() -> None:
    assert accelerate_facts.unknown_keys(None) == ()
    assert accelerate_facts.unknown_top_keys(None) == ()
    assert accelerate_facts.unknown_type(None) == ()
    assert accelerate_facts.unused_section(None) == ()
    assert accelerate_facts.keys_beside_config_file(None) == ()
    assert accelerate_facts.precision_beside_config_file(None) == ()
    assert accelerate_facts.clipping_of_zero(None) == ()
    assert accelerate_facts.useless_init_flag(None, 2) == ()

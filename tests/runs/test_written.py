"""Where a config key stands in the files, so that it can be changed there."""

from __future__ import annotations

from typing import Any

import pytest

from dslint.documents.document import NodePath
from dslint.lint import facts_of
from dslint.rulebook.cases import run_of
from dslint.runs.written import NotWritableError, written_entry

OPTIMIZER = "zero_optimization.offload_optimizer"
PARAM = "zero_optimization.offload_param"


def path_of(key: str, **case: Any) -> NodePath:
    return written_entry(facts_of(run_of(case)), tuple(key.split(".")))[1]


def config(**zero: Any) -> dict[str, Any]:
    return {"train_micro_batch_size_per_gpu": 1, "zero_optimization": zero}


def inline(**section: Any) -> str:
    lines = [f"  {name}: {value}\n" for name, value in section.items()]
    return "distributed_type: DEEPSPEED\ndeepspeed_config:\n" + "".join(lines)


def test_a_key_stands_under_the_name_that_the_file_uses() -> None:
    written = config(stage=3, prefetch_bucket_size=5)
    assert path_of("zero_optimization.stage3_prefetch_bucket_size", config=written) == (
        "zero_optimization",
        "prefetch_bucket_size",
    )
    assert path_of("zero_optimization.stage", config=written) == ("zero_optimization", "stage")


def test_a_boolean_gives_way_to_a_section_with_a_stage() -> None:
    written = {"zero_optimization": True}
    assert path_of("zero_optimization.stage", config=written) == ("zero_optimization", "stage")
    with pytest.raises(NotWritableError, match="zero_optimization is no section"):
        path_of("zero_optimization.overlap_comm", config=written)


@pytest.mark.parametrize(("switch", "section"), [("cpu_offload", OPTIMIZER), ("cpu_offload_param", PARAM)])
@pytest.mark.parametrize("is_on", [True, False])
def test_an_old_switch_is_the_section_but_has_no_room_for_its_device(
    switch: str, section: str, is_on: bool
) -> None:
    written = config(stage=3, **{switch: is_on})
    assert path_of(section, config=written) == ("zero_optimization", switch)
    assert path_of(f"{section}.device", config=written) == (*section.split("."), "device")
    with pytest.raises(NotWritableError, match=f"zero_optimization.{switch} is no section"):
        path_of(f"{section}.pin_memory", config=written)


def test_an_inline_key_of_accelerate_stands_for_a_key() -> None:
    file = inline(zero_stage=3)
    assert path_of("zero_optimization.stage", accelerate=file) == ("deepspeed_config", "zero_stage")
    assert path_of("zero_optimization.stage3_gather_16bit_weights_on_model_save", accelerate=file) == (
        "deepspeed_config",
        "zero3_save_16bit_model",
    )


def test_the_only_inline_key_of_a_section_stands_for_the_section() -> None:
    file = inline(zero_stage=2, offload_param_device="cpu")
    assert path_of(PARAM, accelerate=file) == ("deepspeed_config", "offload_param_device")
    with pytest.raises(NotWritableError, match="several of Accelerate's inline keys"):
        path_of(PARAM, accelerate=file + "  offload_param_nvme_path: /nvme\n")
    with pytest.raises(NotWritableError, match="no name for it"):
        path_of(OPTIMIZER, accelerate=file)


def test_what_an_accelerate_file_cannot_say_is_not_written_there() -> None:
    with pytest.raises(NotWritableError, match="no name for it"):
        path_of("zero_optimization.overlap_comm", accelerate=inline(zero_stage=2))


def test_the_config_that_an_accelerate_file_names_is_the_place() -> None:
    file = inline(deepspeed_config_file="ds_config.json")
    assert path_of("zero_optimization.stage", accelerate=file, config=config(stage=2)) == (
        "zero_optimization",
        "stage",
    )

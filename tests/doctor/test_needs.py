from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dslint.doctor.needs import Needs, UnreadableConfigError, merged, needs_of


def needs(folder: Path, config: dict[str, Any]) -> Needs:
    path = folder / "ds.json"
    path.write_text(json.dumps({"train_micro_batch_size_per_gpu": 1, **config}))
    found = needs_of([str(path)])
    assert found is not None
    return found


def test_without_a_config_nothing_is_known() -> None:
    assert needs_of([]) is None


@pytest.mark.parametrize(
    ("optimizer", "device", "builders"),
    [
        ("AdamW", "none", ["FusedAdamBuilder"]),
        ("Adam", "cpu", ["CPUAdamBuilder"]),
        ("Lion", "none", ["FusedLionBuilder"]),
        ("Lion", "cpu", ["CPULionBuilder"]),
        ("Adagrad", "cpu", ["CPUAdagradBuilder"]),
        ("Adagrad", "none", []),
        ("Lamb", "none", ["FusedLambBuilder"]),
        ("SGD", "none", []),
    ],
)
def test_optimizers_need_their_op(tmp_path: Path, optimizer: str, device: str, builders: list[str]) -> None:
    config = {
        "optimizer": {"type": optimizer, "params": {"lr": 0.1}},
        "zero_optimization": {"stage": 2, "offload_optimizer": {"device": device}},
    }
    assert list(needs(tmp_path, config).builders) == builders


def test_torch_adam_needs_no_op(tmp_path: Path) -> None:
    assert not needs(tmp_path, {"optimizer": {"type": "AdamW", "params": {"torch_adam": True}}}).builders


def test_reasons_name_the_file_and_the_key(tmp_path: Path) -> None:
    config = {
        "optimizer": {"type": "AdamW"},
        "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
    }
    (reason,) = needs(tmp_path, config).builders.values()
    assert reason == f"{tmp_path}/ds.json: optimizer.type AdamW with offload_optimizer.device cpu"


def test_nvme_needs_async_io_at_stage_3(tmp_path: Path) -> None:
    zero = {"stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/nvme"}}
    found = needs(tmp_path, {"zero_optimization": zero})
    assert list(found.builders) == ["AsyncIOBuilder"]
    assert found.nvme is not None
    assert found.partitioned_gradients is not None
    assert needs(tmp_path, {"zero_optimization": {**zero, "stage": 2}}).nvme is None


def test_quantized_communication_needs_its_op(tmp_path: Path) -> None:
    found = needs(tmp_path, {"zero_optimization": {"stage": 3, "zero_quantized_weights": True}})
    assert list(found.builders) == ["QuantizerBuilder"]


def test_pinned_memory_and_auto_values_are_noticed(tmp_path: Path) -> None:
    zero = {
        "stage": 3,
        "offload_param": {"device": "cpu", "pin_memory": True},
        "stage3_prefetch_bucket_size": "auto",
    }
    found = needs(tmp_path, {"zero_optimization": zero})
    assert found.pinned_memory == f"{tmp_path}/ds.json: offload_param.pin_memory"
    assert found.auto_prefetch is not None
    plain = needs(tmp_path, {"zero_optimization": {"stage": 1}})
    assert (plain.pinned_memory, plain.auto_prefetch, plain.partitioned_gradients) == (None, None, None)


def test_an_accelerate_file_counts_like_the_config_it_makes(tmp_path: Path) -> None:
    path = tmp_path / "accelerate.yaml"
    path.write_text("distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 3}\n")
    found = needs_of([str(path)])
    assert found is not None
    assert found.partitioned_gradients == f"{path}: stage 3"


def test_several_configs_need_what_each_needs() -> None:
    together = merged(
        [Needs({"A": "one"}, nvme="one"), Needs({"A": "two", "B": "two"}, nvme="two", pinned_memory="two")]
    )
    assert together == Needs({"A": "one", "B": "two"}, nvme="one", pinned_memory="two")


@pytest.mark.parametrize("text", [None, "{", b"\xff"])
def test_a_config_that_cannot_be_read_is_named(tmp_path: Path, text: str | bytes | None) -> None:
    path = tmp_path / "broken.json"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UnreadableConfigError, match=r"broken\.json"):
        needs_of([str(path)])

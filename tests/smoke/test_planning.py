"""What smoke makes of a file and the options, before anything is trained."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from dslint.runs.gpus import find_gpu
from dslint.smoke.environment import SmokeError
from dslint.smoke.planning import SmokeOptions, plan

OPTIONS = SmokeOptions(
    gpus=None,
    nodes=None,
    gpu=None,
    mode=None,
    device="auto",
    loader=None,
    steps=2,
    timeout=60.0,
    python="python",
)


def file(folder: Path, content: Any, name: str = "ds_config.json") -> str:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def test_the_batch_sizes_tell_the_ranks(tmp_path: Path) -> None:
    sizes = {"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}
    found = plan(file(tmp_path, sizes), OPTIONS)
    assert (found.gpus, found.nodes, found.ranks_from) == (8, 1, "the batch sizes")
    found = plan(file(tmp_path, sizes), dataclasses.replace(OPTIONS, nodes=2))
    assert (found.gpus, found.nodes) == (4, 2)


@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"train_batch_size": 64},
        {"train_batch_size": 9, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 1},
        {"train_batch_size": "auto", "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 1},
        {"train_batch_size": 0, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 1},
    ],
)
def test_batch_sizes_that_leave_it_open_tell_nothing(tmp_path: Path, sizes: dict[str, Any]) -> None:
    found = plan(file(tmp_path, {"zero_optimization": {}, **sizes}), OPTIONS)
    assert (found.gpus, found.ranks_from) == (None, "")
    assert found.trial(OPTIONS, 4, answers_like_a_gpu=False).ranks == 4
    assert found.trial(OPTIONS, 0, answers_like_a_gpu=True).ranks == 1


def test_options_win_over_the_file(tmp_path: Path) -> None:
    sizes = {"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}
    found = plan(file(tmp_path, sizes), dataclasses.replace(OPTIONS, gpus=2))
    assert (found.gpus, found.ranks_from) == (2, "--gpus")


def test_auto_means_hugging_face(tmp_path: Path) -> None:
    assert plan(file(tmp_path, {"train_batch_size": "auto"}), OPTIONS).loader == "hf"
    assert plan(file(tmp_path, {"train_batch_size": 8}), OPTIONS).loader == "deepspeed"
    assert plan(file(tmp_path, {"train_batch_size": 8}), dataclasses.replace(OPTIONS, loader="hf")).loader == "hf"


def test_a_named_gpu_says_which_types_it_knows(tmp_path: Path) -> None:
    found = plan(file(tmp_path, {"train_batch_size": 8}), OPTIONS)
    v100 = found.trial(dataclasses.replace(OPTIONS, gpu=find_gpu("v100")), 0, answers_like_a_gpu=True)
    assert (v100.fp16, v100.bf16) == (True, False)
    assert found.trial(OPTIONS, 1, answers_like_a_gpu=False).bf16 is None


def test_an_accelerate_file_brings_its_config_along(tmp_path: Path) -> None:
    file(tmp_path, {"train_batch_size": 8, "zero_optimization": {"stage": 2}}, "zero2.json")
    text = "distributed_type: DEEPSPEED\nnum_processes: 4\ndeepspeed_config: {deepspeed_config_file: zero2.json}\n"
    found = plan(file(tmp_path, text, "accelerate.yaml"), OPTIONS)
    assert (found.gpus, found.ranks_from, found.loader) == (4, "the Accelerate file", "hf")
    assert found.config is not None
    assert '"stage": 2' in found.config
    assert found.accelerate == text


def test_an_inline_accelerate_config_has_no_file_of_its_own(tmp_path: Path) -> None:
    text = "distributed_type: DEEPSPEED\nnum_processes: 4\ndeepspeed_config: {zero_stage: 2}\n"
    assert plan(file(tmp_path, text, "accelerate.yaml"), OPTIONS).config is None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.json", "{", "c.json:1:2: "),
        ("c.json", "[1]", "not a DeepSpeed config: it holds a list instead of an object"),
        ("c.json", '{"name": "x", "version": "1"}', "none of its keys is one of DeepSpeed's"),
        ("c.json", '{"train_batch_size": {{ batch }}}', "a template with placeholders"),
        ("c.json", "", "the file is empty"),
        ("c.yaml", "a: 1", "not an Accelerate file that uses DeepSpeed"),
    ],
)
def test_a_file_that_is_no_config_is_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    with pytest.raises(SmokeError) as error:
        plan(file(tmp_path, content, name), OPTIONS)
    assert message in str(error.value)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.json", tmp_path):
        with pytest.raises(SmokeError, match=str(path)):
            plan(str(path), OPTIONS)

"""Documents become runs: which config belongs to which Accelerate file, and which release they use."""

from __future__ import annotations

from pathlib import Path

import pytest

from dslint.inputs import read
from dslint.runs.linking import pair, run_of, version_for
from dslint.runs.releases import parse_release
from dslint.runs.run import Options, Run

CONFIG = '{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}}'


def runs_of(folder: Path, *names: str) -> list[Run]:
    reading = read([str(folder / name) for name in names])
    return [run_of(pairing, Options()) for pairing in pair(reading.configs, reading.accelerate)]


def accelerate_file(path: Path, config: str) -> None:
    path.write_text(f"distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: {config}\n")


def test_a_config_alone_is_a_run(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(CONFIG)
    (run,) = runs_of(tmp_path, "ds.json")
    assert run.accelerate is None


def test_a_config_that_an_accelerate_file_names_is_one_run_with_it(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(CONFIG)
    accelerate_file(tmp_path / "accelerate.yaml", "ds.json")
    (run,) = runs_of(tmp_path, "ds.json", "accelerate.yaml")
    assert run.accelerate is not None
    assert run.config.source.path.endswith("ds.json")


def test_a_named_config_is_read_even_if_it_is_not_among_the_arguments(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "ds.json").write_text(CONFIG)
    accelerate_file(tmp_path / "accelerate.yaml", "conf/ds.json")
    (run,) = runs_of(tmp_path, "accelerate.yaml")
    assert run.config.source.path.endswith("ds.json")


def test_a_path_may_start_at_a_folder_above(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "ds.json").write_text(CONFIG)
    accelerate_file(tmp_path / "conf" / "accelerate.yaml", "conf/ds.json")
    (run,) = runs_of(tmp_path, "conf/accelerate.yaml")
    assert run.config.value["zero_optimization"] == {"stage": 2}


def test_two_accelerate_files_share_a_config(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(CONFIG)
    accelerate_file(tmp_path / "a.yaml", "ds.json")
    accelerate_file(tmp_path / "b.yaml", "ds.json")
    assert len(runs_of(tmp_path, "ds.json", "a.yaml", "b.yaml")) == 2


def test_a_config_that_cannot_be_found_makes_no_run(tmp_path: Path) -> None:
    accelerate_file(tmp_path / "accelerate.yaml", "missing.json")
    assert runs_of(tmp_path, "accelerate.yaml") == []


def test_the_option_decides_on_the_release(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("deepspeed==0.16.9\n")
    config = str(tmp_path / "ds.json")
    found = version_for(config, Options())
    assert found is not None
    assert found.release.text == "0.16.9"
    told = version_for(config, Options(deepspeed=parse_release("0.18.0")))
    assert told is not None
    assert told.release.text == "0.18.0"


@pytest.mark.parametrize("text", ["stage: 3\n", "distributed_type: MULTI_GPU\n", "deepspeed_config: {}\n"])
def test_a_yaml_file_without_deepspeed_is_no_run(tmp_path: Path, text: str) -> None:
    (tmp_path / "other.yaml").write_text(text)
    assert runs_of(tmp_path, "other.yaml") == []

"""A large repository is judged once: the second report is the same, and every change is noticed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dslint.lint import Report, check
from dslint.memory import FEWEST_FILES
from dslint.reports.json_report import json_report
from dslint.rulebook import judge as judge_module
from dslint.rulebook.cache import shipped_rules
from dslint.runs.releases import parse_release
from dslint.runs.run import Options

RULES = shipped_rules()
RELEASE = parse_release("0.19.8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """More configs than the memory needs to be used, some of them wrong, and a memory of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "configs"
    folder.mkdir()
    for number in range(FEWEST_FILES + 5):
        config = {"train_batch_size": number + 1, "fp16": {"enabled": True}, "bf16": {"enabled": number % 2 == 0}}
        (folder / f"ds_config_{number}.json").write_text(json.dumps(config, indent=2))
    (folder / "notes.json").write_text('{"zero_optimization": "a word in another file"}')
    return folder


def report(folder: Path, gpus: int | None = 8) -> Report:
    return check([str(folder)], Options(gpus=gpus, deepspeed=RELEASE), RULES)


def test_the_second_report_is_the_same_and_needs_no_judge(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = report(folder)
    assert first.findings

    def nobody(*_: object) -> None:
        raise AssertionError("judged again")

    monkeypatch.setattr("dslint.lint.judge", nobody)
    assert judge_module.judge is not nobody
    assert json_report(report(folder)) == json_report(first)


def test_a_changed_file_is_judged_anew(folder: Path) -> None:
    report(folder)
    (folder / "ds_config_0.json").write_text('{"train_batch_size": 8, "zero_optimisation": {}}')
    found = {finding.code for finding in report(folder).findings if "config_0." in finding.location.source.path}
    assert found == {"DS011"}


def test_other_options_are_judged_anew(folder: Path) -> None:
    assert report(folder).undecided != report(folder, gpus=None).undecided


def test_undecided_rules_are_remembered_with_the_file_at_hand(folder: Path) -> None:
    first = report(folder, gpus=None)
    assert report(folder, gpus=None).undecided == first.undecided


@pytest.mark.parametrize("text", ["", "[]", "{", '{"x": 1}'])
def test_a_broken_memory_is_no_trouble(folder: Path, text: str) -> None:
    first = report(folder)
    (path,) = folder.parent.glob("cache/dslint/results-*.json")
    path.write_text(text)
    assert json_report(report(folder)) == json_report(first)


def test_an_entry_that_something_else_has_written_is_no_trouble(folder: Path) -> None:
    first = report(folder)
    (path,) = folder.parent.glob("cache/dslint/results-*.json")
    path.write_text(json.dumps({key: {"findings": [3], "undecided": 1} for key in json.loads(path.read_text())}))
    assert json_report(report(folder)) == json_report(first)


def test_few_files_leave_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "ds_config.json").write_text("{}")
    check([str(tmp_path / "ds_config.json")], Options(deepspeed=RELEASE), RULES)
    assert not list(tmp_path.glob("cache/dslint/results-*"))


def test_a_config_that_an_accelerate_file_starts_is_judged_with_it(folder: Path) -> None:
    report(folder, gpus=None)
    (folder / "accelerate.yaml").write_text(
        "distributed_type: DEEPSPEED\ndeepspeed_config: {deepspeed_config_file: ds_config_8.json}\nnum_processes: 4\n"
    )
    related = [
        place.source.path
        for finding in report(folder, gpus=None).findings
        if finding.location.source.path.endswith("ds_config_8.json")
        for place in finding.related
    ]
    assert any(path.endswith("accelerate.yaml") for path in related)


def test_the_same_text_under_another_name_is_told_apart(folder: Path) -> None:
    text = '{"train_batch_size": "8"}'
    (folder / "ds_config_twin.json").write_text(text)
    (folder / "twin.json").write_text(text)
    for _ in range(2):
        paths = {finding.location.source.path for finding in report(folder).findings}
        assert str(folder / "ds_config_twin.json") in paths
        assert str(folder / "twin.json") not in paths


def test_an_assumed_release_is_said_for_a_clean_config_and_not_for_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dslint.lint.version_for", lambda *_: None)
    (tmp_path / "notes.json").write_text('{"zero_optimization": 1}')
    assert check([str(tmp_path)], Options(), RULES).assumption is None
    (tmp_path / "ds_config.json").write_text('{"train_micro_batch_size_per_gpu": 1}')
    assumption = check([str(tmp_path)], Options(), RULES).assumption
    assert assumption == "no DeepSpeed version found: checked for 0.19.8"

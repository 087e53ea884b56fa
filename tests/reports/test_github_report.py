"""Annotations for GitHub Actions, read back as its runner reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dslint.documents.notebook_reader import read_notebook
from dslint.documents.source import Source
from dslint.inputs import FileTrouble
from dslint.lint import Report, check
from dslint.reports.github_report import github_report
from dslint.rulebook.cache import shipped_rules
from dslint.rulebook.finding import Finding, FindingFix, Location, Undecided
from dslint.runs.run import Options

ROOT = Path(__file__).resolve().parent.parent.parent
CONFIG = Source("ds_config.json", b'{\n  "train_batch_size": 64,\n  "fp16": {\n    "enabled": true\n  }\n}\n')


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout that is the working folder, wherever the tests themselves run."""
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def place(source: Source, text: str, message: str = "") -> Location:
    start = source.text.index(text)
    return Location(source, source.span(start, start + len(text)), message)


def finding(
    location: Location,
    severity: str = "error",
    message: str = "the numbers disagree",
    related: tuple[Location, ...] = (),
    fixes: tuple[FindingFix, ...] = (),
) -> Finding:
    return Finding("DS201", "batch-size-mismatch", severity, message, location, related, fixes)


def report(*findings: Finding, troubles: tuple[FileTrouble, ...] = ()) -> Report:
    return Report(findings, (), troubles, 1, None)


def read_back(line: str) -> tuple[str, dict[str, str], str]:
    """A workflow command's name, properties and message, by the rules of GitHub's runner."""
    assert line.startswith("::")
    head, message = line[2:].split("::", 1)
    name, _, listed = head.partition(" ")
    pairs = [part.split("=", 1) for part in listed.split(",")]
    return name, {key: plain(value, in_property=True) for key, value in pairs}, plain(message)


def plain(text: str, *, in_property: bool = False) -> str:
    if in_property:
        text = text.replace("%3A", ":").replace("%2C", ",")
    return text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")


def annotated(report: Report) -> list[tuple[str, dict[str, str], str]]:
    return [read_back(line) for line in github_report(report).split("\n")[:-1]]


def test_a_finding_on_one_line_has_line_and_columns() -> None:
    shown = github_report(report(finding(place(CONFIG, '"train_batch_size": 64'))))
    assert shown == (
        "::error file=ds_config.json,line=2,endLine=2,col=3,endColumn=25,title=DS201 batch-size-mismatch"
        "::ds_config.json:2:3: DS201 the numbers disagree\n"
        "Found 1 error in 1 file."
    )


def test_a_finding_over_several_lines_has_no_columns() -> None:
    ((_, properties, _),) = annotated(report(finding(place(CONFIG, '"fp16": {\n    "enabled": true\n  }'))))
    assert properties == {
        "file": "ds_config.json",
        "line": "3",
        "endLine": "5",
        "title": "DS201 batch-size-mismatch",
    }


@pytest.mark.parametrize(("severity", "command"), [("error", "error"), ("warning", "warning"), ("hint", "notice")])
def test_each_severity_has_its_command(severity: str, command: str) -> None:
    ((name, _, _),) = annotated(report(finding(place(CONFIG, "64"), severity)))
    assert name == command


def test_related_places_and_the_fix_follow_the_message() -> None:
    script = Source("run.sh", b"#!/bin/bash\n\ndeepspeed --num_gpus 8 train.py\n")
    related = (place(script, "--num_gpus 8", "ranks"), place(CONFIG, "true"))
    one = finding(place(CONFIG, "64"), related=related, fixes=(FindingFix("safe", "set train_batch_size to 128"),))
    ((_, _, message),) = annotated(report(one))
    assert message.split("\n") == [
        "ds_config.json:2:23: DS201 the numbers disagree",
        "see run.sh:3:11: ranks",
        "see ds_config.json:4:16",
        "fix (safe): set train_batch_size to 128",
    ]


def test_several_ways_to_mend_it_are_numbered() -> None:
    ways = (FindingFix("unsafe", "drop fp16"), FindingFix("unsafe", "drop bf16", number=3))
    ((_, _, message),) = annotated(report(finding(place(CONFIG, "true"), fixes=ways)))
    assert message.split("\n")[1:] == ["fix 1 (unsafe): drop fp16", "fix 3 (unsafe): drop bf16"]


def test_a_finding_in_a_notebook_names_the_cell_and_no_line_of_the_file() -> None:
    cells = [{"cell_type": "markdown", "source": "# A"}, {"cell_type": "code", "source": "x = 1\nsave(x)"}]
    script = read_notebook(Source("train.ipynb", json.dumps({"cells": cells}).encode()))
    ((_, properties, message),) = annotated(report(finding(place(script.source, "save(x)"))))
    assert properties == {"file": "train.ipynb", "title": "DS201 batch-size-mismatch"}
    assert message == "train.ipynb:cell 2:2:1: DS201 the numbers disagree"


def test_a_file_that_was_not_checked_is_an_error() -> None:
    shown = github_report(report(troubles=(FileTrouble("gone.json", "no such file"),)))
    assert shown == (
        "::error file=gone.json,title=not checked::gone.json: no such file\n"
        "No findings in 1 file; 1 file not checked."
    )


def test_standard_input_is_no_file_of_the_repository() -> None:
    piped = finding(place(Source("<stdin>", CONFIG.data), "64"))
    found = annotated(report(piped, troubles=(FileTrouble("-", "not UTF-8 text"),)))
    assert [properties for _, properties, _ in found] == [
        {"title": "DS201 batch-size-mismatch"},
        {"title": "not checked"},
    ]
    assert found[0][2].startswith("<stdin>:2:23: ")


def test_the_closing_line_is_the_same_as_in_the_text_report() -> None:
    counted = Report(
        (finding(place(CONFIG, "64")), finding(place(CONFIG, "true"), "hint")),
        (Undecided("DS401", "ds_config.json", ("--gpu",)),),
        (),
        3,
        "no DeepSpeed version found",
        suppressed=2,
    )
    closing = github_report(counted).split("\n")[-1]
    assert closing == "Found 1 error, 1 hint in 3 files; 1 rule not decided; 2 suppressed."


def test_nothing_found_is_one_plain_line() -> None:
    assert github_report(report()) == "No findings in 1 file."


def file_of(path: str | Path) -> str:
    ((_, properties, message),) = annotated(report(finding(place(Source(str(path), CONFIG.data), "64"))))
    assert message.startswith(f"{properties['file']}:2:23: ")
    return properties["file"]


def test_paths_are_as_seen_from_the_working_folder(repository: Path) -> None:
    assert file_of("conf/ds.json") == "conf/ds.json"
    assert file_of("./conf/../ds.json") == "ds.json"
    assert file_of(repository / "conf" / "ds.json") == "conf/ds.json"


def test_in_a_folder_of_the_checkout_paths_are_as_seen_from_its_top(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "training").mkdir()
    monkeypatch.chdir(repository / "training")
    assert file_of("ds.json") == "training/ds.json"
    assert file_of("../ds.json") == "ds.json"


def test_a_path_outside_stays_as_it_is(repository: Path) -> None:
    assert file_of("../ds.json") == "../ds.json"
    assert file_of(repository.parent / "ds.json") == str(repository.parent / "ds.json")


@pytest.mark.parametrize("workspace", ["", "elsewhere"])
def test_without_a_checkout_around_it_the_working_folder_counts(
    repository: Path, monkeypatch: pytest.MonkeyPatch, workspace: str
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", workspace and str(repository / workspace))
    assert file_of(repository / "ds.json") == "ds.json"


def test_signs_that_commands_are_made_of_are_escaped() -> None:
    odd = finding(place(Source("a:b,c%2C.json", CONFIG.data), "64"), message="50 % a: b, c\r\n::error::x")
    line, _ = github_report(report(odd)).split("\n")
    assert line == (
        "::error file=a%3Ab%2Cc%252C.json,line=2,endLine=2,col=23,endColumn=25,title=DS201 batch-size-mismatch"
        "::a:b,c%252C.json:2:23: DS201 50 %25 a: b, c%0D%0A::error::x"
    )


WORDS = st.text(st.sampled_from("ab:,=%\r\n 2507C3A0D") | st.characters(exclude_categories=["Cs", "Cc"]))
NAMES = WORDS.filter(lambda text: text.strip(" /.") and "/" not in text and text != "-")


@settings(max_examples=200)
@given(NAMES, WORDS, WORDS, WORDS, WORDS)
def test_no_text_breaks_out_of_its_command(
    name: str, message: str, related: str, title: str, trouble: str
) -> None:
    one = finding(
        place(Source(name, CONFIG.data), "64"),
        message=message,
        related=(place(Source(name, CONFIG.data), "true", related),),
        fixes=(FindingFix("unsafe", title),),
    )
    lines = github_report(report(one, troubles=(FileTrouble(name, trouble),))).splitlines()
    assert [line[:8] for line in lines[:2]] == ["::error ", "::error "]
    (_, first, said), (_, second, why) = (read_back(line) for line in lines[:2])
    assert first["file"] == second["file"] == name
    see = f"see {name}:4:16" + (f": {related}" if related else "")
    assert said == f"{name}:2:23: DS201 {message}\n{see}\nfix (unsafe): {title}"
    assert why == f"{name}: {trouble}"


def test_a_whole_run_is_annotated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(ROOT))
    monkeypatch.chdir(ROOT)
    checked = check(["examples/run"], Options(), shipped_rules())
    found = annotated(checked)
    assert len(found) == len(checked.findings)
    assert {properties["file"] for _, properties, _ in found} == {
        "examples/run/ds_config.json",
        "examples/run/train.py",
    }
    batch = next(message for _, properties, message in found if properties["title"].startswith("DS201 "))
    assert "see examples/run/run.sh:5:11: ranks" in batch.split("\n")

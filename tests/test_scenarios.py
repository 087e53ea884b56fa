"""Whole runs of the command line, one text file each: the files, the command, what it prints, its exit code.

A file that the command changes stands there twice: as `file NAME` before, as `after NAME` after it.

Set DSLINT_UPDATE_SCENARIOS=1 to write what the commands print now into the files, and read the difference.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

SCENARIOS = sorted(Path(__file__).parent.glob("scenarios/*.txt"))


@dataclass(frozen=True)
class Scenario:
    title: str
    files: dict[str, str]
    command: str
    out: str
    err: str
    code: int
    after: dict[str, str]


def read(path: Path) -> Scenario:
    pieces = re.split(r"^== (.*)\n", path.read_text("utf-8"), flags=re.MULTILINE)
    parts = list(zip(pieces[1::2], pieces[2::2], strict=True))
    files = {head.removeprefix("file "): body for head, body in parts if head.startswith("file ")}
    named = {head.split()[0]: (head, body) for head, body in parts}
    return Scenario(
        title=parts[0][0],
        files=files,
        command=named["run"][0].removeprefix("run "),
        out=named["out"][1],
        err=named["err"][1] if "err" in named else "",
        code=int(named["exit"][0].removeprefix("exit ")),
        after={head.removeprefix("after "): body for head, body in parts if head.startswith("after ")},
    )


def changed_files(scenario: Scenario, folder: Path) -> dict[str, str]:
    texts = {name: (folder / name).read_text("utf-8") for name in scenario.files}
    return {name: text for name, text in texts.items() if text != scenario.files[name]}


def write(path: Path, scenario: Scenario, done: subprocess.CompletedProcess[str], folder: Path) -> None:
    parts = [(scenario.title, "")]
    parts += [(f"file {name}", text) for name, text in scenario.files.items()]
    parts += [(f"run {scenario.command}", ""), ("out", done.stdout)]
    parts += [("err", done.stderr)] if done.stderr else []
    parts += [(f"after {name}", text) for name, text in changed_files(scenario, folder).items()]
    parts += [(f"exit {done.returncode}", "")]
    path.write_text("".join(f"== {head}\n{body}" for head, body in parts), "utf-8")


def run(scenario: Scenario, folder: Path) -> subprocess.CompletedProcess[str]:
    for name, text in scenario.files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    program, *arguments = shlex.split(scenario.command)
    assert program == "dslint"
    root = Path(__file__).parent.parent
    environment = {**os.environ, "NO_COLOR": "1", "PYTHONPATH": str(root), "COLUMNS": "100"}
    return subprocess.run(
        [sys.executable, "-m", "dslint", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_command_prints_what_the_scenario_says(path: Path, tmp_path: Path) -> None:
    scenario = read(path)
    done = run(scenario, tmp_path)
    if os.environ.get("DSLINT_UPDATE_SCENARIOS"):
        write(path, scenario, done, tmp_path)
        return
    assert done.stdout == scenario.out
    assert done.stderr == scenario.err
    assert done.returncode == scenario.code
    assert changed_files(scenario, tmp_path) == scenario.after


def test_there_are_scenarios() -> None:
    assert len(SCENARIOS) > 10

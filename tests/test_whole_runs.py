"""Whole runs in the style of real ones: config, script and command, and what is found in them.

Each file in wholeruns/ has a sentence, files, and what is expected: `path:line code` of each error and warning.
`DSLINT_UPDATE_SCENARIOS=1` writes what is found; look at the difference.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from dslint.fixes.policy import Policy
from dslint.fixing import Fixed, fix
from dslint.inputs import read
from dslint.lint import check
from dslint.rulebook.cache import shipped_rules
from dslint.runs.releases import NEWEST
from dslint.runs.run import Options

FOLDER = Path(__file__).parent / "wholeruns"
CASES = sorted(FOLDER.glob("*.txt"))


def parts(text: str) -> dict[str, str]:
    """The pieces of a case, by the name in front of each; the sentence is at ""."""
    pieces: dict[str, list[str]] = {"": []}
    name = ""
    for line in text.splitlines(keepends=True):
        if line.startswith("--- "):
            name = line[4:].strip()
            pieces[name] = []
        else:
            pieces[name].append(line)
    return {name: "".join(lines) for name, lines in pieces.items()}


def lay_out(case: Path, folder: Path) -> str:
    """Writes the files of a case; gives what is expected."""
    pieces = parts(case.read_text(encoding="utf-8"))
    expected = pieces.pop("expected")
    pieces.pop("")
    for name, text in pieces.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return expected


@pytest.mark.parametrize("case", CASES, ids=[case.stem for case in CASES])
def test_what_is_found_in_a_run(case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = lay_out(case, tmp_path)
    monkeypatch.chdir(tmp_path)
    report = check(["."], Options(deepspeed=NEWEST, packages={}), shipped_rules())
    assert not report.troubles
    found = "".join(
        f"{finding.location.source.path}:{finding.location.source.place(finding.location.span.start).line} "
        f"{finding.severity} {finding.code} {finding.name}\n"
        for finding in report.findings
        if finding.severity != "hint"
    )
    if os.environ.get("DSLINT_UPDATE_SCENARIOS"):
        head = case.read_text(encoding="utf-8").partition("--- expected\n")[0]
        case.write_text(f"{head}--- expected\n{found}", encoding="utf-8")
        return
    assert found == expected


EVERY = 3
"""One run of so many is mended."""


def mended() -> Fixed:
    policy = Policy(unsafe=True, takes_first=True)
    return fix(read(["."]), Options(deepspeed=NEWEST, packages={}), shipped_rules(), None, policy)


@pytest.mark.parametrize("case", CASES[::EVERY], ids=[case.stem for case in CASES[::EVERY]])
def test_a_mended_run_can_be_read_and_needs_no_second_mending(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(case, tmp_path)
    monkeypatch.chdir(tmp_path)
    for _, after in mended().files:
        Path(after.path).write_bytes(after.data)
        if after.path.endswith(".py"):
            ast.parse(after.text)
        elif after.path.endswith(".sh") and shutil.which("bash"):
            subprocess.run(["bash", "-n", after.path], check=True)
    assert [one.finding.code for one in mended().applied] == []

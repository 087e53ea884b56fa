"""Whole runs in the style of real ones: config, script and command, and what is found in them.

Each file in wholeruns/ has a sentence, files, and what is expected: `path:line code` of each error and warning.
`DSLINT_UPDATE_SCENARIOS=1` writes what is found; look at the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("case", CASES, ids=[case.stem for case in CASES])
def test_what_is_found_in_a_run(case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = parts(case.read_text(encoding="utf-8"))
    expected = pieces.pop("expected")
    pieces.pop("")
    for name, text in pieces.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
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

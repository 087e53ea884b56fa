"""Every Python file of the installed training libraries goes through `check`: no crash, no false alarm."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from dslint.documents.python_reader import read_script
from dslint.documents.source import read_source
from dslint.lint import check
from dslint.rulebook.cache import shipped_rules
from dslint.runs.releases import NEWEST
from dslint.runs.run import Options
from dslint.runs.script.reading import read_deeds
from dslint.runs.whole_runs import concerns_deepspeed

PACKAGES = ("accelerate", "deepspeed", "peft", "torch", "transformers")


def files_of(package: str) -> Iterator[Path]:
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    for folder in found.submodule_search_locations:
        yield from sorted(Path(folder).rglob("*.py"))


@pytest.mark.deepspeed
@pytest.mark.parametrize("package", PACKAGES)
def test_no_error_is_found_in_code_that_is_right(package: str) -> None:
    rules = shipped_rules()
    wrong = []
    for path in files_of(package):
        if concerns_deepspeed(read_source(path)):
            report = check([str(path)], Options(deepspeed=NEWEST), rules)
            assert not report.troubles
            wrong += [
                f"{path}:{finding.location.source.place(finding.location.span.start)} {finding.code} {finding.message}"
                for finding in report.findings
                if finding.severity == "error"
            ]
    assert not wrong


@pytest.mark.deepspeed
@pytest.mark.long
@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_can_be_gone_through(package: str) -> None:
    for path in files_of(package):
        read_deeds(read_script(read_source(path)), None)

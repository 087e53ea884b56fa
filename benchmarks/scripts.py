"""What reading scripts costs, and what is found in code that is surely right.

    python benchmarks/scripts.py [PACKAGE ...]           # torch, transformers, accelerate, deepspeed by default
    python benchmarks/scripts.py --readme                # also write the table into README.md

Every Python file of the installed packages goes through `check`. A file without a word of DeepSpeed costs a read
and a text search; the others are parsed and gone through. The last column counts findings, which in such code are
nearly always false alarms.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from readme import write_table

from dslint.documents.python_reader import read_script
from dslint.documents.source import Source, read_source
from dslint.lint import check
from dslint.rulebook.cache import shipped_rules
from dslint.runs.releases import NEWEST
from dslint.runs.run import Options
from dslint.runs.script.reading import read_deeds
from dslint.runs.whole_runs import concerns_deepspeed

PACKAGES = ("torch", "transformers", "accelerate", "deepspeed")


@dataclass
class Result:
    """What came of one package.

    Attributes:
        package: its name.
        files: number of Python files.
        about: number of them with a word of DeepSpeed.
        parsing: CPU seconds of ast.parse for these.
        reading: CPU seconds of going through their trees.
        others: CPU seconds of reading and searching all files.
        findings: number of findings by code and severity.
        places: where they are.
    """

    package: str
    files: int = 0
    about: int = 0
    parsing: float = 0.0
    reading: float = 0.0
    others: float = 0.0
    findings: Counter[tuple[str, str]] = field(default_factory=Counter)
    places: list[str] = field(default_factory=list)


def python_files(package: str) -> Iterator[Path]:
    """The Python files of an installed package."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        return
    for folder in found.submodule_search_locations:
        yield from sorted(Path(folder).rglob("*.py"))


def measure(package: str) -> Result:
    """Reads, and checks, every file of a package."""
    result = Result(package)
    rules = shipped_rules()
    for path in python_files(package):
        result.files += 1
        start = time.process_time()
        source = read_source(path)
        is_about = concerns_deepspeed(source)
        result.others += time.process_time() - start
        if is_about:
            result.about += 1
            _time(source, result)
            report = check([str(path)], Options(deepspeed=NEWEST), rules)
            for finding in report.findings:
                result.findings[finding.code, finding.severity] += 1
                place = finding.location.source.place(finding.location.span.start)
                result.places.append(f"{finding.location.source.path}:{place} {finding.code} {finding.message}")
    return result


def _time(source: Source, result: Result) -> None:
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ast.parse(source.text)
    parsed = time.process_time()
    script = read_script(source)
    begun = time.process_time()
    read_deeds(script, None)
    result.parsing += parsed - start
    result.reading += time.process_time() - begun


def table(results: Sequence[Result]) -> str:
    """The results as a Markdown table."""
    lines = [
        "| package | files | with a word of DeepSpeed | going through, in `ast.parse` of the same | findings |",
        "|---|---|---|---|---|",
    ]
    for one in results:
        ratio = one.reading / one.parsing if one.parsing else 0.0
        found = ", ".join(f"{count} × {code}" for (code, _), count in sorted(one.findings.items())) or "none"
        lines.append(f"| {one.package} | {one.files:,} | {one.about} | **{ratio:.1f}** | {found} |")
    return "\n".join(lines)


def main() -> int:
    """Measures all packages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("packages", nargs="*", default=list(PACKAGES))
    parser.add_argument("--readme", action="store_true", help="write the table into README.md")
    options = parser.parse_args()
    results = [measure(package) for package in options.packages]
    text = table(results)
    print(text)
    for one in results:
        print(f"{one.package}: {one.others:.1f} s for reading and searching all files")
        print(*one.places, sep="\n")
    if options.readme:
        write_table("scripts", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

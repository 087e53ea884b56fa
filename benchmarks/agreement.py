"""How far dslint agrees with DeepSpeed on a folder of real configs.

    python benchmarks/agreement.py FOLDER            # print the table
    python benchmarks/agreement.py FOLDER --readme   # also write it into README.md
    python benchmarks/agreement.py FOLDER --files    # also list the files behind each number

FOLDER holds `configs/*.json` and `labels.jsonl`: one JSON object a line with `file`, `stage` (how far DeepSpeed
came: "done", or where it stopped), `exception` and `message`, made by running real DeepSpeed at 8 ranks.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dslint.lint import check
from dslint.rulebook.cache import shipped_rules
from dslint.rulebook.finding import Finding
from dslint.runs.releases import NEWEST
from dslint.runs.run import Options

ROOT = Path(__file__).resolve().parent.parent
MARK = "<!-- agreement -->"
RANKS = 8


@dataclass(frozen=True)
class File:
    """One config: what DeepSpeed did with it, and what dslint says."""

    name: str
    stage: str
    reason: str
    findings: tuple[Finding, ...]

    @property
    def trains(self) -> bool:
        """Whether DeepSpeed initialised and stepped."""
        return self.stage == "done"

    @property
    def worst(self) -> str:
        """The worst severity that dslint reports; empty where it is silent."""
        found = {finding.severity for finding in self.findings}
        return next((severity for severity in ("error", "warning", "hint") if severity in found), "")


def read_labels(folder: Path) -> Mapping[str, Mapping[str, str]]:
    """What DeepSpeed did, by file."""
    lines = (folder / "labels.jsonl").read_text("utf-8").splitlines()
    labels = [json.loads(line) for line in lines if line.strip()]
    return {label["file"]: label for label in labels if "stage" in label}


def compare(folder: Path) -> list[File]:
    """Every labelled config with both opinions; what is installed beside DeepSpeed counts as unknown."""
    labels = read_labels(folder)
    paths = sorted(str(folder / "configs" / name) for name in labels)
    report = check(paths, Options(gpus=RANKS, deepspeed=NEWEST, packages={}), shipped_rules())
    found: dict[str, list[Finding]] = {}
    for finding in report.findings:
        found.setdefault(Path(finding.location.source.path).name, []).append(finding)
    return [
        File(
            name,
            label["stage"],
            f"{label.get('exception')}: {str(label.get('message'))[:90]}",
            tuple(found.get(name, ())),
        )
        for name, label in labels.items()
    ]


def table(files: Sequence[File]) -> str:
    """The numbers as a Markdown table."""
    refused = [file for file in files if not file.trains]
    trained = [file for file in files if file.trains]

    def count(part: Sequence[File], *severities: str) -> int:
        return sum(file.worst in severities for file in part)

    rows = [
        (f"configs that DeepSpeed {NEWEST.text} refuses at {RANKS} ranks", len(refused), ""),
        ("… reported with an error", count(refused, "error"), share(count(refused, "error"), len(refused))),
        ("… with a warning or a hint only", count(refused, "warning", "hint"), ""),
        (
            "… reported at all",
            len(refused) - count(refused, ""),
            share(len(refused) - count(refused, ""), len(refused)),
        ),
        ("configs that it trains", len(trained), ""),
        ("… reported with an error", count(trained, "error"), share(count(trained, "error"), len(trained))),
    ]
    lines = ["| what | configs | share |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {number} | {part} |" for name, number, part in rows)])


def share(part: int, whole: int) -> str:
    """A part as a percentage."""
    return f"{100 * part / whole:.1f} %" if whole else ""


def disagreements(files: Sequence[File]) -> list[str]:
    """A line for each file that one of the two accepts and the other does not."""
    return [
        f"{file.name}: DeepSpeed {file.stage} ({file.reason}); dslint {[found.code for found in file.findings]}"
        for file in files
        if file.trains == (file.worst == "error")
    ]


def write_readme(text: str) -> None:
    """Puts the table between the two marks of the README."""
    readme = ROOT / "README.md"
    before, _, rest = readme.read_text("utf-8").partition(MARK)
    _, _, after = rest.partition(MARK)
    readme.write_text(f"{before}{MARK}\n{text}\n{MARK}{after}", "utf-8")


def main() -> int:
    """Compares and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--readme", action="store_true", help="write the table into README.md")
    parser.add_argument("--files", action="store_true", help="list the files on which the two disagree")
    options = parser.parse_args()
    files = compare(options.folder)
    text = table(files)
    print(text)
    if options.files:
        print("\n".join(disagreements(files)))
    if options.readme:
        write_readme(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

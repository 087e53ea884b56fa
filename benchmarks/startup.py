"""How much CPU dslint takes, as multiples of `python -c pass` on the same machine in the same minute.

    python benchmarks/startup.py            # print the table
    python benchmarks/startup.py --readme   # also write it into README.md

Each command is run in turn with `python -c pass`; what counts is the median of the pairs' ratios of CPU time
(user and system, of the process and all that it started). Byte code is cached, as in an installed tool.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from readme import write_table

ROOT = Path(__file__).resolve().parent.parent
NOTHING = [sys.executable, "-c", "pass"]

CLEAN = {
    "train_micro_batch_size_per_gpu": 4,
    "gradient_accumulation_steps": 2,
    "gradient_clipping": 1.0,
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 2, "overlap_comm": True, "reduce_bucket_size": 5e8},
}
WRONG = {**CLEAN, "zero_optimization": {"stage": 2, "overlap_com": True}, "train_batch_size": "30"}


@dataclass(frozen=True)
class Case:
    """One line of the table: a command, and how many interpreters it may cost."""

    name: str
    arguments: Sequence[str]
    target: float
    cap: float
    runs: int = 15
    is_cold: bool = False


@dataclass(frozen=True)
class Result:
    """What a case cost, in interpreters."""

    case: Case
    ratio: float
    lowest: float
    highest: float


def cpu_seconds(command: Sequence[str], folder: Path) -> float:
    """User and system time of a command and its children, in seconds."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(ROOT)
    environment["XDG_CACHE_HOME"] = str(folder / "cache")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def measure(case: Case, folder: Path) -> Result:
    """The case against `python -c pass`, pair by pair."""
    command = [sys.executable, "-m", "dslint", *case.arguments]
    cpu_seconds(command, folder)
    ratios = []
    for _ in range(case.runs):
        if case.is_cold:
            forget(folder)
        ratios.append(cpu_seconds(command, folder) / cpu_seconds(NOTHING, folder))
    return Result(case, statistics.median(ratios), min(ratios), max(ratios))


def forget(folder: Path) -> None:
    """Removes what dslint remembers of files, as if it had never seen them."""
    for path in (folder / "cache" / "dslint").glob("results-*"):
        path.unlink()


def cases() -> list[Case]:
    """The lines of the table, with the budgets of the design."""
    run = ["--gpus", "8", "--gpu", "h100"]
    return [
        Case("`--version`", ["--version"], 3, 5),
        Case("`--help`", ["--help"], 3, 5),
        Case("`explain DS201`", ["explain", "DS201"], 3, 5),
        Case("`check one.json`, nothing wrong", ["check", "one.json", *run], 5, 12),
        Case("`check wrong.json`, an unknown key and a wrong type", ["check", "wrong.json", *run], 12, 24),
        Case("`check one.json train.py run.sh`", ["check", "run/one.json", "run/train.py", "run/run.sh"], 12, 24),
        Case("a folder of 1,000 configs, new ones", ["check", "many", *run], 150, 400, runs=3, is_cold=True),
        Case("the same folder again", ["check", "many", *run], 15, 30, runs=5),
    ]


def prepare(folder: Path) -> None:
    """The files that the cases check."""
    (folder / "one.json").write_text(json.dumps(CLEAN, indent=2))
    (folder / "wrong.json").write_text(json.dumps(WRONG, indent=2))
    run = folder / "run"
    run.mkdir(exist_ok=True)
    (run / "one.json").write_text(json.dumps({**CLEAN, "zero_optimization": {"stage": 3}}, indent=2))
    (run / "train.py").write_text((ROOT / "examples" / "run" / "train.py").read_text("utf-8"))
    command = (ROOT / "examples" / "run" / "run.sh").read_text("utf-8")
    (run / "run.sh").write_text(command.replace("ds_config.json", "one.json"))
    for number in range(1000):
        sub = folder / "many" / str(number % 20)
        sub.mkdir(parents=True, exist_ok=True)
        config = {**CLEAN, "gradient_accumulation_steps": number + 1}
        (sub / f"ds_config_{number}.json").write_text(json.dumps(config, indent=2))


def table(results: Sequence[Result]) -> str:
    """The results as a Markdown table."""
    lines = ["| command | CPU, in `python -c pass` | lowest to highest | target | cap |", "|---|---|---|---|---|"]
    lines += [
        f"| {result.case.name} | **{result.ratio:.1f}** | {result.lowest:.1f} to {result.highest:.1f} "
        f"| {result.case.target:g} | {result.case.cap:g} |"
        for result in results
    ]
    lines += ["", f"Python {platform.python_version()}, {platform.machine()}, median of pairs."]
    return "\n".join(lines)


def main(report: Callable[[str], None] = print) -> int:
    """Measures all cases; exit code 1 where one is above its cap."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readme", action="store_true", help="write the table into README.md")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="dslint-bench-"))
    try:
        prepare(folder)
        results = [measure(case, folder) for case in cases()]
    finally:
        shutil.rmtree(folder)
    text = table(results)
    report(text)
    if options.readme:
        write_table("benchmark", text)
    return 1 if any(result.ratio > result.case.cap for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())

"""How fast smoke is: trials of a warm server, and what the server saves.

python benchmarks/smoke.py             # print the table
python benchmarks/smoke.py --readme    # also write it into README.md
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from readme import write_table

from dslint.smoke.client import SmokeServer
from dslint.smoke.trial import Trial
from dslint.smoke.verdict import judge

REPEATS = 7
RANKS = 8
CONFIGS = 100
PROCESSES = 5
"""Processes of their own that are timed, of which CONFIGS would be needed."""


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--readme", action="store_true", help="write the table into README.md")
    options = parser.parse_args()
    text = table(options.device)
    print(text)
    if options.readme:
        write_table("smoke", text)


def table(device: str) -> str:
    """All figures as a Markdown table."""
    lines = ["| what | seconds | target |", "|---|---|---|"]
    with SmokeServer(device=device) as server:
        on_gpu = server.hello["device"] == "cuda"
        name = try_one(server, 0)
        for stage in range(4):
            seconds = statistics.median(timed(try_one, server, stage) for _ in range(REPEATS))
            target = "4" if on_gpu else "1" if stage == 3 else "0.3"
            lines.append(f"| a trial on the warm server, ZeRO stage {stage} | **{seconds:.2f}** | {target} |")
        together = sum(timed(try_one, server, number % 4) for number in range(CONFIGS))
    apart = sum(timed(try_alone, device, number % 4) for number in range(PROCESSES)) / PROCESSES * CONFIGS
    lines += [
        f"| {CONFIGS} configs through one warm server, all stages in turn | **{together:.0f}** | |",
        f"| the same, a process each ({PROCESSES} of them timed) | {apart:.0f} | |",
        f"| … how many times longer | **{apart / together:.0f}** | 30 |",
    ]
    return "\n".join([*lines, "", f"{name}, Python {sys.version.split()[0]}; trials: the median of {REPEATS}."])


def try_one(server: SmokeServer, stage: int) -> str:
    """A whole trial: two steps, weights and checkpoint saved, loaded, one more step; the device's name."""
    verdict = judge([server.run(trial(stage))], mode="simulated", world=RANKS)
    assert verdict.passed, verdict
    return str(verdict.seen["device"])


def try_alone(device: str, stage: int) -> None:
    """The same in a process of its own, which has to import torch and DeepSpeed."""
    with SmokeServer(device=device) as server:
        try_one(server, stage)


def trial(stage: int) -> Trial:
    """A config in bf16 with an optimizer that needs no op."""
    config = {
        "train_micro_batch_size_per_gpu": 2,
        "bf16": {"enabled": True},
        "zero_optimization": {"stage": stage},
    }
    return Trial(json.dumps(config), gpus=RANKS, bf16=True)


def timed(work: Callable[..., object], *arguments: object) -> float:
    """Wall-clock seconds of a call."""
    start = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()

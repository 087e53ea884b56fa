"""Trains on real ranks and on simulated ones, and writes down what both told: outcome, losses, memory by rank.

    python scripts/compare_ranks.py --device cpu [--ranks 2 4] [--write FILE.json]

Real ranks talk through NCCL where each has a GPU of its own, else through gloo, on a GPU that they share or on the
CPU. README.md and rules/PROOFS.md are made from the records by `python scripts/make_docs.py`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from dslint.smoke.client import SmokeServer
from dslint.smoke.environment import SmokeError
from dslint.smoke.trial import Trial
from dslint.smoke.verdict import Verdict, judge

WEIGHT = 1_000_000
"""The elements above which stage 3 splits a weight: each of the model's four large ones has a few more."""

BUCKET = 500_000
"""Elements of a bucket: DeepSpeed's default of 500 million would be nearly all of the memory of a small model."""


MACHINE = ("device", "torch", "deepspeed")


def main() -> int:
    """Makes the comparison; exit code 1 if a training failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], required=True)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4], help="numbers of ranks (default: 2 4)")
    parser.add_argument("--write", type=Path, metavar="FILE.json", help="the record, beside the proofs")
    options = parser.parse_args()
    with SmokeServer(device=options.device) as server:
        if options.device == "cuda" and not server.hello["count"]:
            raise SmokeError("torch sees no GPU here")
        rows = list(compared(server, options.ranks))
    if options.write is not None:
        names = ("device", "torch", "deepspeed")
        record = {
            **{name: rows[0].pop(name) for name in names},
            "weight": WEIGHT,
            "bucket": BUCKET,
            "smokes": rows,
        }
        for row in rows[1:]:
            for name in names:
                row.pop(name)
        options.write.parent.mkdir(parents=True, exist_ok=True)
        options.write.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 1 if any(row["outcome"] != "passed" for row in rows) else 0


def compared(server: SmokeServer, numbers: list[int]) -> Iterator[dict[str, Any]]:
    """ZeRO 1 to 3 in both precisions, with and without whole weights in a save, on each number of ranks."""
    for ranks in numbers:
        for stage in (1, 2, 3):
            for precision in ("bf16", "fp16"):
                for gather in (True, False) if stage == 3 else (True,):
                    yield both_ways(server, Trial(config(server, stage, precision, gather), gpus=ranks))


def both_ways(server: SmokeServer, plain: Trial) -> dict[str, Any]:
    """What real ranks and a simulated one told about the same config."""
    here = int(server.hello["count"])
    abilities = None if here else True
    trial = dataclasses.replace(
        plain, fp16=abilities, bf16=abilities, metered=True, detailed=True, shared=0 < here < plain.ranks
    )
    simulated = judge([server.run(trial)], mode="simulated", world=trial.ranks)
    real = judge(server.run_ranks(dataclasses.replace(trial, mode="real")), mode="real", world=trial.ranks)
    row = as_data(json.loads(plain.config or ""), simulated, real, through(here, trial))
    print(json.dumps(row), flush=True)
    return row


def through(here: int, trial: Trial) -> str:
    """What the real ranks talk through, and on what."""
    if trial.shared:
        return f"gloo, {'one GPU' if here == 1 else f'{here} GPUs'} for all"
    return "NCCL, a GPU each" if here else "gloo, on the CPU"


def as_data(config: dict[str, Any], simulated: Verdict, real: Verdict, way: str) -> dict[str, Any]:
    """Both verdicts for the record; memory in bytes, by rank."""
    zero = config["zero_optimization"]
    failed = next((one.reason for one in (simulated, real) if not one.passed), "")
    return {
        **{name: real.seen.get(name, "") for name in MACHINE},
        "zero_stage": zero["stage"],
        "precision": "bf16" if "bf16" in config else "fp16",
        "gathers": zero["stage3_gather_16bit_weights_on_model_save"],
        "ranks": real.ranks,
        "through": way,
        "outcome": f"failed: {failed}" if failed else "passed",
        "losses": list(real.losses),
        "saved": [simulated.seen.get("saved"), real.seen.get("saved")],
        "unlike": unlike(simulated, real),
        "simulated_peak": max(simulated.peak_memory, default=0),
        "real_peaks": list(real.peak_memory),
        "simulated_seconds": round(sum(simulated.seconds.values()), 2),
        "real_seconds": round(sum(real.seconds.values()), 2),
    }


def unlike(simulated: Verdict, real: Verdict) -> list[str]:
    """The settings of rank 0's engine that differ: none should."""
    left, right = (one.seen.get("settings", {}) for one in (simulated, real))
    return sorted(name for name in {*left, *right} if left.get(name) != right.get(name))


def config(server: SmokeServer, stage: int, precision: str, gather: bool) -> str:
    """A config with DeepSpeed's own optimizer on a GPU, and on the CPU, where ops build slowly, with torch's."""
    on_gpu = server.hello["device"] == "cuda"
    zero = {
        "stage": stage,
        "reduce_bucket_size": BUCKET,
        "allgather_bucket_size": BUCKET,
        "stage3_prefetch_bucket_size": BUCKET,
        "stage3_max_live_parameters": BUCKET,
        "stage3_param_persistence_threshold": WEIGHT,
        "stage3_gather_16bit_weights_on_model_save": gather,
    }
    return json.dumps(
        {
            "train_micro_batch_size_per_gpu": 2,
            "gradient_accumulation_steps": 2,
            precision: {"enabled": True},
            "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": not on_gpu}},
            "zero_optimization": zero,
        }
    )


if __name__ == "__main__":
    sys.exit(main())

"""On a machine with a GPU: proves the rules there, makes whole smokes, and writes both down for rules/PROOFS.md.

    python scripts/prove_on_gpu.py [--jobs 8] [--write rules/proofs/NAME.json]

Needs torch with CUDA, DeepSpeed, and nvcc for DeepSpeed's ops, which are built at first use.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from dslint.smoke.client import SmokeServer
from dslint.smoke.launch import run_real
from dslint.smoke.listening import Heard
from dslint.smoke.trial import Trial
from dslint.smoke.verdict import judge

RANKS = 8


def main() -> int:
    """Makes the smokes, then the proofs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=8, help="processes that try examples (default: 8)")
    parser.add_argument("--write", type=Path, help="the record (default: rules/proofs/NAME-OF-THE-GPU.json)")
    parser.add_argument("--only", choices=["smokes", "proofs"], help="one half of it")
    options = parser.parse_args()
    with SmokeServer(device="cuda") as server:
        device = told(1, "bf16", "simulated", 1, [server.run(Trial(config(1, "bf16")))])["device"]
        smokes = [] if options.only == "proofs" else list(all_smokes(server))
    target = options.write or ROOT / "rules" / "proofs" / f"{device.lower().replace(' ', '-')}.json"
    failed = 0 if options.only == "smokes" else prove(target, options.jobs)
    if smokes:
        write_smokes(target, smokes)
    return 1 if failed or any(one["outcome"] != "passed" for one in smokes) else 0


def prove(target: Path, jobs: int) -> int:
    """Prove all rules on the GPU; the exit code."""
    command = [sys.executable, "-m", "dslint.smoke.prove", "--device", "cuda", "--jobs", str(jobs)]
    return subprocess.run([*command, "--write", str(target)], cwd=ROOT, check=False).returncode


def write_smokes(target: Path, smokes: list[dict[str, Any]]) -> None:
    """Put the smokes beside the proofs."""
    record = json.loads(target.read_text("utf-8")) if target.exists() else {}
    record["smokes"] = [{name: value for name, value in one.items() if name != "device"} for one in smokes]
    target.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")


def all_smokes(server: SmokeServer) -> Iterator[dict[str, Any]]:
    """ZeRO 1 to 3 in both precisions: one real rank, the same rank simulated, and rank 0 of eight."""
    here = int(server.hello["count"])
    for stage in (1, 2, 3):
        for precision in ("bf16", "fp16"):
            trial = Trial(config(stage, precision), gpus=here)
            yield told(stage, precision, "real", here, run_real(trial, python=sys.executable, device="cuda"))
            yield told(stage, precision, "simulated", here, [server.run(trial)])
            many = Trial(config(stage, precision), gpus=RANKS)
            yield told(stage, precision, "simulated", RANKS, [server.run(many)])


def config(stage: int, precision: str) -> str:
    """A config whose optimizer is DeepSpeed's own on the GPU."""
    return json.dumps(
        {
            "train_micro_batch_size_per_gpu": 8,
            "gradient_accumulation_steps": 2,
            precision: {"enabled": True},
            "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
            "zero_optimization": {"stage": stage, "stage3_gather_16bit_weights_on_model_save": True},
        }
    )


def told(stage: int, precision: str, mode: str, ranks: int, heard: list[Heard]) -> dict[str, Any]:
    """A smoke's verdict for the record."""
    verdict = judge(heard, mode=mode, world=ranks)
    print(
        f"ZeRO {stage} {precision} {mode} {ranks}: {verdict.reason or 'passed'} {dict(verdict.seconds)}",
        flush=True,
    )
    return {
        "device": verdict.seen.get("device", ""),
        "zero_stage": stage,
        "precision": precision,
        "mode": mode,
        "ranks": ranks,
        "outcome": "passed" if verdict.passed else f"failed: {verdict.reason}",
        "losses": [loss for loss in verdict.losses if loss is not None],
        "saved": verdict.seen.get("saved"),
        "peak_memory": max(verdict.peak_memory, default=0),
        "seconds": round(sum(verdict.seconds.values()), 2),
    }


if __name__ == "__main__":
    sys.exit(main())

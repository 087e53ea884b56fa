"""On a machine with GPUs: proves the rules there, tries real ranks, and writes it all down for rules/PROOFS.md.

    python scripts/prove_on_gpu.py [--jobs 8] [--ranks 2 4] [--only rules real fixes ranks]

Needs torch with CUDA, DeepSpeed, and nvcc for DeepSpeed's ops, which are built at first use. Real ranks talk
through NCCL where there is a GPU for each, else through gloo. NVLink multicast stays off.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from dslint.smoke.client import SmokeServer
from dslint.smoke.trial import Trial

PARTS = ("rules", "real", "fixes", "ranks")
"""What is tried: the examples, the same with every rank started, what fixes make of them, whole smokes."""


def main() -> int:
    """Makes all records that are asked for; exit code 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=8, help="processes that try examples (default: 8)")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4], help="of whole smokes (default: 1 2 4)")
    parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS, help="parts of it")
    parser.add_argument("--folder", type=Path, default=ROOT / "rules" / "proofs", help="where the records go")
    options = parser.parse_args()
    name = f"{name_of_the_gpu()}.json"
    failed = [part for part in options.only if run(command(part, options, name)) != 0]
    return 1 if failed else 0


def name_of_the_gpu() -> str:
    """The GPU's name as part of a file's name."""
    with SmokeServer(device="cuda") as server:
        seen = server.run(Trial('{"train_micro_batch_size_per_gpu": 1}')).seen
    return str(seen["device"]).lower().replace(" ", "-")


def command(part: str, options: argparse.Namespace, name: str) -> list[str]:
    """The command line of a part."""
    if part == "ranks":
        numbers = [str(number) for number in options.ranks]
        script = [str(ROOT / "scripts" / "compare_ranks.py"), "--device", "cuda", "--ranks", *numbers]
        return [*script, "--write", str(options.folder / "ranks" / name)]
    kind = [] if part == "rules" else [f"--{part}"]
    target = options.folder / ("" if part == "rules" else part) / name
    prove = ["-m", "dslint.smoke.prove", *kind, "--device", "cuda", "--jobs", str(options.jobs)]
    return [*prove, "--write", str(target)]


def run(arguments: list[str]) -> int:
    """Run Python with these arguments; its exit code."""
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

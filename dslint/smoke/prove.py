"""Runs the examples of the rules on real DeepSpeed: `python -m dslint.smoke.prove [CODE…]`.

Exit codes as everywhere: 0 if every claim holds, 1 if one doesn't, 2 if the job could not be done.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dslint.data import data_folder
from dslint.rulebook.loader import RuleFile, load_rules
from dslint.smoke.client import SmokeServer
from dslint.smoke.environment import SmokeError
from dslint.smoke.ops import SERVED
from dslint.smoke.proofs import Proof, Prover
from dslint.smoke.trial import Trial


def main() -> int:
    """Prove the rules that the command line names, or all."""
    options = _options()
    try:
        files = list(_chosen(options.codes))
        with SmokeServer(python=sys.executable, device=options.device, ops=SERVED) as server:
            proofs = list(_told(Prover(server).prove(files)))
            if options.write is not None:
                _write(options.write, _record(server, proofs))
    except SmokeError as error:
        print(f"dslint: {error}", file=sys.stderr)
        return 2
    run = [proof for proof in proofs if not proof.not_run]
    holding = [proof for proof in run if proof.holds]
    print(
        f"{len(proofs)} examples: {len(holding)} proved, {len(run) - len(holding)} not, "
        f"{len(proofs) - len(run)} not run"
    )
    return 0 if len(holding) == len(run) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m dslint.smoke.prove", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("codes", nargs="*", metavar="CODE", help="rules to prove (default: all)")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--write", type=Path, metavar="FILE.json", help="write down what was seen")
    return parser.parse_args()


def _chosen(codes: list[str]) -> Iterator[RuleFile]:
    files = {file.rule.code: file for file in load_rules(Path(data_folder("rules")))}
    for code in codes or files:
        if code not in files:
            raise SmokeError(f"there is no rule {code}")
        yield files[code]


def _told(proofs: Iterable[Proof]) -> Iterator[Proof]:
    for proof in proofs:
        for complaint in proof.complaints:
            print(f"{proof.code} {proof.example}: {complaint}", flush=True)
        yield proof


def _record(server: SmokeServer, proofs: list[Proof]) -> dict[str, Any]:
    """What was seen, with what it was seen on."""
    seen = server.run(Trial('{"train_micro_batch_size_per_gpu": 1}', fp16=True, bf16=True)).seen
    return {
        **{name: seen[name] for name in ("device", "torch", "deepspeed")},
        "proofs": [asdict(proof) for proof in proofs],
    }


def _write(path: Path, record: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

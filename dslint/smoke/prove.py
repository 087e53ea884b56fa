"""Runs the examples of the rules on real DeepSpeed: `python -m dslint.smoke.prove [CODE…]`.

Exit codes as everywhere: 0 if every claim holds, 1 if one doesn't, 2 if the job could not be done.
"""

from __future__ import annotations

import argparse
import json
import queue
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dslint.data import data_folder
from dslint.rulebook.cases import Example, examples, mended_examples
from dslint.rulebook.loader import RuleFile, load_rules
from dslint.smoke.client import SmokeServer
from dslint.smoke.environment import SmokeError
from dslint.smoke.ops import SERVED
from dslint.smoke.proofs.mended import prove_mended
from dslint.smoke.proofs.prover import Proof, Prover
from dslint.smoke.trial import Trial

Prove = Callable[[Prover, RuleFile, Example], Proof]
Task = tuple[int, RuleFile, Example]


def main() -> int:
    """Prove the rules that the command line names, or all."""
    options = _options()
    try:
        tasks = list(_tasks(options.codes, fixes=options.fixes))
        proofs, device = _prove(tasks, options)
    except SmokeError as error:
        print(f"dslint: {error}", file=sys.stderr)
        return 2
    if options.write is not None:
        _write(options.write, device, [asdict(proof) for proof in proofs], fixes=options.fixes)
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
    parser.add_argument("codes", nargs="*", metavar="CODE", help="rules to prove: DS201, DS2, ... (default: all)")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="processes that try examples (default: 1)"
    )
    parser.add_argument(
        "--real",
        action="store_true",
        help="start every rank of every example, through NCCL where there are GPUs enough, else through gloo",
    )
    parser.add_argument(
        "--fixes",
        action="store_true",
        help="try what fixes make of the bad examples, where that isn't the good one",
    )
    parser.add_argument(
        "--write", type=Path, metavar="FILE.json", help="write down what was seen; other rules in the file stay"
    )
    return parser.parse_args()


def _tasks(codes: Sequence[str], *, fixes: bool) -> Iterator[Task]:
    """Every example of the chosen rules, or every mended one, with its place in the result."""
    files = load_rules(Path(data_folder("rules")))
    for code in codes:
        if not any(file.rule.code.startswith(code) for file in files):
            raise SmokeError(f"there is no rule {code}")
    chosen = [file for file in files if file.rule.code.startswith(tuple(codes) or "")]
    of_rule = mended_examples if fixes else examples
    pairs = [(file, example) for file in chosen for example in of_rule(file.text)]
    for number, (file, example) in enumerate(pairs):
        yield number, file, example


def _prove(tasks: Sequence[Task], options: argparse.Namespace) -> tuple[list[Proof], dict[str, Any]]:
    """The proofs in the order of the tasks, and what they were made on."""
    waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)
    prove = prove_mended if options.fixes else Prover.prove_example

    def work(job: int) -> tuple[dict[int, Proof], dict[str, Any]]:
        turn = job % len(SERVED)  # each begins with another op, so that they are built side by side
        with SmokeServer(device=options.device, ops=[*SERVED[turn:], *SERVED[:turn]]) as server:
            prover = Prover(server, all_real=options.real)
            return dict(_work_off(waiting, prover, prove)), _device(server, real=options.real)

    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(work, range(options.jobs)))
    found = {number: proof for proofs, _ in results for number, proof in proofs.items()}
    return [found[number] for number, _, _ in tasks], results[0][1]


def _work_off(waiting: queue.SimpleQueue[Task], prover: Prover, prove: Prove) -> Iterator[tuple[int, Proof]]:
    while True:
        try:
            number, file, example = waiting.get_nowait()
        except queue.Empty:
            return
        proof = prove(prover, file, example)
        for complaint in proof.complaints:
            print(f"{proof.code} {proof.example}: {complaint}", flush=True)
        yield number, proof


def _device(server: SmokeServer, *, real: bool) -> dict[str, Any]:
    """What the proofs are made on; of real ranks also what they talk through."""
    seen = server.run(Trial('{"train_micro_batch_size_per_gpu": 1}', fp16=True, bf16=True)).seen
    here = int(server.hello["count"])
    through = {"through": f"NCCL up to {here} ranks, gloo beyond" if here > 1 else "gloo"} if real else {}
    return {**{name: seen[name] for name in ("device", "torch", "deepspeed")}, **through}


def _write(path: Path, device: Mapping[str, str], proofs: Sequence[Mapping[str, Any]], *, fixes: bool) -> None:
    """Write the proofs down, in the order of the rules; those of rules that were not tried now stay."""
    known = _known(path, device)
    found = {(proof["code"], proof["example"]): proof for proof in [*known.get("proofs", ()), *proofs]}
    order = [(file.rule.code, example.name) for _, file, example in _tasks((), fixes=fixes)]
    record = {**known, **device, "proofs": [found[key] for key in order if key in found]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _known(path: Path, device: Mapping[str, str]) -> Mapping[str, Any]:
    """What the file holds of the same device and versions; nothing if it is about others."""
    try:
        record: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return record if all(record.get(name) == value for name, value in device.items()) else {}


if __name__ == "__main__":
    sys.exit(main())

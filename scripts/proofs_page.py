"""The page rules/PROOFS.md: what real DeepSpeed did with the examples of the rules."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dslint.rulebook.rule_text import RuleText

Record = Mapping[str, Any]
"""What `python -m dslint.smoke.prove --write` wrote down."""


INTRODUCTION = """\
# Proofs

Each rule's example that breaks it, and the one that keeps it, on real DeepSpeed: a tiny transformer is trained
under the config as rank 0 of 8 simulated ranks (or as many as the example says), saved and loaded. The table
says what the bad one came to; wherever it was run, the good one trained and came back from its checkpoint. MiB:
the most that torch held on the GPU. To repeat it:

```sh
pip install -e '.[test]'
python -m dslint.smoke.prove --device cpu --write rules/proofs/cpu.json && python scripts/make_docs.py
python -m dslint.smoke.prove --fixes --device cpu --write rules/proofs/fixes/cpu.json
python scripts/prove_on_gpu.py && python scripts/make_docs.py  # with a GPU: the proofs, and whole smokes
```
"""


def proofs_page(folder: Path, rules: Sequence[RuleText]) -> str:
    """What real DeepSpeed did with every example of every rule, a column for each device.

    Args:
        folder: the records of the devices, a file each.
        rules: all rules.
    """
    records = read_records(folder)
    seen = [{(proof["code"], proof["example"]): proof for proof in record["proofs"]} for record in records]
    rows = [
        proof_row(rule, example["name"], [proofs.get((rule.code, example["name"])) for proofs in seen])
        for rule in rules
        for example in rule.data["examples"]
    ]
    heads = [f"{record['device']}, torch {record['torch']}, DeepSpeed {record['deepspeed']}" for record in records]
    return "\n".join(
        [
            INTRODUCTION,
            *[counted(head, record) for head, record in zip(heads, records, strict=True)],
            *fixes_lines(read_records(folder / "fixes")),
            *[line for record in records for line in smokes_table(record)],
            "",
            "## Examples",
            "",
            f"| rule | example | {' | '.join(heads)} |",
            f"|---|---|{'---|' * len(heads)}",
            *rows,
            "",
        ]
    )


def read_records(folder: Path) -> list[Record]:
    """The records of all devices, the CPU's first."""
    paths = sorted(folder.glob("*.json"), key=lambda path: (path.stem != "cpu", path.stem))
    return [json.loads(path.read_text("utf-8")) for path in paths]


def fixes_lines(records: Sequence[Record]) -> list[str]:
    """What came of the files that fixes make of the bad examples, and why some were not run."""
    lines: list[str] = []
    for record in records:
        proofs = record["proofs"]
        run = [proof for proof in proofs if not proof["not_run"]]
        failed = [proof for proof in run if proof["complaints"]]
        lines.append(
            f"- {record['device']}, what fixes make of the bad examples where that isn't the good one: "
            f"{len(run) - len(failed)} of {len(run)} that were run train or come to their end; "
            f"{len(proofs) - len(run)} were not run."
        )
        lines += [
            f"  - {proof['code']} {proof['example']}: {proof['complaints'][0].splitlines()[0]}" for proof in failed
        ]
        reasons = Counter(proof["not_run"] for proof in proofs if proof["not_run"])
        lines += [f"  - {count} not run: {reason}" for reason, count in reasons.most_common()]
    return lines


def counted(head: str, record: Record) -> str:
    """One line on what came of all examples on a device."""
    proofs = record["proofs"]
    rules = {proof["code"] for proof in proofs}
    proved = {proof["code"] for proof in proofs if not proof["not_run"] and not proof["complaints"]}
    run = [proof for proof in proofs if not proof["not_run"]]
    held = sum(not proof["complaints"] for proof in run)
    return (
        f"- {head}: {held} of {len(run)} examples that were run show their rule's claim; "
        f"{len(proved)} of {len(rules)} rules are proved, {len(proofs) - len(run)} examples were not run."
    )


def proof_row(rule: RuleText, example: str, proofs: Sequence[Record | None]) -> str:
    """One example on all devices."""
    cells = " | ".join(proof_cell(proof) for proof in proofs)
    return f"| [{rule.code}]({rule.file}) {rule.name} | {example} | {cells} |"


def proof_cell(proof: Record | None) -> str:
    """What was seen on one device."""
    if proof is None:
        return "not run yet"
    if proof["not_run"]:
        return f"not run: {proof['not_run']}"
    if proof["complaints"]:
        return "**" + "; ".join(proof["complaints"]).replace("|", "/") + "**"
    memory = f" ({proof['peak_memory'] / 2**20:.0f} MiB)" if proof["peak_memory"] else ""
    return str(proof["shown"]).replace("|", "/") + memory


def smokes_table(record: Record) -> list[str]:
    """The whole smokes that were made on a GPU, real ranks beside simulated ones."""
    if "smokes" not in record:
        return []
    rows = [
        f"| {one['zero_stage']} | {one['precision']} | {one['ranks']} {one['mode']} | {one['outcome']} "
        f"| {', '.join(f'{loss:.3f}' for loss in one['losses'])} "
        f"| {one['peak_memory'] / 2**20:.1f} | {one['seconds']:.1f} |"
        for one in record["smokes"]
    ]
    return [
        "",
        f"## Smokes on {record['device']}",
        "",
        "Losses of simulated groups of several ranks are shown, not judged: their sums are not real. Seconds are",
        "those of the trial itself, from reading the config to the step after the restore.",
        "",
        "| ZeRO stage | precision | ranks | outcome | losses | peak memory, MiB | seconds |",
        "|---|---|---|---|---|---|---|",
        *rows,
    ]

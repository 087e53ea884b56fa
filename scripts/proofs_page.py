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
under the config as rank 0 of 8 simulated ranks (or as many as the example says), saved and loaded; a script is run
under its launcher. Where the effect needs peers, or the example says so, each rank is a process of its own. The
table says what the bad one came to; wherever it was run, the good one trained and came back from its checkpoint.
MiB: the most that torch held on the GPU. To repeat it:

```sh
pip install -e '.[test]'
python -m dslint.smoke.prove --device cpu --write rules/proofs/cpu.json
python -m dslint.smoke.prove --fixes --device cpu --write rules/proofs/fixes/cpu.json
python -m dslint.smoke.prove --real --device cpu --write rules/proofs/real/cpu.json
python scripts/compare_ranks.py --device cpu --write rules/proofs/ranks/cpu.json
python scripts/prove_on_gpu.py  # all of it on GPUs, through NCCL with --ranks where each rank has one
python scripts/make_docs.py
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
            *real_lines(read_records(folder / "real")),
            *fixes_lines(read_records(folder / "fixes")),
            *[line for record in read_records(folder / "ranks") for line in ranks_table(record)],
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


def real_lines(records: Sequence[Record]) -> list[str]:
    """What came of the examples when every rank was a process of its own, and why some were not run."""
    lines: list[str] = []
    for record in records:
        run = [proof for proof in record["proofs"] if not proof["not_run"]]
        failed = [proof for proof in run if proof["complaints"]]
        rules = {proof["code"] for proof in run} - {proof["code"] for proof in failed}
        lines.append(
            f"- {record['device']}, every rank a process of its own ({record['through']}): "
            f"{len(run) - len(failed)} of {len(run)} examples that were run show their rule's claim, those of "
            f"{len(rules)} rules; {len(record['proofs']) - len(run)} were not run."
        )
        lines += [*failures(failed), *reasons(record["proofs"])]
    return lines


def failures(failed: Sequence[Record]) -> list[str]:
    """A line for each proof that failed."""
    return [
        f"  - {proof['code']} {proof['example']}: {proof['complaints'][0].splitlines()[0]}" for proof in failed
    ]


def reasons(proofs: Sequence[Record]) -> list[str]:
    """Why some were not run, the most frequent reason first."""
    counts = Counter(proof["not_run"] for proof in proofs if proof["not_run"])
    return [f"  - {count} not run: {reason}" for reason, count in counts.most_common()]


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
        lines += [*failures(failed), *reasons(proofs)]
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


def ranks_table(record: Record) -> list[str]:
    """Whole smokes on real ranks beside the same on simulated ones."""
    rows = [
        f"| {one['zero_stage']} | {one['precision']} | {'yes' if one['gathers'] else 'no'} | {one['ranks']} "
        f"| {one['through']} | {one['outcome']} | {', '.join(f'{loss:.3f}' for loss in one['losses'])} "
        f"| {', '.join(mebibytes(peak) for peak in one['real_peaks'])} | {mebibytes(one['simulated_peak'])} "
        f"| {one['real_seconds']:.1f}, {one['simulated_seconds']:.1f} |"
        for one in record["smokes"]
    ]
    return [
        "",
        f"## Real and simulated ranks on {record['device']}",
        "",
        "The same config on real ranks and as rank 0 of as many simulated ones: every setting of its engine was",
        "the same. Peak memory is that of tensors over the whole trial, in MiB, by rank. Losses are those of the",
        "real ranks, equal on all of them. Seconds: of the real ranks, of the simulated one.",
        "",
        "| ZeRO stage | precision | whole weights saved | ranks | through | outcome | losses | real peaks "
        "| simulated peak | seconds |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *rows,
    ]


def mebibytes(size: int) -> str:
    """Bytes as MiB."""
    return f"{size / 2**20:.1f}"


def memory_table(folder: Path) -> str:
    """Simulated peak memory beside that of real ranks, a row for each device and number of ranks.

    Args:
        folder: the records of scripts/compare_ranks.py, a file for each device.
    """
    lines = [
        "| real ranks | ZeRO 1 | ZeRO 2 | ZeRO 3 | simulated : real |",
        "|---|---|---|---|---|",
    ]
    for record in read_records(folder):
        for ranks, through in dict.fromkeys((one["ranks"], one["through"]) for one in record["smokes"]):
            ours = [one for one in record["smokes"] if (one["ranks"], one["through"]) == (ranks, through)]
            peaks = " | ".join(
                stage_cell([one for one in ours if one["zero_stage"] == stage]) for stage in (1, 2, 3)
            )
            lines.append(f"| {ranks} on {record['device']} ({through}) | {peaks} | **{ratio_told(ours)}** |")
    return "\n".join(lines)


def stage_cell(smokes: Sequence[Record]) -> str:
    """The peaks of all ranks in both precisions, with and without whole weights in a save."""
    peaks = [peak for one in smokes for peak in one["real_peaks"]]
    least, most = mebibytes(min(peaks)), mebibytes(max(peaks))
    return f"{least} MiB" if least == most else f"{least} to {most} MiB"


def ratio_told(smokes: Sequence[Record]) -> str:
    """The smallest and the largest ratio over all ranks."""
    ratios = [one["simulated_peak"] / peak for one in smokes for peak in one["real_peaks"]]
    least, most = f"{min(ratios):.3f}", f"{max(ratios):.3f}"
    return least if least == most else f"{least} to {most}"

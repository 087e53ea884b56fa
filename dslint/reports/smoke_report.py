"""What smoke saw, as text and as JSON (whose form is the contract in schemas/smoke.schema.json)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from dslint import __version__
from dslint.reports.style import Style
from dslint.smoke.peers.in_words import ranks_told
from dslint.smoke.peers.stacks import shown_lines
from dslint.smoke.peers.standing import RUNS, WAITS
from dslint.smoke.smoking import Smoked
from dslint.smoke.verdict import Verdict

MEGA = 2**20
OUTPUT_LINES = 12
"""Lines of a failed trial's output that are shown."""


def smoke_text(smoked: Smoked, style: Style) -> str:
    """One file's verdict in a few lines."""
    return "\n".join(_lines(smoked, style))


def _lines(smoked: Smoked, style: Style) -> Iterator[str]:
    verdict = smoked.verdict
    word = style.green("passed") if verdict.passed else style.severity("error", "failed")
    yield f"{word} {style.bold(smoked.path)}: {_where(smoked)}"
    setup = _setup(verdict.seen)
    if setup:
        yield f"  {setup}"
    if not verdict.passed:
        yield from (f"  {style.bold(line.strip())}" for line in verdict.reason.splitlines() if line.strip())
    for finding in smoked.findings:
        place = finding.location.source.place(finding.location.span.start)
        where = f"{finding.location.source.path}:{place.line}:{place.column}"
        yield f"  dslint check: {where}: {style.severity('error', 'error')} {finding.code} {finding.message}"
    for note in verdict.notes:
        yield f"  note: {note}"
    yield f"  {style.dim(_course(smoked))}"
    if verdict.failure in ("died", "hang"):
        yield from (f"  | {line}" for line in verdict.output.splitlines()[-OUTPUT_LINES:])
    for ranks, lines in _stacks(verdict).items():
        yield f"  {ranks_told(ranks)} stood at:"
        yield from (f"  | {line}" for line in lines)


def _stacks(verdict: Verdict) -> dict[tuple[int, ...], list[str]]:
    """The lines of each stack that ranks stood at when they had to be ended, by those ranks."""
    ended = [one.rank for one in verdict.standing if one.state in (WAITS, RUNS)]
    ranks: dict[tuple[str, ...], tuple[int, ...]] = {}
    for rank, stack in zip(ended, verdict.stacks, strict=False):
        lines = tuple(shown_lines(stack))
        ranks[lines] = (*ranks.get(lines, ()), rank)
    return {numbers: list(lines) for lines, numbers in ranks.items()}


def _where(smoked: Smoked) -> str:
    verdict = smoked.verdict
    ranks = "1 rank" if verdict.ranks == 1 else f"{verdict.ranks} ranks"
    kind = "real" if verdict.mode == "real" else "simulated"
    told = ranks.replace(" ", f" {kind} ", 1)
    like = f", answering like {smoked.simulated_gpu}" if smoked.simulated_gpu else ""
    device = verdict.seen.get("device", "")
    return f"{told} (from {smoked.ranks_from})" + (f" on {device}{like}" if device else "")


def _setup(seen: Any) -> str:
    if "batch" not in seen:
        return ""
    train, micro, accumulation = seen["batch"]
    parts = [
        f"ZeRO stage {seen['zero_stage']}",
        seen["dtype"],
        seen["optimizer"],
        *([seen["scheduler"]] if seen.get("scheduler") else []),
        f"{train} samples a step ({micro} a rank and forward pass, {accumulation} accumulated)",
    ]
    return ", ".join(parts)


def _course(smoked: Smoked) -> str:
    verdict = smoked.verdict
    parts = [f"{phase} {seconds:.2f} s" for phase, seconds in verdict.seconds.items()]
    parts += [f"op {name} built or loaded in {seconds:.1f} s" for name, seconds in verdict.built.items()]
    if verdict.losses:
        losses = ", ".join("not finite" if loss is None else f"{loss:.3f}" for loss in verdict.losses)
        judged = "" if verdict.mode == "real" or verdict.ranks == 1 else " (not judged: sums are not real)"
        parts.append(f"losses {losses}{judged}")
    if verdict.peak_memory:
        parts.append("peak memory " + ", ".join(f"{peak / MEGA:.0f} MiB" for peak in verdict.peak_memory))
    versions = [f"{name} {verdict.seen[key]}" for name, key in _VERSIONS if verdict.seen.get(key)]
    return "; ".join([*parts, *versions])


_VERSIONS = (("torch", "torch"), ("DeepSpeed", "deepspeed"))


def smoke_summary(results: Sequence[Smoked], style: Style) -> str:
    """The closing line."""
    failed = sum(not one.verdict.passed for one in results)
    passed = len(results) - failed
    counts = [f"{passed} passed", *([f"{failed} failed"] if failed else [])]
    line = ", ".join(counts)
    return style.severity("error", line) if failed else style.green(line)


def smoke_json(results: Sequence[Smoked]) -> str:
    """All verdicts as one JSON object."""
    content = {"version": __version__, "results": [_data(one) for one in results]}
    return json.dumps(content, indent=2, ensure_ascii=False)


def _data(smoked: Smoked) -> dict[str, Any]:
    verdict = smoked.verdict
    seen = verdict.seen
    return {
        "path": smoked.path,
        "outcome": "passed" if verdict.passed else "failed",
        "failure": verdict.failure,
        "reason": verdict.reason,
        "notes": list(verdict.notes),
        "rules": [finding.code for finding in smoked.findings],
        "ended_in": verdict.phase,
        "exception": verdict.exception,
        "message": verdict.message,
        "mode": verdict.mode,
        "ranks": verdict.ranks,
        "ranks_from": smoked.ranks_from,
        "simulated_gpu": smoked.simulated_gpu or None,
        "zero_stage": seen.get("zero_stage"),
        "optimizer": seen.get("optimizer"),
        "scheduler": seen.get("scheduler"),
        "dtype": seen.get("dtype"),
        "batch": _batch(seen.get("batch")),
        "losses": list(verdict.losses),
        "learning_rates": seen.get("rates", []),
        "skipped_steps": seen.get("skipped"),
        "loss_scale": seen.get("loss_scale"),
        "saved_16bit_weights": seen.get("saved"),
        "weights": seen.get("weights"),
        "restored": _restored(seen),
        "peak_memory_bytes": list(verdict.peak_memory),
        "seconds": dict(verdict.seconds),
        "ops_seconds": dict(verdict.built),
        "device": seen.get("device"),
        "torch": seen.get("torch"),
        "deepspeed": seen.get("deepspeed"),
        "python": seen.get("python"),
        "warnings": seen.get("warned", []),
        "output": verdict.output,
        "standing": [one.as_data() for one in verdict.standing],
        "stacks": list(verdict.stacks),
    }


def _batch(batch: Any) -> dict[str, int] | None:
    if not batch:
        return None
    return {"train": batch[0], "micro": batch[1], "accumulation": batch[2]}


def _restored(seen: Any) -> bool | None:
    if "loaded" not in seen:
        return None
    return bool(seen["loaded"] and seen["restored_steps"] and seen["restored_parameters"] is not False)

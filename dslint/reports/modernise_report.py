"""`dslint modernise`: what became of the entries of configs that were brought to a release."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from dslint.fixes.modernise.subject import Kind
from dslint.fixes.modernising import Modernised, Step
from dslint.reports.style import Style

KINDS: tuple[Kind, ...] = ("carried over", "dropped", "left")
_SEVERITY_OF: dict[Kind, str] = {"dropped": "warning", "left": "error"}
"""As which severity a kind is dressed; what was carried over is good news."""


def text_modernise(results: Sequence[Modernised], style: Style) -> str:
    """A line for each entry that needed something, and one that counts them."""
    lines = [line for result in results for line in _lines(result, style)]
    return "\n".join([*lines, *([""] if lines else []), _summary(results)])


def json_modernise(results: Sequence[Modernised]) -> str:
    """The same as JSON: a list of {path, target, changed, steps}."""
    content = [
        {
            "path": result.before.path,
            "target": result.target.text,
            "changed": result.is_changed,
            "steps": [_step(result, step) for step in result.steps],
        }
        for result in results
    ]
    return json.dumps(content, indent=2, ensure_ascii=False)


def _lines(result: Modernised, style: Style) -> Iterator[str]:
    for step in result.steps:
        subject = f"{step.key}: " if step.key else ""
        place = f"{style.bold(result.before.path)}:{result.place(step)}"
        yield f"{place}: {_kind(step.kind, style)} {style.bold(subject)}{step.text}"


def _kind(kind: Kind, style: Style) -> str:
    severity = _SEVERITY_OF.get(kind)
    return style.green(kind) if severity is None else style.severity(severity, kind)


def _step(result: Modernised, step: Step) -> dict[str, Any]:
    place = result.place(step)
    return {"kind": step.kind, "key": step.key, "line": place.line, "column": place.column, "text": step.text}


def _summary(results: Sequence[Modernised]) -> str:
    counts = Counter(step.kind for result in results for step in result.steps)
    changed = sum(result.is_changed for result in results)
    files = "1 file" if len(results) == 1 else f"{len(results)} files"
    target = f" for DeepSpeed {results[0].target.text}" if results else ""
    told = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind]) or "nothing to do"
    return f"{changed} of {files} changed{target}: {told}."

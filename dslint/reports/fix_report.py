"""What was mended, in lines for people and as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dslint.fixes.mending import Applied, NotApplied
from dslint.fixing import Fixed
from dslint.reports.style import Style
from dslint.rulebook.finding import Finding

if TYPE_CHECKING:
    from dslint.confirmed import Confirmed


def fix_lines(fixed: Fixed, style: Style, confirmed: Confirmed | None = None) -> Iterator[str]:
    """A line for each fix that was applied, and for each that was not."""
    for one in fixed.applied:
        confirmation = None if confirmed is None else confirmed.of(one.finding)
        told = "" if confirmation is None else f" ({confirmation.verdict}: {confirmation.told})"
        code = style.bold(one.finding.code)
        yield f"{style.green('fixed')} {_place(one.finding)}: {code} {one.fix.title}{told}"
    yield from not_applied_lines(fixed, style)


def not_applied_lines(fixed: Fixed, style: Style) -> Iterator[str]:
    """A line for each fix that was wanted and is not there."""
    for one in fixed.not_applied:
        said = style.severity("warning", "not fixed")
        yield f"{said} {_place(one.finding)}: {style.bold(one.finding.code)} {one.fix.title}: {one.reason}"


def would_fix(fixed: Fixed) -> str:
    """The closing line under a diff."""
    if not fixed.files:
        return "Nothing to change."
    return f"Would fix {numbered(len(fixed.applied), 'finding')} in {numbered(len(fixed.files), 'file')}."


def fixes_as_data(fixed: Fixed) -> dict[str, Any]:
    """What was mended, as plain data."""
    return {
        "applied": [_as_data(one) for one in fixed.applied],
        "not_applied": [{**_as_data(one), "reason": one.reason} for one in fixed.not_applied],
        "files": [after.path for _, after in fixed.files],
    }


def _as_data(one: Applied | NotApplied) -> dict[str, Any]:
    place = one.finding.location.source.place(one.finding.location.span.start)
    return {
        "code": one.finding.code,
        "path": one.finding.location.source.path,
        "line": place.line,
        "column": place.column,
        "tier": one.fix.tier,
        "title": one.fix.title,
        "number": one.fix.number,
    }


def _place(finding: Finding) -> str:
    """Where a finding stood when it was mended; fixes made before it may have moved it."""
    source = finding.location.source
    return f"{source.path}:{source.place(finding.location.span.start)}"


def numbered(count: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"

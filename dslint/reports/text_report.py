"""The report for people: each finding with the line it is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from dslint.documents.source import Place
from dslint.lint import Report
from dslint.reports.style import Style
from dslint.rulebook.finding import Finding, Location
from dslint.rulebook.rule import SEVERITIES

if TYPE_CHECKING:
    from dslint.confirmed import Confirmed
    from dslint.fixing import Fixed

WIDEST_FRAME = 120  # characters; longer lines are cut around the place


def text_report(
    report: Report, style: Style, fixed: Fixed | None = None, confirmed: Confirmed | None = None
) -> str:
    """The findings with frames, what was mended and tried, what stayed undecided, and one closing line."""
    blocks = ["\n".join(_finding(finding, style, confirmed)) for finding in report.findings]
    closing = [*_undecided(report, style), *_assumption(report, style)]
    if fixed is not None:
        from dslint.reports.fix_report import fix_lines

        closing = [*fix_lines(fixed, style, confirmed), *closing]
    closing += [summary(report, style, fixed), *_fixable(report)]
    if confirmed is not None:
        from dslint.reports.confirm_report import run_lines, smoke_summary

        closing = [*run_lines(confirmed, style), *closing, smoke_summary(confirmed)]
    return "\n\n".join([*blocks, "\n".join(closing)])


def _finding(finding: Finding, style: Style, confirmed: Confirmed | None) -> Iterator[str]:
    path = finding.location.source.path
    place = finding.location.source.place(finding.location.span.start)
    severity = style.severity(finding.severity, finding.severity)
    yield (
        f"{style.bold(path)}:{place}: {severity} {style.bold(finding.code)} {finding.message} "
        f"{style.dim(f'[{finding.name}]')}"
    )
    related = [location for location in finding.related if location.source.path == path]
    yield from _frame(finding, related, style)
    for location in finding.related:
        if location not in related:
            there = location.source.place(location.span.start)
            yield f"  = {location.source.path}:{there}: {location.message}"
    for fix in finding.fixes:
        which = f" {fix.number}" if len(finding.fixes) > 1 else ""
        yield f"  = {style.green('fix')}{which} ({fix.tier}): {fix.title}"
    confirmation = None if confirmed is None else confirmed.of(finding)
    if confirmation is not None:
        yield f"  = {style.bold('smoke')}: {confirmation.verdict}: {confirmation.told}"


def _frame(finding: Finding, related: list[Location], style: Style) -> Iterator[str]:
    """The lines of the finding and of its related places, in the order of the file."""
    source = finding.location.source
    marks: dict[tuple[int, int], list[tuple[Location, str]]] = {}
    for location, sign in [(finding.location, "^"), *((location, "-") for location in related)]:
        place = location.source.place(location.span.start)
        marks.setdefault((place.cell or 0, place.line), []).append((location, sign))
    gutter = len(str(max(line for _, line in marks)))
    yield style.blue(" " * gutter + " |")
    before = None
    for cell, line in sorted(marks):
        if before is not None and (cell, line) != (before[0], before[1] + 1):
            yield style.blue("." * gutter + " |")
        before = (cell, line)
        text = source.line_at(Place(line, 1, cell or None))
        yield from _marked_line(text, line, gutter, marks[cell, line], finding.severity, style)
    yield style.blue(" " * gutter + " |")


def _marked_line(
    text: str, number: int, gutter: int, marks: list[tuple[Location, str]], severity: str, style: Style
) -> Iterator[str]:
    places = [(_columns(location, text), location.message, sign) for location, sign in marks]
    first = min(start for (start, _), _, _ in places)
    cut = max(0, first - 40) if len(text) > WIDEST_FRAME else 0
    shown = text[cut : cut + WIDEST_FRAME].replace("\t", " ").rstrip()
    yield f"{style.blue(f'{number:>{gutter}} |')} {shown}"
    for (start, end), message, sign in places:
        width = max(1, min(end, cut + WIDEST_FRAME) - start)
        underline = f"{' ' * (start - cut)}{sign * width}" + (f" {message}" if message else "")
        colour = style.severity(severity, underline) if sign == "^" else style.blue(underline)
        yield f"{style.blue(' ' * gutter + ' |')} {colour}"


def _columns(location: Location, text: str) -> tuple[int, int]:
    """First and last-but-one column (from 0) of a span on its first line."""
    start = location.source.place(location.span.start)
    end = location.source.place(location.span.end)
    first = start.column - 1
    last = end.column - 1 if end.line == start.line else len(text.rstrip())
    return first, max(last, first + 1)


def _undecided(report: Report, style: Style) -> Iterator[str]:
    """One line for each thing that would decide something."""
    codes: dict[str, set[str]] = {}
    for rule in report.undecided:
        codes.setdefault(" and ".join(rule.needs), set()).add(rule.code)
    for what, which in sorted(codes.items()):
        names = ", ".join(sorted(which))
        yield style.dim(f"not decided: {names} (for want of {what})")


def _assumption(report: Report, style: Style) -> Iterator[str]:
    if report.assumption is not None:
        yield style.dim(f"{report.assumption} (name yours with --deepspeed)")


def _fixable(report: Report) -> Iterator[str]:
    """How many of the findings dslint can mend, and how to ask for it."""
    kinds = Counter(filter(None, map(_way_to_fix, report.findings)))
    if kinds:
        ways = [f"{kinds[option]} with {option}" for option in WAYS_TO_FIX if kinds.get(option)]
        yield f"Fixable: {', '.join(ways)}."


WAYS_TO_FIX = ("--fix", "--fix --unsafe-fixes", "--fix --choose CODE=N")


def _way_to_fix(finding: Finding) -> str | None:
    applicable = [fix for fix in finding.fixes if fix.is_applicable]
    if not applicable:
        return None
    if len(finding.fixes) > 1:
        return WAYS_TO_FIX[2]
    return WAYS_TO_FIX[0] if applicable[0].tier == "safe" else WAYS_TO_FIX[1]


def summary(report: Report, style: Style, fixed: Fixed | None = None) -> str:
    """The closing line: what was found in how many files, and what stayed open."""
    counts: Mapping[str, int] = Counter(finding.severity for finding in report.findings)
    found = ", ".join(
        style.severity(kind, _number(counts[kind], kind)) for kind in reversed(SEVERITIES) if counts.get(kind)
    )
    tail = f" in {_number(report.files, 'file')}"
    undecided = len({rule.code for rule in report.undecided})
    if undecided:
        tail += f"; {_number(undecided, 'rule')} not decided"
    if report.troubles:
        tail += f"; {_number(len(report.troubles), 'file')} not checked"
    if report.suppressed:
        tail += f"; {report.suppressed} suppressed"
    mended = f"Fixed {_number(len(fixed.applied), 'finding')}. " if fixed is not None else ""
    left = " left" if mended else ""
    return mended + (f"Found {found}" if found else style.green(f"No findings{left}")) + tail + "."


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"

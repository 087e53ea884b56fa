"""The report as JSON; its form is the contract in schemas/report.schema.json."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dslint import __version__
from dslint.documents.source import Place
from dslint.lint import Report
from dslint.rulebook.finding import Finding, Location

if TYPE_CHECKING:
    from dslint.confirmed import Confirmed
    from dslint.fixing import Fixed


def json_report(report: Report, fixed: Fixed | None = None, confirmed: Confirmed | None = None) -> str:
    """The report as one JSON object, with what was mended before it and what real DeepSpeed said to it."""
    content = {
        "version": __version__,
        "findings": [_finding(finding, confirmed) for finding in report.findings],
        "undecided": [
            {"code": rule.code, "path": rule.path, "needs": list(rule.needs)} for rule in report.undecided
        ],
        "errors": [{"path": trouble.path, "message": trouble.message} for trouble in report.troubles],
        "files": report.files,
        "suppressed": report.suppressed,
    }
    if fixed is not None:
        from dslint.reports.fix_report import fixes_as_data

        content["fixes"] = fixes_as_data(fixed)
    if confirmed is not None:
        from dslint.reports.confirm_report import runs_as_data

        content["smoke"] = {"runs": runs_as_data(confirmed)}
    return json.dumps(content, indent=2, ensure_ascii=False)


def _finding(finding: Finding, confirmed: Confirmed | None) -> dict[str, Any]:
    source, span = finding.location.source, finding.location.span
    start, end = source.place(span.start), source.place(span.end)
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity,
        "message": finding.message,
        "path": source.path,
        "line": start.line,
        "column": start.column,
        "end_line": end.line,
        "end_column": end.column,
        **_cell(start),
        "related": [_related(location) for location in finding.related],
        "fixes": [
            {"number": fix.number, "tier": fix.tier, "title": fix.title, "applicable": fix.is_applicable}
            for fix in finding.fixes
        ],
        **_smoke(finding, confirmed),
    }


def _smoke(finding: Finding, confirmed: Confirmed | None) -> dict[str, Any]:
    if confirmed is None:
        return {}
    from dslint.reports.confirm_report import finding_as_data

    return {"smoke": finding_as_data(confirmed, finding)}


def _cell(place: Place) -> dict[str, int]:
    """The number of a notebook's cell, in which lines are counted; nothing for other files."""
    return {} if place.cell is None else {"cell": place.cell}


def _related(location: Location) -> dict[str, Any]:
    place = location.source.place(location.span.start)
    return {
        "path": location.source.path,
        "line": place.line,
        "column": place.column,
        **_cell(place),
        "message": location.message,
    }

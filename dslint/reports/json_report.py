"""The report as JSON; its form is the contract in schemas/report.schema.json."""

from __future__ import annotations

import json
from typing import Any

from dslint import __version__
from dslint.documents.source import Place
from dslint.lint import Report
from dslint.rulebook.finding import Finding, Location


def json_report(report: Report) -> str:
    """The report as one JSON object."""
    content = {
        "version": __version__,
        "findings": [_finding(finding) for finding in report.findings],
        "undecided": [
            {"code": rule.code, "path": rule.path, "needs": list(rule.needs)} for rule in report.undecided
        ],
        "errors": [{"path": trouble.path, "message": trouble.message} for trouble in report.troubles],
        "files": report.files,
        "suppressed": report.suppressed,
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


def _finding(finding: Finding) -> dict[str, Any]:
    source, span = finding.location.source, finding.location.span
    start, end = source.place(span.start), source.place(span.end)
    fix = finding.fix
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
        "fix": None if fix is None else {"tier": fix.tier, "title": fix.title},
    }


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

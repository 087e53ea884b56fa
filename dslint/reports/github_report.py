"""The report as workflow commands of GitHub Actions, which shows each finding at the lines it is about.

Its log shows nothing but the message of a command, and a page only the first ten of each severity; so the message
begins with the place and the rule's code.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dslint.inputs import FileTrouble
from dslint.lint import Report
from dslint.reports.style import Style
from dslint.reports.text_report import summary
from dslint.rulebook.finding import Finding, Location

if TYPE_CHECKING:
    from dslint.confirmed import Confirmed
    from dslint.fixing import Fixed
    from dslint.smoke.confirming import RunSmoked

COMMANDS: Mapping[str, str] = {"error": "error", "warning": "warning", "hint": "notice"}
"""The command for each severity."""

_STDIN = ("-", "<stdin>")  # no files that GitHub could show


def github_report(report: Report, fixed: Fixed | None = None, confirmed: Confirmed | None = None) -> str:
    """An annotation for each finding and for each file that was not checked, and one closing line."""
    repository = _repository()
    annotations = [
        *(_finding(finding, repository, confirmed) for finding in report.findings),
        *(_trouble(trouble, repository) for trouble in report.troubles),
    ]
    closing = [summary(report, Style(colour=False), fixed)]
    if confirmed is not None:
        from dslint.reports.confirm_report import smoke_summary

        annotations += [_run(run, repository) for run in confirmed.runs if run.verdict is not None]
        closing.append(smoke_summary(confirmed))
    return "\n".join([*annotations, *closing])


def _run(run: RunSmoked, repository: Path) -> str:
    """A run that was tried as a whole: an error where it fails."""
    from dslint.confirmed import passed

    properties = {**_file(_shown(run.path, repository)), "title": "smoke"}
    return _command("notice" if passed(run) else "error", properties, f"{run.path}: {run.told}")


def _finding(finding: Finding, repository: Path, confirmed: Confirmed | None) -> str:
    properties = {
        **_where(finding.location, repository),
        "title": f"{finding.code} {finding.name}",
    }
    return _command(COMMANDS[finding.severity], properties, "\n".join(_message(finding, repository, confirmed)))


def _trouble(trouble: FileTrouble, repository: Path) -> str:
    path = _shown(trouble.path, repository)
    properties = {**_file(path), "title": "not checked"}
    return _command("error", properties, f"{path}: {trouble.message}")


def _message(finding: Finding, repository: Path, confirmed: Confirmed | None) -> Iterator[str]:
    """What the annotation says, line by line."""
    yield f"{_place(finding.location, repository)}: {finding.code} {finding.message}"
    for location in finding.related:
        what = f": {location.message}" if location.message else ""
        yield f"see {_place(location, repository)}{what}"
    for fix in finding.fixes:
        which = f" {fix.number}" if len(finding.fixes) > 1 else ""
        yield f"fix{which} ({fix.tier}): {fix.title}"
    confirmation = None if confirmed is None else confirmed.of(finding)
    if confirmation is not None:
        yield f"smoke: {confirmation.verdict}: {confirmation.told}"


def _place(location: Location, repository: Path) -> str:
    """File, line and column in words; of a notebook the cell too."""
    place = location.source.place(location.span.start)
    return f"{_shown(location.source.path, repository)}:{place}"


def _where(location: Location, repository: Path) -> dict[str, str]:
    """The properties that tell GitHub the place."""
    source, span = location.source, location.span
    start, end = source.place(span.start), source.place(span.end)
    file = _file(_shown(source.path, repository))
    if not file or start.cell is not None:
        return file  # lines of a notebook's cell are not the lines of its file
    lines = {"line": str(start.line), "endLine": str(end.line)}
    if start.line != end.line:
        return {**file, **lines}  # columns are for places on one line
    return {**file, **lines, "col": str(start.column), "endColumn": str(end.column)}


def _file(path: str) -> dict[str, str]:
    return {} if path in _STDIN else {"file": path}


def _repository() -> Path:
    """The folder that GitHub takes paths from: the checkout if this is a folder of one, else this folder."""
    here = Path.cwd()
    workspace = os.environ.get("GITHUB_WORKSPACE")
    if workspace:
        checkout = Path(os.path.realpath(workspace))
        if here.is_relative_to(checkout):
            return checkout
    return here


def _shown(path: str, repository: Path) -> str:
    """A path as seen from the repository's top, if it lies in it."""
    absolute = Path(os.path.abspath(path))
    if path in _STDIN or not absolute.is_relative_to(repository):
        return path
    return absolute.relative_to(repository).as_posix()


def _command(name: str, properties: Mapping[str, str], message: str) -> str:
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {listed}::{_data(message)}"


def _data(text: str) -> str:
    """Text that may follow the `::`; the percent sign comes first, as the others bring new ones."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Text that may be the value of a property."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")

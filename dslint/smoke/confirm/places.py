"""Lines of the user's files, by the names that a trial in a mirror gives them."""

from __future__ import annotations

import os

from dslint.documents.source import Source
from dslint.rulebook.cache import shipped_rules
from dslint.rulebook.finding import Finding
from dslint.rulebook.judge import judge
from dslint.runs.facts import Facts
from dslint.runs.linking import Pairing

TOP = os.sep
"""The mirrored folder: from the root on, so that every relative path leads to where it does for the user."""


def below_top(path: str) -> str:
    """A path as seen from TOP."""
    return os.path.relpath(os.path.abspath(path), TOP)


def with_shown_path(where: str | None, pairing: Pairing) -> str | None:
    """A line such as "home/me/train.py:12" by the path that the user knows the file by."""
    if where is None:
        return None
    name, _, line = where.rpartition(":")
    shown = {below_top(source.path): source.path for source in pairing.sources}
    return f"{shown.get(name, name)}:{line}"


def as_it_stands(finding: Finding, pairing: Pairing, facts: Facts) -> Finding:
    """The finding by its place in these files, where it was found in others: other fixes move lines."""
    if finding.location.source in pairing.sources:
        return finding
    rules = [rule for rule in shipped_rules() if rule.code == finding.code]
    found = judge(facts, rules).findings
    alike = [one for one in found if one.message == finding.message] or found
    return alike[0] if alike else finding


def is_at(finding: Finding, where: str | None) -> bool:
    """Whether a line is one at which a finding stands."""
    if where is None:
        return False
    path, _, line = where.rpartition(":")
    source, span = finding.location.source, finding.location.span
    return path == source.path and _line(source, span.start) <= int(line) <= _line(source, span.end)


def is_named(finding: Finding, text: str) -> bool:
    """Whether a text names what a finding stands at, such as an option of a launcher."""
    words = finding.location.source.slice(finding.location.span).replace("=", " ").split()
    return bool(words) and words[0] in text


def _line(source: Source, offset: int) -> int:
    return source.place(offset).line

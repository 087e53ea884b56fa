"""Remembers what the rules said about a config, by its content, so that a large repository is judged once.

Only configs that form a run by themselves are remembered: what is said about them follows from their text, the
options, the release and the rules, which together make the key. The memory holds data only, never code.
"""

from __future__ import annotations

from typing import Any

from dslint.documents.source import Source, Span
from dslint.kept import keep, read_kept
from dslint.rulebook.finding import Finding, FindingFix, Judgement, Location, Undecided

FEWEST_FILES = 20
"""With fewer files the memory costs more than it saves."""

MOST_ENTRIES = 20_000


class Memory:
    """Judgements by the content of their file."""

    def __init__(self, context: str) -> None:
        """Opens the memory; `context` is everything beside the file that a judgement depends on."""
        self._context = context
        self._entries = read_kept("results")
        self._is_changed = False

    def recall(self, source: Source, also: str) -> Judgement | None:
        """What was said about a file with this content; `also` is the rest that it depends on."""
        entry = self._entries.get(self._key(source, also))
        return None if entry is None else _judgement(entry, source)

    def keep(self, source: Source, also: str, judgement: Judgement) -> None:
        """Remembers what was said, if all of it is about this file."""
        if all(place.source is source for finding in judgement.findings for place in _places(finding)):
            self._entries[self._key(source, also)] = _entry(judgement)
            self._is_changed = True

    def save(self) -> None:
        """Writes down what is new."""
        if self._is_changed:
            keep("results", dict(list(self._entries.items())[-MOST_ENTRIES:]))

    def _key(self, source: Source, also: str) -> str:
        from hashlib import blake2b

        digest = blake2b(source.data, digest_size=16)
        digest.update(f"\0{self._context}\0{also}".encode())
        return digest.hexdigest()


def _places(finding: Finding) -> tuple[Location, ...]:
    return (finding.location, *finding.related)


def _entry(judgement: Judgement) -> dict[str, Any]:
    return {
        "findings": [
            {
                "rule": [finding.code, finding.name, finding.severity, finding.message],
                "places": [[place.span.start, place.span.end, place.message] for place in _places(finding)],
                "fixes": [[fix.tier, fix.title, fix.number, fix.is_applicable] for fix in finding.fixes],
            }
            for finding in judgement.findings
        ],
        "undecided": [[rule.code, list(rule.needs)] for rule in judgement.undecided],
        "is_foreign": judgement.is_foreign,
    }


def _judgement(entry: dict[str, Any], source: Source) -> Judgement | None:
    """The judgement of an entry; None for one that something else has written."""
    try:
        findings = tuple(_finding(data, source) for data in entry["findings"])
        undecided = tuple(Undecided(code, source.path, tuple(needs)) for code, needs in entry["undecided"])
        return Judgement(findings, undecided, bool(entry["is_foreign"]))
    except (KeyError, TypeError, ValueError):
        return None


def _finding(data: dict[str, Any], source: Source) -> Finding:
    code, name, severity, message = data["rule"]
    place, *related = [Location(source, Span(start, end), text) for start, end, text in data["places"]]
    fixes = tuple(FindingFix(*fix) for fix in data["fixes"])
    return Finding(code, name, severity, message, place, tuple(related), fixes)

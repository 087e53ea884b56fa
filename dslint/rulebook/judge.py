"""Holds the rules against the facts of a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dslint.documents.source import Source, Span
from dslint.rulebook.expression import evaluate, truth
from dslint.rulebook.finding import Finding, FindingFix, Judgement, Location, Undecided
from dslint.rulebook.rule import Part, Rule
from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.releases import Release, matches, parse_release
from dslint.runs.unknown import UNDECIDABLE, Unknown

OLDEST_IN_COMMON_USE = parse_release("0.10.0")
"""A rule that begins with this release or an older one holds for everybody (July 2023)."""


def judge(facts: Facts, rules: Iterable[Rule]) -> Judgement:
    """The findings of all rules for one run, in the order of their places, and what stayed undecided."""
    findings: list[Finding] = []
    undecided: list[Undecided] = []
    for rule in rules:
        if rule.each is not None and facts.lacks(rule.each[0]):
            continue  # most rules are about scripts, and most configs come without one
        if not _holds_for(rule, facts.release):
            continue
        needs: set[str] = set()
        for item in _items(rule, facts):
            verdict = _verdict(rule, facts, item)
            if isinstance(verdict, Unknown):
                needs |= verdict.needs
            elif verdict:
                findings.append(_finding(rule, facts, item))
        if needs:
            undecided.append(Undecided(rule.code, facts.main_source.path, tuple(sorted(needs))))
    findings.sort(key=lambda finding: (finding.location.source.path, finding.location.span.start, finding.code))
    return Judgement(tuple(findings), tuple(undecided))


def _holds_for(rule: Rule, release: Release) -> bool:
    return not rule.deepspeed or matches(rule.deepspeed, release)


def _items(rule: Rule, facts: Facts) -> Iterator[Item | None]:
    if rule.each is None:
        yield None
    else:
        found = facts.value(rule.each[0])
        yield from () if isinstance(found, Unknown) else found


def _verdict(rule: Rule, facts: Facts, item: Item | None) -> bool | Unknown:
    return truth(evaluate(rule.when, facts, item.fields if item else None))


def _finding(rule: Rule, facts: Facts, item: Item | None) -> Finding:
    severity, since = _severity(rule, facts, item)
    message = fill(rule.message, facts, item)
    fix = FindingFix(rule.fix.tier, fill(rule.fix.title, facts, item)) if rule.fix else None
    source, span = _place(rule, facts, item)
    related = tuple(place for place in _related(rule, facts, item) if (place.source, place.span) != (source, span))
    return Finding(rule.code, rule.name, severity, message + since, Location(source, span), related, fix)


def _severity(rule: Rule, facts: Facts, item: Item | None) -> tuple[str, str]:
    """The severity, and a remark where it is milder because nothing tells the DeepSpeed version."""
    if rule.severity != "error" or facts.release_is_known:
        return rule.severity, ""
    first = _first_release(rule.deepspeed, item)
    if first is None or first.key <= OLDEST_IN_COMMON_USE.key:
        return rule.severity, ""
    return "warning", f" (from DeepSpeed {first.text} on)"


def _first_release(spec: str, item: Item | None) -> Release | None:
    """The release with which a rule begins to hold: for all, or for the item at hand (its field `since`)."""
    begins = [part.strip()[2:] for part in spec.split(",") if part.strip().startswith(">=")]
    if item is not None and item.fields.get("since"):
        begins.append(item.fields["since"])
    return max(map(parse_release, begins), default=None)


def _place(rule: Rule, facts: Facts, item: Item | None) -> tuple[Source, Span]:
    if item is not None and rule.each is not None and rule.at == rule.each[1]:
        return item.source, item.span
    return facts.place(rule.at)


def _related(rule: Rule, facts: Facts, item: Item | None) -> Iterator[Location]:
    if item is not None:
        yield from (Location(item.source, span, text) for span, text in item.related)
        yield from (Location(*place) for place in item.elsewhere)
    for name, text in rule.also.items():
        place = facts.place_if_given(name)
        if place is not None:
            yield Location(*place, text)


def fill(parts: Iterable[Part], facts: Facts, item: Item | None = None) -> str:
    """A message with its placeholders filled in."""
    fields: Mapping[str, Any] | None = item.fields if item else None
    return "".join(part if isinstance(part, str) else words(evaluate(part, facts, fields)) for part in parts)


def words(value: Any) -> str:
    """A value as a person would write it in a config."""
    if isinstance(value, Unknown):
        return "?" if value == UNDECIDABLE else "an unknown value"
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value == int(value) and abs(value) < 1e16:
        return str(int(value))
    if isinstance(value, (list, tuple)) and all(isinstance(element, str) for element in value):
        return ", ".join(value)
    return json.dumps(value, default=str)

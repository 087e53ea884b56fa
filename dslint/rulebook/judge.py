"""Holds the rules against the facts of a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dslint.documents.source import Source, Span
from dslint.rulebook.expression import evaluate, truth
from dslint.rulebook.finding import CannotChangeError, Finding, FindingFix, Judgement, Location, Undecided
from dslint.rulebook.rule import Part, Rule, RuleFix
from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.releases import Release, matches, parse_release
from dslint.runs.unknown import UNDECIDABLE, Unknown

if TYPE_CHECKING:
    from dslint.rulebook.change import Change

OLDEST_IN_COMMON_USE = parse_release("0.10.0")
"""A rule that begins with this release or an older one holds for everybody (July 2023)."""


WorkOut = Callable[[RuleFix, Rule, Facts, "Item | None"], "tuple[Change, ...]"]
"""Works out what a fix changes; raises CannotChangeError where it can't be done."""


def judge(facts: Facts, rules: Iterable[Rule], work_out: WorkOut | None = None) -> Judgement:
    """The findings of all rules for one run, in the order of their places, and what stayed undecided.

    Args:
        facts: the run's facts.
        rules: the rules to hold against them.
        work_out: works out the changes of each fix, where somebody wants to apply them.
    """
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
                findings.append(_finding(rule, facts, item, work_out))
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


def _finding(rule: Rule, facts: Facts, item: Item | None, work_out: WorkOut | None) -> Finding:
    severity, since = _severity(rule, facts, item)
    message = fill(rule.message, facts, item)
    fixes = tuple(_fixes(rule, facts, item, work_out)) if rule.fixes else ()
    source, span = _place(rule, facts, item)
    related = tuple(place for place in _related(rule, facts, item) if (place.source, place.span) != (source, span))
    return Finding(rule.code, rule.name, severity, message + since, Location(source, span), related, fixes)


def _fixes(rule: Rule, facts: Facts, item: Item | None, work_out: WorkOut | None) -> Iterator[FindingFix]:
    """The ways that the facts leave open; one that is left over of several is no choice any more, and safe."""
    fields = item.fields if item else None
    open_ways = [
        (number, fix)
        for number, fix in enumerate(rule.fixes, 1)
        if fix.when is None or truth(evaluate(fix.when, facts, fields)) is not False
    ]
    is_decided = len(open_ways) == 1 < len(rule.fixes)
    for number, fix in open_ways:
        tier = "safe" if is_decided and fix.tier == "unsafe" else fix.tier
        changes: tuple[Change, ...] = ()
        obstacle = ""
        if work_out is not None and fix.is_applicable:
            try:
                changes = work_out(fix, rule, facts, item)
            except CannotChangeError as error:
                obstacle = str(error)
        yield FindingFix(
            tier=tier,
            title=fill(fix.title, facts, item),
            number=number,
            is_applicable=fix.is_applicable,
            changes=changes,
            keeps_meaning=fix.tier == "safe",
            obstacle=obstacle,
        )


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

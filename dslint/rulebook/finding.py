"""What the judge says about a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dslint.documents.source import Source, Span

if TYPE_CHECKING:
    from dslint.rulebook.change import Change


class CannotChangeError(Exception):
    """What a fix wants can't be done for this run; the message says why, as the end of a sentence."""


@dataclass(frozen=True)
class Location:
    """A place in a file, with what to say about it."""

    source: Source
    span: Span
    message: str = ""


@dataclass(frozen=True)
class FindingFix:
    """How a finding can be mended, or one of several ways.

    Attributes:
        tier: safe, unsafe or display; a way that is left over of several is safe.
        title: what it does, in words.
        number: which of the rule's ways it is, counted from 1.
        is_applicable: whether dslint can do it.
        changes: what to change; worked out only where fixes are applied.
        keeps_meaning: whether the rule itself calls it safe, so that no new mistake can come of it.
        obstacle: why it can't be done here after all, where that was found while working the changes out.
    """

    tier: str
    title: str
    number: int = 1
    is_applicable: bool = False
    changes: tuple[Change, ...] = ()
    keeps_meaning: bool = False
    obstacle: str = ""


@dataclass(frozen=True)
class Finding:
    """A rule that holds for a run.

    Attributes:
        code: the rule's code.
        name: its name.
        severity: what happens: error, warning or hint.
        message: the fact, the consequence, what to do.
        location: the place that it is about.
        related: further places.
        fixes: the ways to mend it that the facts leave open.
    """

    code: str
    name: str
    severity: str
    message: str
    location: Location
    related: tuple[Location, ...] = ()
    fixes: tuple[FindingFix, ...] = ()


@dataclass(frozen=True)
class Undecided:
    """A rule that can't be decided for a run, and what would decide it."""

    code: str
    path: str
    needs: tuple[str, ...]


@dataclass(frozen=True)
class Judgement:
    """Everything the rules have to say about one run.

    Attributes:
        findings: rules that hold.
        undecided: rules that lack a fact.
        is_foreign: whether the file turned out to be another tool's, so that there is no run.
    """

    findings: tuple[Finding, ...]
    undecided: tuple[Undecided, ...]
    is_foreign: bool = False

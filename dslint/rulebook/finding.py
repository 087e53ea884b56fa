"""What the judge says about a run."""

from __future__ import annotations

from dataclasses import dataclass

from dslint.documents.source import Source, Span


@dataclass(frozen=True)
class Location:
    """A place in a file, with what to say about it."""

    source: Source
    span: Span
    message: str = ""


@dataclass(frozen=True)
class FindingFix:
    """How a finding can be mended, in words."""

    tier: str
    title: str


@dataclass(frozen=True)
class Finding:
    """A rule that holds for a run."""

    code: str
    name: str
    severity: str
    message: str
    location: Location
    related: tuple[Location, ...] = ()
    fix: FindingFix | None = None


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

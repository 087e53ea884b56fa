"""Applies fixes one by one, and keeps those that help.

After each fix the files are read and judged anew by all rules: a fix that leaves its finding, brings a new error
or breaks the text is taken back. An error that a safe fix of another error only brings to light stays: "4" for a
batch size hides that the sizes don't multiply up. Nothing is written here; the files exist in memory only.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from dslint.documents.source import Source
from dslint.fixes.carrying_out import changed_files
from dslint.fixes.edit import CannotEditError
from dslint.fixes.policy import Policy
from dslint.inputs import Reading
from dslint.readings import with_files
from dslint.rulebook.finding import Finding, FindingFix

MOST_ATTEMPTS = 500
"""Fixes that are tried on files that belong together; more only come up where fixes call for one another."""

Findings = Sequence[Finding]
Judge = Callable[[Reading], Findings]
"""Gives the findings of all rules, with what their fixes change."""


@dataclass(frozen=True)
class Applied:
    """A fix that was made and kept.

    Attributes:
        finding: what it mends, in the file as it was just before.
        fix: the fix.
        files: the files that it changed, as they were just before and just after.
    """

    finding: Finding
    fix: FindingFix
    files: tuple[tuple[Source, Source], ...]


@dataclass(frozen=True)
class NotApplied:
    """A fix that was wanted and not made, or taken back, and why."""

    finding: Finding
    fix: FindingFix
    reason: str


@dataclass(frozen=True)
class Mended:
    """What came of mending.

    Attributes:
        reading: the files as they are now.
        applied: the fixes that were kept, in their order.
        not_applied: the fixes that were not, with reasons.
    """

    reading: Reading
    applied: tuple[Applied, ...]
    not_applied: tuple[NotApplied, ...]


def mend(
    reading: Reading, judge: Judge, policy: Policy, is_wanted: Callable[[Finding], bool] = lambda _: True
) -> Mended:
    """Applies the fixes that a policy allows to files that belong together.

    Args:
        reading: the files.
        judge: gives the findings of all rules for files, with what their fixes change.
        policy: which fixes are allowed.
        is_wanted: whether a finding shall be mended at all.
    """
    work = _Work(judge, reading)
    while (candidate := work.next_candidate(policy, is_wanted)) is not None:
        work.attempt(*candidate)
    return Mended(work.reading, tuple(work.applied), tuple(work.failed.values()))


@dataclass
class _Work:
    """The files in work, and what was done to them."""

    judge: Judge
    reading: Reading
    findings: Findings = ()
    applied: list[Applied] = field(default_factory=list)
    failed: dict[Identity, NotApplied] = field(default_factory=dict)
    attempts: int = 0
    seen: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.findings = self.judge(self.reading)
        self.seen.add(_content(self.reading))

    def next_candidate(
        self, policy: Policy, is_wanted: Callable[[Finding], bool]
    ) -> tuple[Finding, FindingFix] | None:
        """The next finding with a fix that did not fail yet; safe ones first, the worst first."""
        if self.attempts >= MOST_ATTEMPTS:
            return None
        candidates = [
            (finding, fix)
            for finding in self.findings
            if is_wanted(finding)
            and (fix := policy.pick(finding)) is not None
            and _identity(finding, fix) not in self.failed
        ]
        return min(candidates, key=lambda pair: _urgency(*pair), default=None)

    def attempt(self, finding: Finding, fix: FindingFix) -> None:
        """Makes a fix; takes it back where it doesn't help."""
        self.attempts += 1
        try:
            files = self.changed(fix)
        except CannotEditError as error:
            self.failed[_identity(finding, fix)] = NotApplied(finding, fix, str(error))
            return
        reading = with_files(self.reading, [after for _, after in files])
        findings = self.judge(reading)
        harm = next(self.harms(finding, fix, files, reading, findings), None)
        if harm is not None:
            self.failed[_identity(finding, fix)] = NotApplied(finding, fix, f"it was taken back, since {harm}")
            return
        self.reading, self.findings = reading, findings
        self.seen.add(_content(reading))
        self.failed.clear()  # what could not be done before may be possible now
        self.applied.append(Applied(finding, fix, files))

    def changed(self, fix: FindingFix) -> tuple[tuple[Source, Source], ...]:
        """The files that a fix touches, before and after.

        Raises:
            CannotEditError: if it can't be made.
        """
        if fix.obstacle:
            raise CannotEditError(fix.obstacle)
        files = tuple(changed_files(fix.changes))
        known = {os.path.realpath(source.path): source for source in self.reading.sources}
        for before, _ in files:
            at_hand = known.get(os.path.realpath(before.path))
            if at_hand is None:
                raise CannotEditError(f"it changes {before.path}, which is not among the files to check")
            if at_hand.data != before.data:
                raise CannotEditError(f"it is about a piece of {before.path} that is no file of its own")
        return files

    def harms(
        self,
        finding: Finding,
        fix: FindingFix,
        files: Sequence[tuple[Source, Source]],
        reading: Reading,
        findings: Findings,
    ) -> Iterator[str]:
        """Why a fix should not be kept."""
        if all(before.data == after.data for before, after in files):
            yield "it changes nothing"
        if len(reading.sources) < len(self.reading.sources):
            yield "the file could not be read any more"
        if _content(reading) in self.seen:
            yield "it brings back what another fix changed"
        key = kind_of(finding)
        was, now = Counter(map(kind_of, self.findings)), Counter(map(kind_of, findings))
        if now[key] >= was[key]:
            yield "the finding stays"
        if fix.keeps_meaning and finding.severity == "error":
            return  # it keeps the meaning, so an error that shows now was there behind the one that went
        old_errors, errors = _errors(self.findings), _errors(findings)
        for code, path in errors - old_errors:
            message = next(one.message for one in findings if kind_of(one) == (code, path))
            yield f"it brings {code} in {path}: {message}"


Identity = tuple[str, str, int, str, int]


def _identity(finding: Finding, fix: FindingFix) -> Identity:
    place = finding.location
    return finding.code, place.source.path, place.span.start, finding.message, fix.number


def _urgency(finding: Finding, fix: FindingFix) -> tuple[bool, bool, str, int]:
    place = finding.location
    return fix.tier != "safe", finding.severity != "error", place.source.path, place.span.start


def kind_of(finding: Finding) -> tuple[str, str]:
    """The rule of a finding and the file it stands in."""
    return finding.code, finding.location.source.path


def _errors(findings: Findings) -> Counter[tuple[str, str]]:
    return Counter(kind_of(finding) for finding in findings if finding.severity == "error")


def _content(reading: Reading) -> int:
    return hash(tuple((source.path, source.data) for source in reading.sources))

"""The whole of `check --fix`: check, mend what belongs together, check again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dslint.documents.source import Source
from dslint.fixes.mending import Applied, Mended, NotApplied, mend
from dslint.fixes.policy import Policy
from dslint.inputs import Reading
from dslint.linked import runs_in
from dslint.lint import Report, check_reading
from dslint.readings import only, together, with_files, with_more
from dslint.rulebook.cache import shipped_rules
from dslint.rulebook.finding import Finding
from dslint.rulebook.own_rules import OWN_RULES
from dslint.rulebook.rule import Rule
from dslint.rulebook.rule_text import RuleText
from dslint.rulebook.working_out import changes_of
from dslint.runs.run import Options
from dslint.settings.settings import Settings


@dataclass(frozen=True)
class Fixed:
    """What came of fixing; nothing is written yet.

    Attributes:
        report: what is left to say about the mended files.
        applied: the fixes that were kept, in their order.
        not_applied: the fixes that were wanted and not kept, with reasons.
        files: the files that changed, as they were and as they are now.
    """

    report: Report
    applied: tuple[Applied, ...]
    not_applied: tuple[NotApplied, ...]
    files: tuple[tuple[Source, Source], ...]


def fix(
    reading: Reading,
    options: Options,
    rules: Iterable[Rule | RuleText],
    settings: Settings | None,
    policy: Policy,
    objection: Callable[[Mended], str | None] = lambda _: None,
) -> Fixed:
    """Checks files that were read and mends what a policy allows, in memory.

    Args:
        reading: the files.
        options: what the command line says; it wins over the settings.
        rules: the rules whose findings are wanted; all others are asked too whether a fix does harm.
        settings: the project's settings, where it has any.
        policy: which fixes are allowed.
        objection: says why the mended files of a part should not be kept; None where they should.
    """
    rules = list(rules)
    wanted = frozenset(rule.code for rule in rules)
    all_rules = AllRules(options, settings, (*shipped_rules(), *OWN_RULES))
    report = check_reading(reading, options, rules, settings)
    reading = all_rules.with_files_of_runs(reading)
    mended = [
        _kept(part, mend(part, all_rules.findings, policy, lambda finding: finding.code in wanted), objection)
        for part in all_rules.parts(reading, report.findings, policy)
    ]
    return _all_together(reading, mended, lambda now: check_reading(now, options, rules, settings))


def _kept(part: Reading, mended: Mended, objection: Callable[[Mended], str | None]) -> Mended:
    """The mended files, or the files as they were where somebody objects."""
    reason = objection(mended) if mended.applied else None
    if reason is None:
        return mended
    given_up = tuple(NotApplied(one.finding, one.fix, reason) for one in mended.applied)
    return Mended(part, (), (*given_up, *mended.not_applied))


def _all_together(reading: Reading, mended: Sequence[Mended], check: Callable[[Reading], Report]) -> Fixed:
    """The parts as one, checked again."""
    before = {os.path.realpath(source.path): source for source in reading.sources}
    after = {os.path.realpath(now.path): now for part in mended for now in part.reading.sources}
    files = tuple((before[path], now) for path, now in after.items() if before[path].data != now.data)
    report = check(with_files(reading, [now for _, now in files]))
    applied = tuple(one for part in mended for one in part.applied)
    not_applied = tuple(one for part in mended for one in part.not_applied)
    return Fixed(report, applied, not_applied, files)


@dataclass(frozen=True)
class AllRules:
    """Judges files by all rules, with what their fixes change.

    Attributes:
        options: what the command line says.
        settings: the project's settings, where it has any.
        rules: all rules.
    """

    options: Options
    settings: Settings | None
    rules: Sequence[Rule | RuleText]

    @property
    def merged_options(self) -> Options:
        """What command line and settings say of runs."""
        return self.settings.options(self.options) if self.settings else self.options

    def findings(self, reading: Reading) -> Sequence[Finding]:
        """What all rules find."""
        return check_reading(reading, self.options, self.rules, self.settings, changes_of).findings

    def with_files_of_runs(self, reading: Reading) -> Reading:
        """The files, with those that runs lead to in the folders that were named."""
        if not reading.folders:
            return reading
        runs = runs_in(reading, self.settings, self.options)
        return with_more(reading, (source for pairing in runs for source in pairing.sources))

    def parts(self, reading: Reading, findings: Sequence[Finding], policy: Policy) -> list[Reading]:
        """The files with something to mend, those together that form runs together."""
        concerned = {
            os.path.realpath(place.source.path)
            for finding in findings
            if policy.pick(finding) is not None
            for place in (finding.location, *finding.related)
        }
        if not concerned:
            return []
        runs = [pairing.sources for pairing in runs_in(reading, self.settings, self.options)]
        return [only(reading, paths) for paths in together(reading, runs) if concerned.intersection(paths)]

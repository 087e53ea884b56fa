"""The whole of `check --smoke`: each finding is tried on real DeepSpeed, with it and with its fix."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from dslint.documents.discover import CODE_ENDINGS
from dslint.fixes.mending import Mended, kind_of, mend
from dslint.fixes.policy import Policy
from dslint.fixing import AllRules
from dslint.inputs import Reading
from dslint.linked import is_surely_a_config, runs_in
from dslint.lint import facts_of
from dslint.readings import only, together
from dslint.rulebook.cache import shipped_rule_text
from dslint.rulebook.finding import Finding
from dslint.rulebook.judge import judge
from dslint.rulebook.rule import Rule
from dslint.runs.linking import Pairing, run_of
from dslint.smoke.confirming import CONFIRMED, NOT_RUN, Confirmation, Confirmer, Question, RunSmoked
from dslint.smoke.verdict import Verdict

Name = tuple[str, str, str]
"""What tells one finding from another while fixes move it: file, rule, message."""


def name_of(finding: Finding) -> Name:
    """What stays the same of a finding while other fixes move it."""
    return finding.location.source.path, finding.code, finding.message


@dataclass(frozen=True)
class Confirmed:
    """What real DeepSpeed said.

    Attributes:
        verdicts: what came of each finding, by its name (name_of).
        runs: the runs that were tried as a whole.
    """

    verdicts: dict[Name, Confirmation] = field(default_factory=dict)
    runs: tuple[RunSmoked, ...] = ()

    def of(self, finding: Finding) -> Confirmation | None:
        """What came of a finding; None where it was not asked."""
        return self.verdicts.get(name_of(finding))

    @property
    def failed(self) -> bool:
        """Whether a run that dslint has nothing to say about doesn't pass."""
        return any(run.verdict is not None and not passed(run) for run in self.runs)


def passed(run: RunSmoked) -> bool:
    """Whether a whole run trains, saves and loads."""
    return isinstance(run.verdict, Verdict) and run.verdict.passed


def confirm(
    reading: Reading,
    findings: Sequence[Finding],
    all_rules: AllRules,
    confirmer: Confirmer,
    policy: Policy,
    *,
    every_run: bool,
) -> Confirmed:
    """Tries the findings of files on real DeepSpeed.

    Args:
        reading: the files.
        findings: those that are reported about them.
        all_rules: judges files by all rules.
        confirmer: runs the trials.
        policy: which of several fixes to try; where it says nothing, the first.
        every_run: whether to try runs without findings too.

    Raises:
        SmokeError: if nothing can be tried here.
    """
    verdicts: dict[Name, Confirmation] = {}
    reading = all_rules.with_files_of_runs(reading)
    trying = Policy(unsafe=True, choices=policy.choices, takes_first=True)
    runs_of_files = [pairing.sources for pairing in _runs(reading, all_rules)]
    for paths in together(reading, runs_of_files):
        wanted = [one for one in findings if os.path.realpath(one.location.source.path) in paths]
        trials = _Trials(only(reading, paths), all_rules, confirmer, trying)
        for original, confirmation in trials.answers(wanted):
            verdicts[name_of(original)] = confirmation
    runs = tuple(map(confirmer.smoke, _clean_runs(reading, findings, all_rules))) if every_run else ()
    return Confirmed(verdicts, runs)


def obstacle_to(mended: Mended, all_rules: AllRules, confirmer: Confirmer, confirmed: Confirmed) -> str | None:
    """Why mended files should not be written, since a run of theirs doesn't pass; None if all pass.

    Raises:
        SmokeError: if nothing can be tried here.
    """
    changed = {os.path.realpath(after.path) for one in mended.applied for _, after in one.files}
    for pairing in _runs(mended.reading, all_rules):
        if not changed & {os.path.realpath(source.path) for source in pairing.sources}:
            continue
        run = confirmer.smoke(pairing)
        if run.verdict is None:
            return f"the mended run of {run.path} could not be tried: {run.told}"
        if not passed(run):
            return f"the mended run of {run.path} doesn't pass: {run.told}"
    for one in mended.applied:
        if not any(after.path.lower().endswith(CODE_ENDINGS) for _, after in one.files):
            continue  # a config, which was tried above
        confirmation = confirmed.of(one.finding)
        if confirmation is None or confirmation.verdict != CONFIRMED:
            told = "it was not asked" if confirmation is None else f"{confirmation.verdict}: {confirmation.told}"
            return f"{one.finding.code} is not confirmed ({told})"
    return None


def _runs(reading: Reading, all_rules: AllRules) -> list[Pairing]:
    return runs_in(reading, all_rules.settings, all_rules.options)


def _clean_runs(reading: Reading, findings: Sequence[Finding], all_rules: AllRules) -> Iterator[Pairing]:
    """The runs without an error or a warning; files of other tools that a folder holds are left out."""
    told = {one.location.source.path for one in findings if one.severity != "hint"}
    for pairing in _runs(reading, all_rules):
        is_foreign = (
            pairing.is_file_alone
            and pairing.path in reading.found
            and not is_surely_a_config(run_of(pairing, all_rules.options).config)
        )
        if not is_foreign and not any(source.path in told for source in pairing.sources):
            yield pairing


@dataclass(frozen=True)
class _Trials:
    """The trials about files that belong together."""

    part: Reading
    all_rules: AllRules
    confirmer: Confirmer
    policy: Policy

    def answers(self, wanted: Sequence[Finding]) -> Iterator[tuple[Finding, Confirmation]]:
        """Each finding with what came of it, rule by rule."""
        if not wanted:
            return
        everything = self.mended(lambda _: True)
        for kind in dict.fromkeys(map(kind_of, wanted)):
            of_kind = [one for one in wanted if kind_of(one) == kind]
            yield from self.of_one_rule(kind, of_kind, everything)

    def of_one_rule(
        self, kind: tuple[str, str], wanted: Sequence[Finding], everything: Reading
    ) -> Iterator[tuple[Finding, Confirmation]]:
        """The findings of one rule in one file: all else is mended, then these too."""
        before = self.mended(lambda finding: kind_of(finding) != kind)
        found = self.found(before, kind)
        if len(found) < len(wanted):  # they went along with others
            before, found = self.part, self.found(self.part, kind)
        left = {one.message for one in self.found(everything, kind)}
        for original, now in zip(wanted, found, strict=False):
            pairing = self.run_with(now, before)
            if pairing is None:
                yield original, Confirmation(NOT_RUN, "no run shows it")
                continue
            after = None if now.message in left else self.same_run(pairing, everything)
            yield original, self.confirmer.answer(Question(now, _effect(now), pairing, after))

    def mended(self, is_wanted: Callable[[Finding], bool]) -> Reading:
        return mend(self.part, self.all_rules.findings, self.policy, is_wanted).reading

    def found(self, reading: Reading, kind: tuple[str, str]) -> list[Finding]:
        return [one for one in self.all_rules.findings(reading) if kind_of(one) == kind]

    def run_with(self, finding: Finding, reading: Reading) -> Pairing | None:
        """The run that a finding is about: of those with its file, the first that has it."""
        runs = [
            pairing
            for pairing in _runs(reading, self.all_rules)
            if any(source.path == finding.location.source.path for source in pairing.sources)
        ]
        return next((run for run in runs if self.has(run, finding)), runs[0] if runs else None)

    def has(self, pairing: Pairing, finding: Finding) -> bool:
        rules = [rule for rule in self.all_rules.rules if rule.code == finding.code and isinstance(rule, Rule)]
        found = judge(facts_of(run_of(pairing, self.all_rules.merged_options)), rules).findings
        return any(one.message == finding.message for one in found)

    def same_run(self, pairing: Pairing, reading: Reading) -> Pairing | None:
        """The run of the same files after they were mended."""
        paths = [source.path for source in pairing.sources]
        runs = _runs(reading, self.all_rules)
        same = [run for run in runs if [source.path for source in run.sources] == paths]
        return next(iter(same or [run for run in runs if run.path == pairing.path]), None)


def _effect(finding: Finding) -> dict[str, object]:
    text = shipped_rule_text(finding.code)
    return {} if text is None else dict(text.data["effect"])

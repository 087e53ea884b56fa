"""The whole of a check: read, link, judge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dslint.documents.discover import has_config_name
from dslint.documents.source import Source
from dslint.inputs import FileTrouble, Reading, read
from dslint.linked import is_surely_a_config, runs_in
from dslint.memory import FEWEST_FILES, Memory
from dslint.rulebook.cache import rules_fingerprint, shipped_rules
from dslint.rulebook.finding import Finding, Judgement, Undecided
from dslint.rulebook.judge import WorkOut, judge
from dslint.rulebook.rule import Rule
from dslint.runs.fact_table import FACTS
from dslint.runs.facts import Facts
from dslint.runs.keys import KeyTable
from dslint.runs.linking import Pairing, run_of, version_for
from dslint.runs.packages import PACKAGES, state
from dslint.runs.releases import NEWEST
from dslint.runs.run import Options, Run
from dslint.runs.schema import schema_for

if TYPE_CHECKING:
    from dslint.rulebook.rule_text import RuleText
    from dslint.runs.versions import KnownVersion
    from dslint.settings.settings import Settings


@dataclass(frozen=True)
class Report:
    """The result of a check.

    Attributes:
        findings: by file and place.
        undecided: rules that lacked a fact, by run.
        troubles: files that could not be checked.
        files: number of files that were read.
        assumption: which DeepSpeed release was taken, where no file or option names the very one; else None.
        suppressed: number of findings that comments or settings silence.
    """

    findings: tuple[Finding, ...]
    undecided: tuple[Undecided, ...]
    troubles: tuple[FileTrouble, ...]
    files: int
    assumption: str | None
    suppressed: int = 0


def check(
    paths: Sequence[str], options: Options, rules: Iterable[Rule | RuleText], settings: Settings | None = None
) -> Report:
    """Checks files and folders.

    Args:
        paths: the files and folders.
        options: what the command line says; it wins over the settings.
        rules: the rules that are wanted, those about dslint's own comments among them.
        settings: the project's settings, where it has any.
    """
    return check_reading(read(paths, settings.excludes if settings else None), options, rules, settings)


def check_reading(
    reading: Reading,
    options: Options,
    rules: Iterable[Rule | RuleText],
    settings: Settings | None = None,
    work_out: WorkOut | None = None,
) -> Report:
    """Checks files that were read.

    Args:
        reading: the files.
        options: what the command line says; it wins over the settings.
        rules: the rules that are wanted, those about dslint's own comments among them.
        settings: the project's settings, where it has any.
        work_out: works out what fixes change, where somebody wants to apply them.
    """
    rules = list(rules)
    bench = _Bench(
        settings.options(options) if settings else options,
        [rule for rule in rules if isinstance(rule, Rule)],
        reading,
        work_out,
    )
    runs = runs_in(reading, settings, options)
    judgements = [bench.judgement(pairing) for pairing in runs]
    bench.adjourn()
    findings = [finding for judgement in judgements for finding in judgement.findings]
    findings = list({_identity(finding): finding for finding in findings}.values())
    undecided = tuple(rule for judgement in judgements for rule in judgement.undecided)
    taking_part = [
        source
        for pairing, judgement in zip(runs, judgements, strict=True)
        if not judgement.is_foreign
        for source in pairing.sources
    ]
    kept, suppressed = _not_silenced(findings, taking_part, settings, rules, undecided)
    return Report(
        tuple(sorted(kept, key=_identity)),
        undecided,
        reading.troubles,
        reading.files,
        next(iter(bench.assumptions), None),
        suppressed,
    )


def _not_silenced(
    findings: list[Finding],
    sources: list[Source],
    settings: Settings | None,
    rules: Sequence[Rule | RuleText],
    undecided: Iterable[Undecided],
) -> tuple[Sequence[Finding], int]:
    """The findings that no comment or setting silences, those about the comments too; how many were silenced."""
    is_marked = any(b"dslint:" in source.data for source in sources)
    if settings is None and not is_marked:
        return findings, 0
    from dslint.rulebook.own_rules import OWN_RULES
    from dslint.rulebook.suppression import apply

    known = [*shipped_rules(), *rules, *OWN_RULES] if is_marked else rules
    outcome = apply(findings, sources, settings, rules, known, {rule.code for rule in undecided})
    return [*outcome.kept, *outcome.complaints], outcome.suppressed


class _Bench:
    """Judges run after run, and remembers those of a large repository."""

    def __init__(self, options: Options, rules: list[Rule], reading: Reading, work_out: WorkOut | None) -> None:
        self.options = options
        self.rules = rules
        self.reading = reading
        self.work_out = work_out
        self.assumptions: dict[str, None] = {}
        is_large = len(reading.configs) >= FEWEST_FILES and work_out is None
        self.memory = Memory(_context(options, rules)) if is_large else None

    def judgement(self, pairing: Pairing) -> Judgement:
        """What the rules say about the run that a pairing forms."""
        version = version_for(pairing.path, self.options)
        assumption = _assumption(version)
        known = self.judge_or_recall(pairing, f"{version.release.text if version else None} {assumption is None}")
        if assumption is not None and not known.is_foreign:
            self.assumptions.setdefault(assumption)
        return known

    def judge_or_recall(self, pairing: Pairing, release: str) -> Judgement:
        """The judgement, from memory where a config by itself had the same content."""
        if self.memory is None or not isinstance(pairing.config, Source) or not pairing.is_file_alone:
            return self.judge(pairing)
        also = f"{release} {self.may_be_foreign(pairing)} {has_config_name(pairing.path)}"
        known = self.memory.recall(pairing.config, also)
        if known is None:
            known = self.judge(pairing)
            self.memory.keep(pairing.config, also, known)
        return known

    def judge(self, pairing: Pairing) -> Judgement:
        """The same without memory; a file that turns out to be no config is left alone if nobody named it."""
        run = run_of(pairing, self.options)
        if self.may_be_foreign(pairing) and not is_surely_a_config(run.config):
            return Judgement((), (), is_foreign=True)
        return judge(facts_of(run), self.rules, self.work_out)

    def may_be_foreign(self, pairing: Pairing) -> bool:
        """Whether a file was only found in a folder, so that it may be another tool's."""
        return pairing.is_file_alone and pairing.path in self.reading.found

    def adjourn(self) -> None:
        """Writes down what is new."""
        if self.memory is not None:
            self.memory.save()


def _context(options: Options, rules: list[Rule]) -> str:
    """What judgements depend on beside the file and its release."""
    codes = ",".join(rule.code for rule in rules)
    installed = ",".join(state(package) for package in PACKAGES)
    return f"{rules_fingerprint()}\0{codes}\0{options}\0{installed}"


def _assumption(version: KnownVersion | None) -> str | None:
    """Which release was taken, in words, where no file or option names the very one."""
    if version is None:
        return f"no DeepSpeed version found: checked for {NEWEST.text}"
    if version.exact:
        return None
    return f"{version.where} leaves the DeepSpeed version open: checked for {version.release.text}"


def _identity(finding: Finding) -> tuple[str, int, str, str]:
    """What tells one finding from another, and what two runs that share a config say twice."""
    return finding.location.source.path, finding.location.span.start, finding.code, finding.message


def facts_of(run: Run) -> Facts:
    """The facts of a run, with the keys of its DeepSpeed release."""
    release = run.version.release if run.version else NEWEST
    return Facts(run, KeyTable(schema_for(release.key)), FACTS)

"""One config, two opinions: what dslint says of it, and what real DeepSpeed does with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dslint.data import data_folder
from dslint.documents.config_reader import read_config
from dslint.documents.source import Source
from dslint.lint import facts_of
from dslint.rulebook.finding import Finding
from dslint.rulebook.judge import judge as judge_run
from dslint.rulebook.loader import RuleFile, load_rules
from dslint.runs.releases import NEWEST
from dslint.runs.run import Options, Run
from dslint.runs.unknown import Unknown
from dslint.runs.versions import KnownVersion, installed_version
from dslint.smoke.client import SmokeServer
from dslint.smoke.trial import Trial
from dslint.smoke.verdict import HANGS, Verdict
from dslint.smoke.verdict import judge as judge_trial

RANKS = 8
TIMEOUT = 60.0
"""Seconds a trial may take; the usual one takes half a second."""


@dataclass(frozen=True)
class Subject:
    """A config that is looked at from both sides.

    Attributes:
        name: what identifies it.
        text: the config.
        mistakes: what was done to it, in words; empty for a file as it was found.
    """

    name: str
    text: str
    mistakes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """What both say about a subject.

    Attributes:
        subject: the config.
        loader: who read it, "deepspeed" or "hf".
        findings: what dslint says.
        verdict: what DeepSpeed did.
    """

    subject: Subject
    loader: str
    findings: tuple[Finding, ...]
    verdict: Verdict

    @property
    def trains(self) -> bool:
        """Whether DeepSpeed trained with it and saved the weights."""
        return self.verdict.trained

    @property
    def unfinished(self) -> bool:
        """Whether the trial ran out of time or memory, which says nothing about the config."""
        killed = self.verdict.failure == "died" and "signal 9" in self.verdict.reason
        return self.verdict.exception == HANGS or killed

    @property
    def refused(self) -> bool:
        """Whether DeepSpeed did not come to the end."""
        return not self.trains and not self.unfinished

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The errors that say that the run will not start or will stop."""
        return tuple(filter(claims_refusal, self.findings))

    @property
    def is_false_alarm(self) -> bool:
        """Whether dslint says that it stops, and it trains."""
        return self.trains and bool(self.errors)

    @property
    def is_missed(self) -> bool:
        """Whether DeepSpeed refuses what dslint has nothing to say about."""
        return self.refused and not self.findings

    @property
    def is_only_warned_of(self) -> bool:
        """Whether DeepSpeed refuses what dslint has no error for, but something else."""
        return self.refused and bool(self.findings) and all(one.severity != "error" for one in self.findings)

    def told(self) -> str:
        """One line for people."""
        did = "trains" if self.trains else f"{self.verdict.exception} in {self.verdict.phase}"
        message = " ".join(self.verdict.message.split())[:200]
        codes = ", ".join(f"{one.code} {one.severity}" for one in self.findings) or "nothing"
        mistakes = f" ({'; '.join(self.subject.mistakes)})" if self.subject.mistakes else ""
        return f"{self.subject.name}{mistakes} [{self.loader}]: DeepSpeed: {did} {message} | dslint: {codes}"


@cache
def rule_files() -> tuple[RuleFile, ...]:
    """All rules with their texts."""
    return tuple(load_rules(Path(data_folder("rules"))))


@cache
def refusing_rules() -> frozenset[str]:
    """The codes of the rules that claim a refusal."""
    return frozenset(file.rule.code for file in rule_files() if "raises" in file.text.data["effect"])


def claims_refusal(finding: Finding) -> bool:
    """Whether a finding is an error that says that the run won't start or will stop."""
    return finding.severity == "error" and finding.code in refusing_rules()


def subjects_in(folder: Path) -> Iterator[Subject]:
    """The configs of a folder, by name."""
    for path in sorted(folder.glob("*.json")):
        yield Subject(path.name, path.read_bytes().decode("utf-8", errors="surrogateescape"))


def compare(server: SmokeServer, subjects: Iterable[Subject]) -> Iterator[Comparison]:
    """Let both judge one subject after the other."""
    for subject in subjects:
        loader = loader_of(subject)
        trial = Trial(
            subject.text,
            gpus=RANKS,
            loader=loader,
            fp16=True,
            bf16=True,
            timeout=TIMEOUT,
            thorough=False,
        )
        verdict = judge_trial([server.run(trial)], mode="simulated", world=RANKS)
        yield Comparison(subject, loader, findings_on(subject, loader), verdict)


def loader_of(subject: Subject) -> str:
    """Who reads a config, as dslint tells from an "auto" in it."""
    loader = facts_of(_run(subject, Options())).loader
    return "deepspeed" if isinstance(loader, Unknown) else loader


def findings_on(subject: Subject, loader: str, packages: Mapping[str, str] | None = None) -> tuple[Finding, ...]:
    """What dslint says, told of everything that the trial has."""
    options = Options(gpus=RANKS, loader=loader, packages=packages)
    rules = (file.rule for file in rule_files())
    return judge_run(facts_of(_run(subject, options)), rules).findings


def _run(subject: Subject, options: Options) -> Run:
    document = read_config(Source(subject.name, subject.text.encode("utf-8", errors="surrogateescape")))
    newest = KnownVersion(NEWEST, exact=True, where="the newest", path=None, line=None)
    return Run(document, None, options, installed_version() or newest)


@dataclass(frozen=True)
class Excuse:
    """Why a trial refuses what dslint rightly lets pass.

    Attributes:
        exception: the class.
        message: a regular expression for the message.
        reason: why it says nothing about the config.
    """

    exception: str
    message: str
    reason: str

    def holds_for(self, comparison: Comparison) -> bool:
        """Whether this is how the trial ended."""
        verdict = comparison.verdict
        return verdict.exception == self.exception and bool(re.search(self.message, verdict.message))


EXCUSES = (
    Excuse(
        "ValueError",
        r"This op had not been implemented on CPU backend",
        "the optimizer has no op for the CPU that the trial runs on",
    ),
    Excuse(
        "AssertionError",
        r"Not able to determine model policy automatically",
        "tensor parallelism knows the models of Hugging Face, and the trial's is none of them",
    ),
)

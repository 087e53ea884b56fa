"""The whole of a check: read, link, judge."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dslint.documents.discover import CODE_ENDINGS, YAML_ENDINGS, files_below, has_config_name
from dslint.documents.document import Document
from dslint.documents.source import Source, UnreadableFileError, read_source
from dslint.memory import FEWEST_FILES, Memory
from dslint.rulebook.cache import cache_folder, rules_fingerprint
from dslint.rulebook.finding import Finding, Judgement, Undecided
from dslint.rulebook.judge import judge
from dslint.rulebook.rule import Rule
from dslint.runs.accelerate import is_accelerate
from dslint.runs.fact_table import FACTS
from dslint.runs.facts import Facts
from dslint.runs.keys import KeyTable
from dslint.runs.linking import Pairing, pair, run_of, version_for
from dslint.runs.packages import PACKAGES, state
from dslint.runs.releases import NEWEST
from dslint.runs.run import Options, Run
from dslint.runs.schema import load_schema, schema_for

if TYPE_CHECKING:
    from dslint.runs.versions import KnownVersion


@dataclass(frozen=True)
class FileTrouble:
    """A file that could not be checked, and why."""

    path: str
    message: str


@dataclass(frozen=True)
class Report:
    """The result of a check.

    Attributes:
        findings: by file and place.
        undecided: rules that lacked a fact, by run.
        troubles: files that could not be checked.
        files: number of files that were read.
        assumption: which DeepSpeed release was taken, where no file or option names the very one; else None.
    """

    findings: tuple[Finding, ...]
    undecided: tuple[Undecided, ...]
    troubles: tuple[FileTrouble, ...]
    files: int
    assumption: str | None


@dataclass(frozen=True)
class Reading:
    """The files, and what could not be read.

    Attributes:
        configs: DeepSpeed configs, or what may be one; parsed when their run is judged.
        accelerate: Accelerate files that use DeepSpeed.
        troubles: files that could not be read.
        found: paths among `configs` that were found in a folder, where other tools have files too.
        files: number of files that were read.
    """

    configs: tuple[Source, ...]
    accelerate: tuple[Document, ...]
    troubles: tuple[FileTrouble, ...]
    found: frozenset[str]
    files: int


def check(paths: Sequence[str], options: Options, rules: Iterable[Rule]) -> Report:
    """Checks files and folders."""
    reading = read(paths)
    bench = _Bench(options, list(rules), reading)
    judgements = [bench.judgement(pairing) for pairing in pair(reading.configs, reading.accelerate)]
    bench.adjourn()
    findings = [finding for judgement in judgements for finding in judgement.findings]
    findings = list({_identity(finding): finding for finding in findings}.values())
    return Report(
        tuple(sorted(findings, key=_identity)),
        tuple(rule for judgement in judgements for rule in judgement.undecided),
        reading.troubles,
        reading.files,
        next(iter(bench.assumptions), None),
    )


class _Bench:
    """Judges run after run, and remembers those of a large repository."""

    def __init__(self, options: Options, rules: list[Rule], reading: Reading) -> None:
        self.options = options
        self.rules = rules
        self.reading = reading
        self.assumptions: dict[str, None] = {}
        is_large = len(reading.configs) >= FEWEST_FILES
        self.memory = Memory(_context(options, rules), cache_folder()) if is_large else None

    def judgement(self, pairing: Pairing) -> Judgement:
        """What the rules say about the run that a pairing forms."""
        version = version_for(pairing.path, self.options)
        assumption = _assumption(version)
        also = f"{version.release.text if version else None} {assumption is None} {self.may_be_foreign(pairing)}"
        source = pairing.config
        can_remember = self.memory is not None and source is not None and pairing.accelerate is None
        known = self.memory.recall(source, also) if self.memory and source and can_remember else None
        if known is None:
            known = self.judge(pairing)
            if self.memory and source and can_remember:
                self.memory.keep(source, also, known)
        if assumption is not None and (known.findings or known.undecided):
            self.assumptions.setdefault(assumption)
        return known

    def judge(self, pairing: Pairing) -> Judgement:
        """The same without memory; a file that turns out to be no config is left alone if nobody named it."""
        run = run_of(pairing, self.options)
        if self.may_be_foreign(pairing) and not _is_surely_a_config(run.config):
            return Judgement((), ())
        return judge(facts_of(run), self.rules)

    def may_be_foreign(self, pairing: Pairing) -> bool:
        """Whether a file was only found in a folder, so that it may be another tool's."""
        return pairing.accelerate is None and pairing.path in self.reading.found

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
    """What two runs that share a config say twice."""
    return finding.location.source.path, finding.location.span.start, finding.code, finding.message


def facts_of(run: Run) -> Facts:
    """The facts of a run, with the keys of its DeepSpeed release."""
    release = run.version.release if run.version else NEWEST
    return Facts(run, KeyTable(schema_for(release.key)), FACTS)


def read(paths: Sequence[str]) -> Reading:
    """Reads every file that is named or lies below a folder that is named."""
    configs: list[Source] = []
    accelerate: list[Document] = []
    troubles: list[FileTrouble] = []
    found: set[str] = set()
    files = 0
    for path, was_named in _expand(paths):
        if path.lower().endswith(CODE_ENDINGS) and os.path.isfile(path):
            files += 1  # no rule speaks about scripts yet, so there is no need to read them
            continue
        try:
            source = _source(path)
        except UnreadableFileError as trouble:
            troubles.append(FileTrouble(path, str(trouble)))
            continue
        files += 1
        if not path.lower().endswith(YAML_ENDINGS):
            configs.append(source)
            found |= set() if was_named else {source.path}
            continue
        document = _read_yaml(source)
        if is_accelerate(document):
            accelerate.append(document)
        elif document.problem is not None and was_named and b"deepspeed" in source.data.lower():
            troubles.append(FileTrouble(path, _with_place(document)))
    return Reading(tuple(configs), tuple(accelerate), tuple(troubles), frozenset(found), files)


def _expand(paths: Sequence[str]) -> list[tuple[str, bool]]:
    """Files, each once, with whether it was named itself rather than found in a folder."""
    expanded: dict[str, bool] = {}
    for path in paths:
        if os.path.isdir(path):
            for found in files_below(path):
                expanded.setdefault(found, False)
        else:
            expanded[path] = True
    return list(expanded.items())


def _source(path: str) -> Source:
    if path == "-":
        import sys

        source = Source("<stdin>", sys.stdin.buffer.read())
        _ = source.text
        return source
    return read_source(path)


def _read_yaml(source: Source) -> Document:
    from dslint.documents.yaml_reader import read_yaml

    return read_yaml(source)


def _is_surely_a_config(document: Document) -> bool:
    """Whether a file that nobody named is a DeepSpeed config: by its name and a key, or by two keys."""
    value = document.value
    if not isinstance(value, dict):
        return document.problem is not None or bool(document.placeholders)
    known = load_schema()["properties"]
    return sum(name in known for name in value) >= (1 if has_config_name(document.source.path) else 2)


def _with_place(document: Document) -> str:
    assert document.problem is not None
    place = document.source.place(document.problem.span.start)
    return f"line {place.line}, column {place.column}: {document.problem.message}"

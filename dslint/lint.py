"""The whole of a check: read, link, judge."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dslint.documents.config_reader import read_config
from dslint.documents.discover import CODE_ENDINGS, YAML_ENDINGS, files_below, has_config_name
from dslint.documents.document import Document
from dslint.documents.source import Source, UnreadableFileError, read_source
from dslint.rulebook.finding import Finding, Undecided
from dslint.rulebook.judge import judge
from dslint.rulebook.rule import Rule
from dslint.runs.accelerate import is_accelerate
from dslint.runs.fact_table import FACTS
from dslint.runs.facts import Facts
from dslint.runs.keys import KeyTable
from dslint.runs.linking import link
from dslint.runs.releases import NEWEST
from dslint.runs.run import Options, Run
from dslint.runs.schema import load_schema, schema_for


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
    """The documents among the files, and what could not be read."""

    configs: tuple[Document, ...]
    accelerate: tuple[Document, ...]
    troubles: tuple[FileTrouble, ...]
    files: int


def check(paths: Sequence[str], options: Options, rules: Iterable[Rule]) -> Report:
    """Checks files and folders."""
    reading = read(paths)
    runs = link(reading.configs, reading.accelerate, options)
    rules = list(rules)
    findings: list[Finding] = []
    undecided: list[Undecided] = []
    for run in runs:
        judgement = judge(facts_of(run), rules)
        findings += judgement.findings
        undecided += judgement.undecided
    findings = list({_identity(finding): finding for finding in findings}.values())
    findings.sort(key=_identity)
    return Report(
        tuple(findings),
        tuple(undecided),
        reading.troubles,
        reading.files,
        next(filter(None, map(_assumption, runs)), None),
    )


def _assumption(run: Run) -> str | None:
    if run.version is None:
        return f"no DeepSpeed version found: checked for {NEWEST.text}"
    if run.version.exact:
        return None
    return f"{run.version.where} leaves the DeepSpeed version open: checked for {run.version.release.text}"


def _identity(finding: Finding) -> tuple[str, int, str, str]:
    """What two runs that share a config say twice."""
    return finding.location.source.path, finding.location.span.start, finding.code, finding.message


def facts_of(run: Run) -> Facts:
    """The facts of a run, with the keys of its DeepSpeed release."""
    release = run.version.release if run.version else NEWEST
    return Facts(run, KeyTable(schema_for(release.key)), FACTS)


def read(paths: Sequence[str]) -> Reading:
    """Reads every file that is named or lies below a folder that is named."""
    configs: list[Document] = []
    accelerate: list[Document] = []
    troubles: list[FileTrouble] = []
    files = 0
    for path, was_named in _expand(paths):
        if path.lower().endswith(CODE_ENDINGS) and os.path.isfile(path):
            files += 1  # no rule speaks about scripts yet, so there is no need to read them
            continue
        try:
            document = _parse(_source(path))
        except UnreadableFileError as trouble:
            troubles.append(FileTrouble(path, str(trouble)))
            continue
        files += 1
        if not path.lower().endswith(YAML_ENDINGS):
            if was_named or _is_surely_a_config(document):
                configs.append(document)
        elif is_accelerate(document):
            accelerate.append(document)
        elif document.problem is not None and was_named and b"deepspeed" in document.source.data.lower():
            troubles.append(FileTrouble(path, _with_place(document)))
    return Reading(tuple(configs), tuple(accelerate), tuple(troubles), files)


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


def _parse(source: Source) -> Document:
    if source.path.lower().endswith(YAML_ENDINGS):
        from dslint.documents.yaml_reader import read_yaml

        return read_yaml(source)
    return read_config(source)


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

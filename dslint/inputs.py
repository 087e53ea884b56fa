"""The files that a check is about: found, read, and told apart."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from dslint.documents.discover import CODE_ENDINGS, YAML_ENDINGS, files_below
from dslint.documents.document import Document
from dslint.documents.source import Source, UnreadableFileError, read_source
from dslint.runs.accelerate import is_accelerate


@dataclass(frozen=True)
class FileTrouble:
    """A file that could not be checked, and why."""

    path: str
    message: str


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


def _with_place(document: Document) -> str:
    assert document.problem is not None
    place = document.source.place(document.problem.span.start)
    return f"line {place.line}, column {place.column}: {document.problem.message}"

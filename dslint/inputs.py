"""The files that a check is about: found, read, and told apart."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dslint.documents.discover import CODE_ENDINGS, SCRIPT_ENDINGS, YAML_ENDINGS, files_below
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
        scripts: Python files and notebooks.
        shells: shell scripts.
        troubles: files that could not be read.
        found: paths that were found in a folder, where other tools have files too.
        files: number of files that were read.
        folders: folders that were named, to be searched.
    """

    configs: tuple[Source, ...]
    accelerate: tuple[Document, ...]
    scripts: tuple[Source, ...]
    shells: tuple[Source, ...]
    troubles: tuple[FileTrouble, ...]
    found: frozenset[str]
    files: int
    folders: tuple[str, ...] = ()

    @property
    def sources(self) -> list[Source]:
        """All files that could be read."""
        in_yaml = [document.source for document in self.accelerate]
        return [*self.configs, *in_yaml, *self.scripts, *self.shells]


def read(paths: Sequence[str], is_excluded: Callable[[str], bool] | None = None) -> Reading:
    """Reads every file that is named or lies below a folder that is named.

    Args:
        paths: files and folders.
        is_excluded: tells of a file that was found in a folder whether to leave it out.
    """
    configs: list[Source] = []
    accelerate: list[Document] = []
    scripts: list[Source] = []
    shells: list[Source] = []
    troubles: list[FileTrouble] = []
    found: set[str] = set()
    files = 0
    for path, was_named in _expand(paths, is_excluded):
        try:
            source = _source(path)
        except UnreadableFileError as trouble:
            troubles.append(FileTrouble(path, str(trouble)))
            continue
        files += 1
        if not was_named:
            found.add(source.path)
        if path.lower().endswith(CODE_ENDINGS):
            (scripts if path.lower().endswith(SCRIPT_ENDINGS) else shells).append(source)
            continue
        if not path.lower().endswith(YAML_ENDINGS):
            configs.append(source)
            continue
        document = _read_yaml(source)
        if is_accelerate(document):
            accelerate.append(document)
        elif document.problem is not None and was_named and b"deepspeed" in source.data.lower():
            troubles.append(FileTrouble(path, _with_place(document)))
    return Reading(
        configs=tuple(configs),
        accelerate=tuple(accelerate),
        scripts=tuple(scripts),
        shells=tuple(shells),
        troubles=tuple(troubles),
        found=frozenset(found),
        files=files,
        folders=tuple(path for path in paths if os.path.isdir(path)),
    )


def _expand(paths: Sequence[str], is_excluded: Callable[[str], bool] | None) -> list[tuple[str, bool]]:
    """Files, each once, with whether it was named itself rather than found in a folder."""
    expanded: dict[str, bool] = {}
    for path in paths:
        if os.path.isdir(path):
            for found in files_below(path):
                if is_excluded is None or not is_excluded(found):
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

"""Other readings made of one: with changed files, with more of them, with some alone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from dslint.documents.discover import CODE_ENDINGS, SCRIPT_ENDINGS, SHELL_ENDINGS, YAML_ENDINGS
from dslint.documents.document import Document
from dslint.documents.source import Source
from dslint.inputs import Reading
from dslint.runs.accelerate import is_accelerate


def with_files(reading: Reading, changed: Sequence[Source]) -> Reading:
    """The reading with other contents for some files; one that can't be read any more drops out."""
    new = {os.path.realpath(source.path): source for source in changed}

    def now(source: Source) -> Source:
        return new.get(os.path.realpath(source.path), source)

    return replace(
        reading,
        configs=tuple(map(now, reading.configs)),
        accelerate=tuple(_accelerate_now(reading, new)),
        scripts=tuple(map(now, reading.scripts)),
        shells=tuple(map(now, reading.shells)),
    )


def _accelerate_now(reading: Reading, new: Mapping[str, Source]) -> Iterator[Document]:
    from dslint.documents.yaml_reader import read_yaml

    for document in reading.accelerate:
        source = new.get(os.path.realpath(document.source.path))
        again = document if source is None else read_yaml(source)
        if again.problem is None and is_accelerate(again):
            yield again


def together(reading: Reading, runs: Sequence[Sequence[Source]]) -> list[tuple[str, ...]]:
    """The real paths of files that belong together since runs share them; each path in one group only.

    Files that runs lead to are among them, also where they are not among those to check.
    """
    group_of: dict[str, set[str]] = {}
    for sources in runs:
        paths = {os.path.realpath(source.path) for source in sources}
        merged = set().union(paths, *(group_of[path] for path in paths if path in group_of))
        for path in merged:
            group_of[path] = merged
    at_hand = [os.path.realpath(source.path) for source in reading.sources]
    groups: dict[int, tuple[str, ...]] = {}
    for path in at_hand:
        group = group_of.setdefault(path, {path})
        groups.setdefault(id(group), tuple(sorted(group)))
    return list(groups.values())


def only(reading: Reading, paths: Sequence[str]) -> Reading:
    """The reading with these files alone, by real path."""
    kept = frozenset(paths)

    def stays(source: Source) -> bool:
        return os.path.realpath(source.path) in kept

    part = replace(
        reading,
        configs=tuple(filter(stays, reading.configs)),
        accelerate=tuple(one for one in reading.accelerate if stays(one.source)),
        scripts=tuple(filter(stays, reading.scripts)),
        shells=tuple(filter(stays, reading.shells)),
        troubles=(),
    )
    return replace(part, files=len(part.sources))


def with_more(reading: Reading, sources: Iterable[Source]) -> Reading:
    """The reading with further files of folders that were named, which a search leaves out by themselves.

    A script without a word of DeepSpeed is one, where a launch command leads to it.
    """
    known = {os.path.realpath(source.path) for source in reading.sources}
    more: dict[str, Source] = {}
    for source in sources:
        path = os.path.realpath(source.path)
        if path not in known and any(_is_below(path, folder) for folder in reading.folders):
            more.setdefault(path, source)
    new = list(more.values())
    endings = (SCRIPT_ENDINGS, SHELL_ENDINGS, (*CODE_ENDINGS, *YAML_ENDINGS))
    return replace(
        reading,
        scripts=(*reading.scripts, *(one for one in new if one.path.lower().endswith(endings[0]))),
        shells=(*reading.shells, *(one for one in new if one.path.lower().endswith(endings[1]))),
        configs=(*reading.configs, *(one for one in new if not one.path.lower().endswith(endings[2]))),
        found=reading.found | {one.path for one in new},
    )


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(os.path.join(os.path.realpath(folder), ""))

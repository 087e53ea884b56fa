"""Puts documents together into runs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from dslint.documents.config_reader import read_config
from dslint.documents.document import Document
from dslint.documents.source import UnreadableFileError, read_source
from dslint.runs import accelerate
from dslint.runs.run import Options, Run

if TYPE_CHECKING:
    from dslint.runs.versions import KnownVersion


def link(configs: Iterable[Document], accelerate_files: Iterable[Document], options: Options) -> list[Run]:
    """The runs that the documents form.

    An Accelerate file is a run with the config that it names, or with its inline keys; every config that no
    file names is a run by itself.
    """
    by_path = {os.path.realpath(config.source.path): config for config in configs}
    runs: list[Run] = []
    named: set[str] = set()
    for started_by in accelerate_files:
        config = _config_of(started_by, by_path)
        if config is not None:
            named.add(os.path.realpath(config.source.path))
            runs.append(Run(config, started_by, options, version_for(config.source.path, options)))
    alone = [config for path, config in by_path.items() if path not in named]
    return [
        *(Run(config, None, options, version_for(config.source.path, options)) for config in alone),
        *runs,
    ]


def version_for(path: str, options: Options) -> KnownVersion | None:
    """The DeepSpeed release of a file: as the user says, as files near it say, as installed."""
    if options.deepspeed is not None:
        from dslint.runs.versions import KnownVersion

        return KnownVersion(options.deepspeed, exact=True, where="--deepspeed", path=None, line=None)
    return _version_in(os.path.dirname(os.path.abspath(path)))


@lru_cache(maxsize=1024)
def _version_in(folder: str) -> KnownVersion | None:
    from dslint.runs.versions import find_version, installed_version

    return find_version(os.path.join(folder, "ds_config.json")) or installed_version()


def _config_of(started_by: Document, by_path: dict[str, Document]) -> Document | None:
    reference = accelerate.config_file(started_by)
    if reference is None:
        return accelerate.as_config(started_by)
    folder = os.path.dirname(started_by.source.path)
    for candidate in (
        reference[0],
        os.path.join(folder, reference[0]),
        _below_a_parent(folder, reference[0]),
    ):
        if os.path.isfile(candidate):
            known = by_path.get(os.path.realpath(candidate))
            return known or _read(candidate)
    return None


def _below_a_parent(folder: str, name: str) -> str:
    """The file as seen from a folder above, up to the top of the repository."""
    here = os.path.abspath(folder)
    while not os.path.isfile(os.path.join(here, name)):
        above = os.path.dirname(here)
        if above == here or os.path.isdir(os.path.join(here, ".git")):
            break
        here = above
    return os.path.relpath(os.path.join(here, name))


def _read(path: str) -> Document | None:
    try:
        return read_config(read_source(path))
    except UnreadableFileError:
        return None

"""Puts documents together into runs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from dslint.documents.config_reader import read_config
from dslint.documents.document import Document
from dslint.documents.source import Source, UnreadableFileError, read_source
from dslint.runs import accelerate
from dslint.runs.run import Options, Run

if TYPE_CHECKING:
    from dslint.runs.versions import KnownVersion


@dataclass(frozen=True)
class Pairing:
    """The files of one run, not yet parsed where that can wait.

    Attributes:
        config: the file with the DeepSpeed config; None where the Accelerate file holds its keys.
        accelerate: the Accelerate file that starts the run, where there is one.
    """

    config: Source | None
    accelerate: Document | None

    @property
    def path(self) -> str:
        """The file that the run is about."""
        if self.config is not None:
            return self.config.path
        assert self.accelerate is not None
        return self.accelerate.source.path


def pair(configs: Iterable[Source], accelerate_files: Iterable[Document]) -> list[Pairing]:
    """Which files belong together.

    An Accelerate file is a run with the config that it names, or with its inline keys; every config that no
    file names is a run by itself.
    """
    by_path = {os.path.realpath(config.path): config for config in configs}
    started: list[Pairing] = []
    named: set[str] = set()
    for started_by in accelerate_files:
        if accelerate.config_file(started_by) is None:
            started.append(Pairing(None, started_by))
            continue
        config = _named_config(started_by, by_path)
        if config is not None:
            named.add(os.path.realpath(config.path))
            started.append(Pairing(config, started_by))
    return [*(Pairing(config, None) for path, config in by_path.items() if path not in named), *started]


def run_of(pairing: Pairing, options: Options) -> Run:
    """The run that the files of a pairing form."""
    if pairing.config is not None:
        config = read_config(pairing.config)
    else:
        assert pairing.accelerate is not None
        config = accelerate.as_config(pairing.accelerate)
    return Run(config, pairing.accelerate, options, version_for(pairing.path, options))


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


def _named_config(started_by: Document, by_path: dict[str, Source]) -> Source | None:
    """The config that an Accelerate file names: as seen from here, from its folder, or from one above."""
    reference = accelerate.config_file(started_by)
    assert reference is not None
    folder = os.path.dirname(started_by.source.path)
    near = os.path.join(folder, reference[0])
    for candidate in (reference[0], near, _below_a_parent(folder, reference[0])):
        if os.path.isfile(candidate):
            return by_path.get(os.path.realpath(candidate)) or _read(candidate)
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


def _read(path: str) -> Source | None:
    try:
        return read_source(path)
    except UnreadableFileError:
        return None

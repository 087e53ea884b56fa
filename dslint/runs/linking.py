"""Puts documents together into runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from dslint.documents.config_reader import read_config
from dslint.documents.document import Document, stand_in
from dslint.documents.source import Source, UnreadableFileError, read_source
from dslint.runs import accelerate
from dslint.runs.run import Options, Run

if TYPE_CHECKING:
    from dslint.runs.files import Place
    from dslint.runs.launch.launch import Launch
    from dslint.runs.script.reading import Deeds
    from dslint.runs.versions import KnownVersion


@dataclass(frozen=True)
class Pairing:
    """The files of one run, not yet parsed where that can wait.

    Attributes:
        config: the file with the DeepSpeed config, or the dict that a script writes; None where the Accelerate
            file holds its keys, or where nobody can tell.
        accelerate: the Accelerate file that starts the run, where there is one.
        script: what the script of the run does, where there is one.
        launch: the command that starts it, where there is one.
        stated: what `[[tool.dslint.runs]]` says of the run beside its files.
        missing: the path of a config that script or command name and that isn't there.
        named: further files that the launch command names, by the option's name.
        place: where the script looks for the folders that it names; None without a script.
    """

    config: Source | Document | None
    accelerate: Document | None
    script: Deeds | None = None
    launch: Launch | None = None
    stated: Options | None = None
    missing: str | None = None
    named: Mapping[str, Source] = field(default_factory=dict)
    place: Place | None = None

    @property
    def source(self) -> Source:
        """The file that the run is about."""
        if isinstance(self.config, Document):
            return self.config.source
        if self.config is not None:
            return self.config
        if self.accelerate is not None:
            return self.accelerate.source
        if self.script is not None:
            return self.script.script.source
        assert self.launch is not None
        return self.launch.source

    @property
    def path(self) -> str:
        """The path of the file that the run is about."""
        return self.source.path

    @property
    def sources(self) -> list[Source]:
        """The files that the run is made of."""
        config = self.config.source if isinstance(self.config, Document) else self.config
        found = [
            config,
            self.accelerate.source if self.accelerate else None,
            self.script.script.source if self.script else None,
            self.launch.source if self.launch else None,
            *(module.source for module in (self.script.modules if self.script else ())),
        ]
        return [source for source in found if source is not None]

    @property
    def is_file_alone(self) -> bool:
        """Whether it is a config file by itself."""
        return isinstance(self.config, Source) and (self.accelerate, self.script, self.launch) == (
            None,
            None,
            None,
        )


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
    options = options if pairing.stated is None else pairing.stated
    if isinstance(pairing.config, Source):
        config = read_config(pairing.config)
    elif pairing.config is not None:
        config = pairing.config
    elif pairing.accelerate is not None:
        config = accelerate.as_config(pairing.accelerate)
    else:
        config = stand_in(pairing.source)
    version = version_for(pairing.path, options)
    return Run(
        config,
        pairing.accelerate,
        options,
        version,
        pairing.script,
        pairing.launch,
        pairing.named,
        pairing.missing,
        pairing.place,
    )


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

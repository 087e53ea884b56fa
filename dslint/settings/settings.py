"""The settings of a project, checked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dslint.settings.globs import glob_matches

if TYPE_CHECKING:
    from dslint.runs.run import Options


@dataclass(frozen=True)
class Hardware:
    """What settings say about the machines and versions of one run, or of all runs.

    Attributes:
        gpus: GPUs a node, one rank each.
        nodes: number of nodes.
        gpu: a name that `find_gpu` knows, or "auto".
        deepspeed: a release of DeepSpeed.
    """

    gpus: int | None = None
    nodes: int | None = None
    gpu: str | None = None
    deepspeed: str | None = None


@dataclass(frozen=True)
class StatedRun:
    """One `[[tool.dslint.runs]]`: files that belong to one training run because somebody says so.

    Attributes:
        name: what to call it; None where it has no name.
        config: path of the DeepSpeed config, from here; so are the next three.
        script: path of the training script.
        launch: path of the shell script that starts it.
        accelerate: path of the Accelerate file.
        hardware: where it runs.
        line: where it stands in the settings file.
        lines: the line of each of its keys, by the name in the file.
    """

    name: str | None
    config: str | None
    script: str | None
    launch: str | None
    accelerate: str | None
    hardware: Hardware
    line: int
    lines: Mapping[str, int]


@dataclass(frozen=True)
class Ignore:
    """Rules that are not to be reported at some places.

    Attributes:
        pattern: a glob over paths, or a dotted config key in which `*` stands for any one name.
        labels: codes, beginnings of codes and names; "all" for every rule.
    """

    pattern: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Settings:
    """What a settings file says.

    Attributes:
        file: the file's path, from here.
        folder: absolute path of the file's folder, which patterns are relative to.
        select: labels of the only rules that are wanted; None for all.
        ignore: labels of the rules that are not.
        fail_on: the mildest severity that gives exit code 1, or "never".
        hardware: where runs take place that say nothing else.
        loader: who reads the configs: "hf" or "deepspeed".
        exclude: globs of files that a search through folders leaves out.
        per_file_ignores: what is not reported in which files.
        ignore_keys: what is not reported at or inside which config keys.
        runs: runs that the files by themselves don't show.
    """

    file: str
    folder: str
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    fail_on: str | None = None
    hardware: Hardware = field(default_factory=Hardware)
    loader: str | None = None
    exclude: tuple[str, ...] = ()
    per_file_ignores: tuple[Ignore, ...] = ()
    ignore_keys: tuple[Ignore, ...] = ()
    runs: tuple[StatedRun, ...] = ()

    def options(self, given: Options, run: StatedRun | None = None) -> Options:
        """The options of a run: as given on the command line, else as the run says, else as the settings say.

        Raises:
            NoGpuFound: the GPU of this machine is asked for, and there is none.
        """
        merged = given if given.loader is not None else replace(given, loader=self.loader)
        for hardware in ([run.hardware] if run else []) + [self.hardware]:
            merged = _filled(merged, hardware)
        return merged

    def excludes(self, path: str) -> bool:
        """Whether a file that was found in a folder shall be left out."""
        return any(self.matches(pattern, path) for pattern in self.exclude)

    def matches(self, pattern: str, path: str) -> bool:
        """Whether a glob of these settings means a file; files outside of their folder are never meant."""
        try:
            below = os.path.relpath(os.path.abspath(path), self.folder)
        except ValueError:  # another drive
            return False
        names = below.split(os.sep)
        return names[0] != os.pardir and glob_matches(pattern, "/".join(names))


def _filled(options: Options, hardware: Hardware) -> Options:
    """The options, with the hardware where they say nothing."""
    if options.gpus is None:
        options = replace(options, gpus=hardware.gpus)
    if options.nodes is None:
        options = replace(options, nodes=hardware.nodes)
    if options.gpu is None and hardware.gpu is not None:
        from dslint.runs.gpus import find_gpu, local_gpus

        gpu = local_gpus()[0] if hardware.gpu == "auto" else find_gpu(hardware.gpu)
        options = replace(options, gpu=gpu)
    if options.deepspeed is None and hardware.deepspeed is not None:
        from dslint.runs.releases import parse_release

        options = replace(options, deepspeed=parse_release(hardware.deepspeed))
    return options

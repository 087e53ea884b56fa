"""One training run, as far as files and options tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dslint.documents.document import Document
from dslint.documents.source import Source

if TYPE_CHECKING:
    from dslint.runs.files import Place
    from dslint.runs.gpus import Gpu
    from dslint.runs.launch.launch import Launch
    from dslint.runs.releases import Release
    from dslint.runs.script.reading import Deeds
    from dslint.runs.versions import KnownVersion


@dataclass(frozen=True)
class Options:
    """What the user says about a run beside the files.

    Attributes:
        gpus: GPUs a node, one rank each; None where nobody says.
        nodes: number of nodes; None where nobody says (one, if `gpus` is there).
        gpu: the type of GPU.
        deepspeed: the DeepSpeed release.
        packages: for packages beside DeepSpeed, "installed" or "missing"; None to look into this environment.
        loader: who reads the config: "hf" (Transformers or Accelerate, which fill "auto") or "deepspeed".
    """

    gpus: int | None = None
    nodes: int | None = None
    gpu: Gpu | None = None
    deepspeed: Release | None = None
    loader: str | None = None
    packages: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Run:
    """The files and options of one training run.

    Attributes:
        config: the DeepSpeed config, with an Accelerate file's inline keys in DeepSpeed's own terms; a stand-in
            where the script takes it from somewhere that nobody can follow.
        accelerate: the Accelerate file that starts the run, where there is one.
        options: what the user says beside the files.
        version: the DeepSpeed release that the files or the environment name; None where none does.
        script: what the training script does, where there is one.
        launch: the command that starts it, where there is one.
        named: the hostfile that the command names, by the option's name ("hostfile"), where it is there.
        missing: the path of a config that script or command name and that isn't there.
        place: where the script looks for the folders that it names; None without a script.
    """

    config: Document
    accelerate: Document | None
    options: Options
    version: KnownVersion | None
    script: Deeds | None = None
    launch: Launch | None = None
    named: Mapping[str, Source] = field(default_factory=dict)
    missing: str | None = None
    place: Place | None = None

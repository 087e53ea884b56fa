"""From a file and the options to the trial that tries it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dslint.documents.discover import YAML_ENDINGS
from dslint.documents.document import Document
from dslint.documents.source import Source, UnreadableFileError, read_source
from dslint.documents.yaml_reader import read_yaml
from dslint.lint import facts_of
from dslint.runs import accelerate
from dslint.runs.facts import Facts
from dslint.runs.gpus import Gpu
from dslint.runs.linking import Pairing, pair, run_of
from dslint.runs.run import Options
from dslint.runs.scale import BATCH_KEYS
from dslint.runs.schema import load_schema
from dslint.runs.unknown import Unknown
from dslint.smoke.environment import SmokeError
from dslint.smoke.trial import Trial


@dataclass(frozen=True)
class SmokeOptions:
    """What the command line says about a smoke.

    Attributes:
        gpus: ranks a node, or None for what the file or the machine says.
        nodes: number of nodes.
        gpu: the GPU whose abilities are simulated.
        mode: "simulated", "real", or None for real where there are GPUs enough.
        device: "cpu", "cuda" or "auto".
        loader: who reads the config, or None for what the config says.
        steps: optimizer steps before the save.
        timeout: seconds a trial may take, builds of ops left out.
        python: the interpreter that trains.
    """

    gpus: int | None
    nodes: int | None
    gpu: Gpu | None
    mode: str | None
    device: str
    loader: str | None
    steps: int
    timeout: float
    python: str


@dataclass(frozen=True)
class Plan:
    """A trial that still lacks what only the machine can say.

    Attributes:
        path: the file it is about.
        config: the text of the DeepSpeed config, if there is one.
        accelerate: the text of the Accelerate file, if there is one.
        loader: "deepspeed" or "hf".
        gpus: ranks a node, where options or file tell.
        nodes: number of nodes.
        ranks_from: where the number of ranks comes from, in words; empty if neither options nor file tell.
    """

    path: str
    config: str | None
    accelerate: str | None
    loader: str
    gpus: int | None
    nodes: int
    ranks_from: str

    def trial(self, options: SmokeOptions, here: int, *, answers_like_a_gpu: bool) -> Trial:
        """The trial on a machine with `here` GPUs."""
        simulated = True if answers_like_a_gpu else None
        return Trial(
            config=self.config,
            accelerate=self.accelerate,
            gpus=self.gpus or max(here, 1),
            nodes=self.nodes,
            loader=self.loader,
            fp16=options.gpu.fp16 if options.gpu else simulated,
            bf16=options.gpu.bf16 if options.gpu else simulated,
            steps=options.steps,
            timeout=options.timeout,
        )


def plan(path: str, options: SmokeOptions) -> Plan:
    """How to try a file.

    Raises:
        SmokeError: if the file can't be read or is no DeepSpeed config.
    """
    pairing = _pairing(path)
    facts = facts_of(run_of(pairing, Options(options.gpus, options.nodes, options.gpu, None, options.loader)))
    if pairing.config is not None:
        _must_be_a_config(facts.document)
    gpus, origin = _gpus(facts, options)
    loader = facts.loader
    return Plan(
        path=path,
        config=_text(pairing.config) if isinstance(pairing.config, Source) else None,
        accelerate=None if pairing.accelerate is None else _text(pairing.accelerate.source),
        loader="deepspeed" if isinstance(loader, Unknown) else loader,
        gpus=gpus,
        nodes=options.nodes or 1,
        ranks_from=origin,
    )


def _pairing(path: str) -> Pairing:
    try:
        source = Source("<stdin>", _stdin()) if path == "-" else read_source(path)
    except UnreadableFileError as error:
        raise SmokeError(f"{path}: {error}") from None
    if not path.lower().endswith(YAML_ENDINGS):
        return Pairing(source, None)
    document = read_yaml(source)
    if not accelerate.is_accelerate(document):
        raise SmokeError(
            f"{path}: not an Accelerate file that uses DeepSpeed; smoke takes those and DeepSpeed configs"
        )
    pairings = pair([], [document])
    if not pairings:
        raise SmokeError(f"{path}: the deepspeed_config_file that it names is not there")
    return pairings[0]


def _stdin() -> bytes:
    import sys

    return sys.stdin.buffer.read()


def _text(source: Source) -> str:
    return source.data.decode("utf-8", errors="surrogateescape")


def _must_be_a_config(document: Document) -> None:
    """Refuse what DeepSpeed would not even get as far as to misunderstand.

    Raises:
        SmokeError: saying what the file is instead.
    """
    path = document.source.path
    if document.placeholders:
        raise SmokeError(f"{path}: a template with placeholders; fill it in before it can train")
    if document.problem is not None:
        place = document.source.place(document.problem.span.start)
        raise SmokeError(f"{path}:{place.line}:{place.column}: {document.problem.message}")
    if not document.source.text.strip():
        raise SmokeError(f"{path}: the file is empty")
    if not isinstance(document.value, dict):
        raise SmokeError(f"{path}: not a DeepSpeed config: it holds {_kind(document.value)} instead of an object")
    known = load_schema()["properties"]
    if document.value and not any(key in known for key in document.value):
        raise SmokeError(f"{path}: not a DeepSpeed config: none of its keys is one of DeepSpeed's")


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


def _gpus(facts: Facts, options: SmokeOptions) -> tuple[int | None, str]:
    """Ranks a node, and where the number comes from."""
    if options.gpus is not None:
        return options.gpus, "--gpus"
    started = accelerate.ranks(facts.run.accelerate)
    if isinstance(started, int) and started > 0:
        return started, "the Accelerate file"
    sizes = [facts.value(f"config.{key}") for key in BATCH_KEYS]
    if all(isinstance(size, int) and not isinstance(size, bool) and size > 0 for size in sizes):
        train, micro, accumulation = sizes
        ranks, rest = divmod(train, micro * accumulation)
        gpus, uneven = divmod(ranks, options.nodes or 1)
        if not rest and not uneven and gpus:
            return gpus, "the batch sizes"
    return None, ""


def script_of(path: str) -> Path:
    """The user's script.

    Raises:
        SmokeError: if there is no such file.
    """
    if not os.path.isfile(path):
        raise SmokeError(f"{path}: {'a folder, not a script' if os.path.isdir(path) else 'no such script'}")
    return Path(path)

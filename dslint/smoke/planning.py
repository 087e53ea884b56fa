"""From a file and the options to the trial that tries it."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from dslint.runs.releases import Release


class CannotPlanError(SmokeError):
    """A run that can't be tried, whatever machine there is; the message says why."""


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
        deepspeed: the release that the run is said to use, or None for what its files say.
        share_gpus: whether real ranks may share a GPU.
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
    deepspeed: Release | None = None
    share_gpus: bool = False

    def of_run(self) -> Options:
        """What they say about a run, for the facts of it."""
        return Options(self.gpus, self.nodes, self.gpu, self.deepspeed, self.loader)

    def for_pairing(self, pairing: Pairing) -> SmokeOptions:
        """The options with what the settings state of this run, in which the command line's are contained."""
        stated = pairing.stated
        if stated is None:
            return self
        return dataclasses.replace(
            self,
            gpus=stated.gpus,
            nodes=stated.nodes,
            gpu=stated.gpu,
            loader=stated.loader,
            deepspeed=stated.deepspeed,
        )


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
        arguments: TrainingArguments that the run's script gives, for the loader "hf".
        launcher: who starts the ranks: "torchrun" or "deepspeed".
        missing: packages that the options say are not installed.
    """

    path: str
    config: str | None
    accelerate: str | None
    loader: str
    gpus: int | None
    nodes: int
    ranks_from: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    launcher: str = "torchrun"
    missing: tuple[str, ...] = ()

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
            arguments=self.arguments,
            launcher=self.launcher,
            missing=self.missing,
            shared=options.share_gpus,
            metered=True,
        )


def plan(path: str, options: SmokeOptions) -> Plan:
    """How to try a file.

    Raises:
        SmokeError: if the file can't be read or is no DeepSpeed config.
    """
    pairing = _pairing(path)
    facts = facts_of(run_of(pairing, options.of_run()))
    if pairing.config is not None:
        _must_be_a_config(facts.document)
    return dataclasses.replace(_plan(pairing, facts, options), path=path)


def plan_of(pairing: Pairing, facts: Facts, options: SmokeOptions) -> Plan:
    """How to try the config of a run, broken or not, with a tiny model.

    Args:
        pairing: the run's files.
        facts: the run's facts.
        options: the command line, for this pairing.

    Raises:
        CannotPlanError: if nobody can tell the config that the run takes.
    """
    if pairing.config is not None or pairing.accelerate is None:
        _must_be_told(facts.document, pairing)
    return _plan(pairing, facts, options)


def _plan(pairing: Pairing, facts: Facts, options: SmokeOptions) -> Plan:
    gpus, nodes, origin = ranks_of(facts, options)
    loader = facts.loader
    packages = facts.run.options.packages or {}
    return Plan(
        path=pairing.path,
        config=None if pairing.config is None else config_text(pairing.config),
        accelerate=None if pairing.accelerate is None else _text(pairing.accelerate.source),
        loader="deepspeed" if isinstance(loader, Unknown) else loader,
        gpus=gpus,
        nodes=nodes,
        ranks_from=origin,
        arguments=trainer_arguments(facts),
        launcher="deepspeed" if pairing.launch and pairing.launch.launcher == "deepspeed" else "torchrun",
        missing=tuple(name for name, state in packages.items() if state == "missing"),
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


def config_text(config: Source | Document) -> str:
    """The text of a config; of one that a script writes as a dict, JSON that says the same."""
    return _text(config) if isinstance(config, Source) else json.dumps(config.value)


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


def _must_be_told(document: Document, pairing: Pairing) -> None:
    """Refuse a config of which a part is only known when the script runs.

    Raises:
        CannotPlanError: saying what is unknown.
    """
    path = document.source.path
    if document.language == "none":
        wanted = pairing.missing
        raise CannotPlanError(
            f"{path}: the DeepSpeed config that it takes "
            + (f"({wanted}) isn't there" if wanted else "can't be told from the files")
        )
    if document.language == "python" and (document.placeholders or document.open):
        raise CannotPlanError(f"{path}: a part of the DeepSpeed config is known only when the script runs")
    if document.placeholders:
        raise CannotPlanError(f"{path}: a template with placeholders; fill it in before it can train")


# --- what else the run tells ---


def ranks_of(facts: Facts, options: SmokeOptions) -> tuple[int | None, int, str]:
    """Ranks a node, where anything tells, the number of nodes, and where the ranks come from."""
    nodes = options.nodes or 1
    if facts.run.launch is not None:
        started = facts.value("ranks")
        several = facts.value("launch.nodes")
        nodes = several if isinstance(several, int) and several > 0 else nodes
        if isinstance(started, int) and started > 0 and started % nodes == 0:
            return started // nodes, nodes, "the launch command"
    gpus, origin = _gpus(facts, options, nodes)
    return gpus, nodes, origin


def _gpus(facts: Facts, options: SmokeOptions, nodes: int) -> tuple[int | None, str]:
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
        gpus, uneven = divmod(ranks, nodes)
        if not rest and not uneven and gpus:
            return gpus, "the batch sizes"
    return None, ""


FILLED_FROM = (
    *("per_device_train_batch_size", "gradient_accumulation_steps", "max_grad_norm", "learning_rate"),
    *("adam_beta1", "adam_beta2", "adam_epsilon", "weight_decay", "warmup_steps", "fp16", "bf16"),
)
"""TrainingArguments that Transformers holds against the config, or fills it from, beside the length."""


def trainer_arguments(facts: Facts) -> dict[str, Any]:
    """Those of FILLED_FROM that the run's script or command gives, as far as files tell their values."""
    arguments = facts.arguments
    if arguments is None or facts.loader != "hf":
        return {}
    given = {name: arguments.value(name) for name in FILLED_FROM if arguments.given(name) is True}
    return {name: value for name, value in given.items() if isinstance(value, (bool, int, float))}


def script_of(path: str) -> Path:
    """The user's script.

    Raises:
        SmokeError: if there is no such file.
    """
    if not os.path.isfile(path):
        raise SmokeError(f"{path}: {'a folder, not a script' if os.path.isdir(path) else 'no such script'}")
    return Path(path)

"""A run with a script, or a launch command, as a trial in a mirror of the user's folder."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator

from dslint.documents.excerpt import ExcerptSource
from dslint.documents.source import Source, UnreadableFileError, read_source
from dslint.runs.facts import Facts
from dslint.runs.linking import Pairing
from dslint.smoke.confirm.command import PLACED, environment_of, relative_to, words_of, working_folder
from dslint.smoke.confirm.places import TOP, below_top
from dslint.smoke.planning import CannotPlanError, SmokeOptions, ranks_of
from dslint.smoke.proofs.script_cases import MOST_REAL_RANKS, NEEDS_PEERS, REAL_RANKS
from dslint.smoke.proofs.script_evidence import Effect
from dslint.smoke.script_trial import ScriptTrial

MOST_GPUS = 8
"""GPUs that a launcher finds which shall choose among them."""

SILENCE = 12.0
"""Seconds of standstill after which the ranks of a user's script count as waiting for each other."""


def launch_trial_of(pairing: Pairing, facts: Facts, options: SmokeOptions) -> ScriptTrial:
    """The launch command of a run, up to where it would start the script, which isn't executed.

    Raises:
        CannotPlanError: if there is no such command, or a part of it is known only when it runs.
    """
    launch = pairing.launch
    if launch is None:
        raise CannotPlanError("there is no launch command to try")
    if _chooses_gpus(pairing) and options.gpus is None and not pairing.named:
        raise CannotPlanError("it chooses among the machine's GPUs, and nothing tells their number (--gpus)")
    words = words_of(launch, None)
    where = os.path.abspath(launch.directory or os.path.dirname(launch.source.path) or ".")
    trial = ScriptTrial(_files(pairing), script=None, words=words, environment=environment_of(launch))
    return _on_ranks(_placed(trial, where if os.path.isdir(where) else os.getcwd()), pairing, facts, options)


def script_trial_of(
    pairing: Pairing, facts: Facts, options: SmokeOptions, effect: Effect, *, here: int, to_the_end: bool
) -> ScriptTrial:
    """The script of a run as its launch command starts it, for a few optimizer steps.

    Args:
        pairing: the run's files.
        facts: the run's facts.
        options: the command line, for this pairing.
        effect: what shall be seen.
        here: number of GPUs of this machine.
        to_the_end: whether the effect only shows behind the training loop.

    Raises:
        CannotPlanError: if it can't be started as the user would, or as the effect needs it.
    """
    script = _script_of(pairing)
    config = pairing.config if isinstance(pairing.config, Source) else None
    where = working_folder(pairing.launch, script, None if config is None else config.path)
    trial = _on_ranks(
        ScriptTrial(
            _files(pairing),
            script=below_top(script),
            words=_words(pairing, os.path.relpath(os.path.abspath(script), where)),
            environment={} if pairing.launch is None else environment_of(pairing.launch),
            steps=options.steps,
            silence=SILENCE,
            to_the_end=to_the_end,
        ),
        pairing,
        facts,
        options,
    )
    trial = _as_ranks_are(_placed(trial, where), pairing, options, effect, here)
    return dataclasses.replace(trial, words=relative_to(_counted(trial), [*_paths(pairing)], where))


def _script_of(pairing: Pairing) -> str:
    assert pairing.script is not None
    path = pairing.script.script.source.path
    if path.endswith(".ipynb"):
        raise CannotPlanError(f"{path}: a notebook, which is not executed")
    return path


# --- words ---


def _words(pairing: Pairing, script: str) -> tuple[str, ...]:
    """The words of the command; one for all ranks where there is none, whose number `_counted` writes in."""
    if pairing.launch is not None:
        return words_of(pairing.launch, script)
    if pairing.accelerate is None:
        return ("torchrun", "--nproc_per_node", RANKS, script)
    file = os.path.abspath(pairing.accelerate.source.path)
    return ("accelerate", "launch", f"--config_file={file}", "--num_processes", RANKS, script)


RANKS = "{ranks}"
"""Stands for the number of ranks in the words of a run without a launch command."""


def _counted(trial: ScriptTrial) -> tuple[str, ...]:
    return tuple(str(trial.ranks) if word == RANKS else word for word in trial.words)


# --- files ---


def _sources(pairing: Pairing) -> Iterator[Source]:
    for source in (*pairing.sources, *pairing.named.values()):
        if isinstance(source, ExcerptSource):
            raise CannotPlanError(f"{source.path}: it writes the config itself, and is not executed")
        yield source


def _paths(pairing: Pairing) -> Iterator[str]:
    yield from dict.fromkeys(source.path for source in _sources(pairing))


def _files(pairing: Pairing) -> dict[str, str]:
    """The run's files as they shall be, by their paths below TOP."""
    sources = {below_top(source.path): source for source in _sources(pairing)}
    changed = [source for source in sources.values() if _differs_from_disk(source)]
    for source in changed:
        path = os.path.abspath(source.path)
        named_by = next((one.path for one in sources.values() if path.encode() in one.data), None)
        if named_by is not None and named_by != getattr(pairing.launch, "source", source).path:
            raise CannotPlanError(f"{named_by}: it names {path}, so that a mended copy would not be taken")
    return {name: source.data.decode("utf-8", "surrogateescape") for name, source in sources.items()}


def _differs_from_disk(source: Source) -> bool:
    try:
        return read_source(source.path).data != source.data
    except UnreadableFileError:
        return True


def _placed(trial: ScriptTrial, where: str) -> ScriptTrial:
    """The trial in a mirror of TOP, started in this folder."""
    return dataclasses.replace(trial, beside=TOP, where=below_top(where))


# --- ranks ---


def _on_ranks(trial: ScriptTrial, pairing: Pairing, facts: Facts, options: SmokeOptions) -> ScriptTrial:
    """The trial with the run's ranks, of which a simulation needs one process only."""
    gpus, nodes, _ = ranks_of(facts, options)
    answer = options.gpu
    return dataclasses.replace(
        trial,
        gpus=(options.gpus or MOST_GPUS) if _chooses_gpus(pairing) else gpus or REAL_RANKS,
        nodes=nodes,
        timeout=options.timeout,
        fp16=answer.fp16 if answer else None,
        bf16=answer.bf16 if answer else None,
    )


def _chooses_gpus(pairing: Pairing) -> bool:
    return pairing.launch is not None and any(name in pairing.launch.options for name in PLACED)


def _as_ranks_are(
    trial: ScriptTrial, pairing: Pairing, options: SmokeOptions, effect: Effect, here: int
) -> ScriptTrial:
    """The trial with real ranks where that can be, else a simulated one.

    Raises:
        CannotPlanError: if the effect can't be seen in a simulation.
    """
    most = here or MOST_REAL_RANKS
    is_small = trial.nodes == 1 and trial.ranks <= most and not _chooses_gpus(pairing)
    if is_small and options.mode != "simulated":
        return dataclasses.replace(trial, mode="real")
    if trial.ranks > 1 and any(effect.get(name) for name in NEEDS_PEERS):
        raise CannotPlanError(f"only real ranks show it, and the run's {trial.ranks} are not started here")
    return trial

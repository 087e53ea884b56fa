"""The words of a run's launch command, as its launcher gets them; no shell runs for it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from dslint.runs.launch.launch import Launch
from dslint.runs.unknown import Unknown
from dslint.smoke.planning import CannotPlanError

STARTS = {
    "deepspeed": ("deepspeed",),
    "torchrun": ("torchrun",),
    "torch.distributed.launch": ("python", "-m", "torch.distributed.launch"),
    "accelerate": ("accelerate", "launch"),
    "python": ("python",),
}
"""The words before the options, by launcher."""

OF_THE_MACHINES = frozenset(
    [
        *("master_addr", "master_port", "node_rank", "rdzv_backend", "rdzv_conf", "rdzv_endpoint", "rdzv_id"),
        *("main_process_ip", "main_process_port", "machine_rank", "log_dir"),
    ]
)
"""Options that say where ranks meet; one whose value is known only when it runs is left out."""

PLACED = ("include", "exclude", "deepspeed_inclusion_filter", "deepspeed_exclusion_filter")
"""Options that choose among the machine's own GPUs."""


def words_of(launch: Launch, script: str | None) -> tuple[str, ...]:
    """The words of a command.

    Args:
        launch: the command.
        script: the script's path from where it runs; None for the one that the command says.

    Raises:
        CannotPlanError: if a word is known only when the command runs, or something else starts the ranks.
    """
    _must_start_here(launch)
    words = [*STARTS[launch.launcher], *(word for _, word in sorted(_options(launch), key=lambda one: one[0]))]
    if launch.script is not None:
        word = launch.script.text if script is None or launch.is_module else script
        words.append(_known(word, launch, "the script's name"))
    for number, argument in enumerate(launch.arguments, 1):
        if not argument.many:  # "$@": nobody gives the shell script any words here
            words.append(_known(argument.text, launch, f"argument {number} of the script"))
    return tuple(words)


def environment_of(launch: Launch) -> dict[str, str]:
    """The variables that the shell script sets, as far as they are known."""
    return {name: value.text for name, value in launch.environment.items() if isinstance(value.text, str)}


def relative_to(words: Sequence[str], files: Sequence[str], where: str) -> tuple[str, ...]:
    """The words with absolute paths of these files given as seen from the folder `where`."""
    absolute = {path: os.path.relpath(path, where) for path in map(os.path.abspath, files)}

    def changed(word: str) -> str:
        option, has_value, value = word.rpartition("=")
        return f"{option}{has_value}{absolute.get(value, value)}"

    return tuple(changed(word) for word in words)


def _must_start_here(launch: Launch) -> None:
    where = f"{launch.source.path}: the run"
    if launch.outer or launch.launcher not in STARTS:
        launcher = launch.outer[0].launcher if launch.outer else launch.launcher
        raise CannotPlanError(f"{where} is started by {launcher}")
    if launch.environment_unknown:
        raise CannotPlanError(f"{where} is started in a container")
    if launch.options_incomplete:
        raise CannotPlanError(f"{where} is started with options that are known only when it runs")


def _options(launch: Launch) -> Iterator[tuple[int, str]]:
    """The launcher's options, each with where it stands."""
    for name, option in launch.options.items():
        if isinstance(option.value, Unknown):
            if name not in OF_THE_MACHINES:
                raise CannotPlanError(f"{launch.source.path}: the value of --{name} is known only when it runs")
        elif option.value is not True:
            yield option.span.start, f"--{name}={option.value}"
        else:
            yield option.span.start, "-m" if launch.launcher == "python" else f"--{name}"
    for unknown in launch.unknown_options:
        for word in _text_of_unknown(launch, unknown.span.start):
            yield unknown.span.start, word


def _text_of_unknown(launch: Launch, start: int) -> list[str]:
    """An option that the launcher doesn't have, with what may be its value: the text up to what comes next."""
    known = [option.span.start for option in launch.options.values()]
    known += [option.span.start for option in launch.unknown_options]
    known += [launch.script.span.start] if launch.script else []
    end = min((place for place in known if place > start), default=len(launch.source.data))
    text = launch.source.data[start:end].decode("utf-8", "replace").replace("\\\n", " ")
    if "$" in text or "`" in text or "\n" in text.strip():
        raise CannotPlanError(
            f"{launch.source.path}: {text.split()[0]} has a value that is known only when it runs"
        )
    return shlex.split(text)


def _known(text: str | Unknown, launch: Launch, name: str) -> str:
    if isinstance(text, Unknown):
        raise CannotPlanError(f"{launch.source.path}: {name} is known only when it runs")
    return text


def working_folder(launch: Launch | None, script: str, config: str | None) -> str:
    """The folder in which the run is started, as an absolute path.

    Args:
        launch: its command, where there is one.
        script: the script's path.
        config: the path of the config's file, where there is one.
    """
    beside = os.path.dirname(os.path.abspath(script))
    if launch is None:
        is_below = config is None or os.path.abspath(config).startswith(f"{beside}{os.sep}")
        is_here = os.path.abspath(script).startswith(f"{os.getcwd()}{os.sep}")
        return beside if is_below or not is_here else os.getcwd()
    here = os.path.dirname(os.path.abspath(launch.source.path))
    directory = [os.path.join(here, launch.directory), launch.directory] if launch.directory else []
    for folder in (*directory, ".", here):
        if _leads_to(folder, launch, script):
            return os.path.abspath(folder)
    return beside


def _leads_to(folder: str, launch: Launch, script: str) -> bool:
    word = launch.script.text if launch.script is not None else None
    if not isinstance(word, str):
        return False
    path = Path(folder, word.replace(".", "/") + ".py") if launch.is_module else Path(folder, word)
    return os.path.realpath(path) == os.path.realpath(script)

"""How the launch command of an example is started: its words, read from the text of a shell script."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LAUNCHERS = ("deepspeed", "ds", "torchrun", "accelerate", "accelerate-launch")
"""Programs that start a training, beside Python itself."""

RANKS = re.compile(r"--(?:num_gpus|nproc[_-]per[_-]node|num_processes)[= ](\d+)")
"""The options that tell the number of ranks of a node."""


@dataclass(frozen=True)
class Planned:
    """A launch command.

    Attributes:
        words: the command's, from the launcher on.
        environment: variables that are set before, or for, it.
        ranks: the number of ranks that it names; None if it names none.
    """

    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    ranks: int | None = None


class NoLaunchError(ValueError):
    """The text holds no command that starts a training; the message is for the example's author."""


def planned(case: Mapping[str, Any]) -> Planned | None:
    """The launch command of a case; None if it has no `launch`.

    Raises:
        NoLaunchError: if that text starts no training, or is no shell script.
    """
    if "launch" not in case:
        return None
    exported: dict[str, str] = {}
    for words in _commands(case["launch"]):
        environment, rest = _split(words)
        if not rest or rest[0] == "export":
            exported |= environment | _split(rest[1:])[0]
        elif Path(rest[0]).name in LAUNCHERS or Path(rest[0]).name.startswith("python"):
            told = RANKS.search(" ".join(rest))
            return Planned(tuple(rest), exported | environment, int(told[1]) if told else None)
    raise NoLaunchError(f"nothing starts a training in {case['launch']!r}")


def _commands(text: str) -> Iterator[list[str]]:
    """The words of each line, continued lines joined, comments left out."""
    for line in text.replace("\\\n", " ").splitlines():
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            raise NoLaunchError(f"{line}: {error}") from error
        if words:
            yield words


def _split(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """The assignments before a command, and the command."""
    environment: dict[str, str] = {}
    rest = list(words)
    while rest and re.fullmatch(r"[A-Za-z_]\w*=.*", rest[0], re.DOTALL):
        name, _, value = rest.pop(0).partition("=")
        environment[name] = value
    return environment, rest

"""What a launcher starts, and how it is kept from doing so."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any


@dataclass(frozen=True)
class Started:
    """One rank as its launcher starts it.

    Attributes:
        script: the file, or the module.
        arguments: what the script gets.
        environment: variables that the launcher sets.
        is_module: whether `script` is the name of a module.
        with_launcher: what started it, in the end.
    """

    script: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    is_module: bool = False
    with_launcher: str = "python"

    @property
    def ranks(self) -> int:
        """Number of ranks that the launcher tells; 1 where it tells none."""
        return int(self.environment.get("WORLD_SIZE", 1))


class RecordedError(BaseException):
    """A launcher has been kept from going on; no `except Exception` on the way shall catch it."""


class Recorder:
    """Stands in for the module `subprocess` in a launcher.

    Attributes:
        commands: what should have been started, each with its environment.
    """

    def __init__(self, *, stop: bool) -> None:
        self.commands: list[tuple[list[str], dict[str, str]]] = []
        self._stop = stop

    def module(self) -> Any:
        """What the launcher finds under the name `subprocess`."""
        return SimpleNamespace(
            **{name: getattr(subprocess, name) for name in ("CalledProcessError", "DEVNULL", "PIPE", "STDOUT")},
            Popen=self._start,
            check_call=lambda *_, **__: 0,  # every host can be reached
            check_output=lambda *_, **__: b"127.0.0.1 ",  # by this address
        )

    def _start(self, command: Sequence[str], env: Mapping[str, str] | None = None, **_: Any) -> Any:
        self.commands.append((list(command), dict(env or {})))
        if self._stop:
            raise RecordedError
        return _NeverStarted()


class _NeverStarted:
    """A process of which the launcher may ask whether it still runs, and no more."""

    pid = 0

    def poll(self) -> int | None:
        raise RecordedError


def python_command(words: Sequence[str], environment: Mapping[str, str], launcher: str) -> Started:
    """The rank that a command starts: `[python -u [-m]] SCRIPT ARGUMENT…`, perhaps after a word like numactl's."""
    rest = list(words)
    at = next((place for place, word in enumerate(rest) if Path(word).name.startswith("python")), None)
    is_module = False
    if at is not None:
        rest = rest[at + 1 :]
        while rest and rest[0].startswith("-"):
            is_module = rest.pop(0) == "-m"
            if is_module:
                break
    script, *arguments = rest or [""]
    return Started(script, tuple(arguments), environment, is_module, launcher)

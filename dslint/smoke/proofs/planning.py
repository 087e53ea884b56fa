"""How the launch command of an example is started: its words, as the real shell expands them."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LAUNCHERS = (
    *("deepspeed", "ds", "torchrun", "accelerate", "accelerate-launch", "python", "python3"),
    *("srun", "mpirun", "mpiexec"),
)
"""Programs that start a training."""

RANKS = re.compile(r"--(?:num_gpus|nproc[_-]per[_-]node|num_processes)[= ](\d+)")
"""The options that tell the number of ranks of a node."""

STAND_IN = """\
#!/bin/sh
[ -e "$DSLINT_TOLD/words" ] && exit 0
env -0 > "$DSLINT_TOLD/environment"
printf '%s\\0' "$(basename "$0")" "$@" > "$DSLINT_TOLD/words"
"""
"""Stands for each launcher while the shell runs: it writes down how it was started, the first time."""

PATIENCE = 20
"""Seconds that the shell may take."""

OWN_VARIABLES = frozenset(["DSLINT_TOLD", "PATH", "PWD", "OLDPWD", "SHLVL", "_"])
"""Variables that the shell, or this module, sets for itself."""


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

    Bash runs the text, with stand-ins for the launchers that only write down their words.

    Raises:
        NoLaunchError: if that text starts no training, or is no shell script.
    """
    if "launch" not in case:
        return None
    with tempfile.TemporaryDirectory(prefix="dslint-launch-") as place:
        folder = Path(place)
        before = _run(case["launch"], folder)
        if not (folder / "words").exists():
            raise NoLaunchError(f"nothing starts a training in {case['launch']!r}")
        words = (folder / "words").read_text("utf-8").split("\0")[:-1]
        after = _variables((folder / "environment").read_text("utf-8"))
    told = RANKS.search(" ".join(words))
    changed = {
        name: value for name, value in after.items() if before.get(name) != value and name not in OWN_VARIABLES
    }
    return Planned(tuple(words), changed, int(told[1]) if told else None)


def _run(text: str, folder: Path) -> dict[str, str]:
    """Let bash run a text among stand-ins; the environment that it began with."""
    programs = folder / "programs"
    programs.mkdir()
    for name in LAUNCHERS:
        (programs / name).write_text(STAND_IN, "utf-8")
        (programs / name).chmod(0o755)
    (folder / "run.sh").write_text(text, "utf-8")
    path = f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    environment = {**os.environ, "PATH": path, "DSLINT_TOLD": str(folder)}
    try:
        subprocess.run(
            ["bash", "run.sh"], cwd=folder, env=environment, capture_output=True, timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoLaunchError(f"bash can't run {text!r}: {error}") from error
    return environment


def _variables(listed: str) -> dict[str, str]:
    return dict(entry.partition("=")[::2] for entry in listed.split("\0") if "=" in entry)

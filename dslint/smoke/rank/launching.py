"""A launch command, given to the launcher that it names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from dslint.smoke.rank.launchers.started import Started, python_command

Launcher = Callable[[Sequence[str], int, int], Started]

PRELOADED = (
    "deepspeed.launcher.runner",
    "deepspeed.launcher.launch",
    "torch.distributed.run",
    "torch.distributed.launch",
    "accelerate.commands.launch",
    "torch.testing._internal.distributed.fake_pg",
)
"""What the server imports before it forks the first script."""


def start(words: Sequence[str], rank: int, gpus: int) -> Started:
    """The rank of this number, as the launcher of a command starts it.

    What the launcher refuses comes out as it is: the exceptions it raises, SystemExit for its options.

    Args:
        words: the whole command.
        rank: the rank's number.
        gpus: how many GPUs the launcher finds on this node.
    """
    name = Path(words[0]).name
    if name.startswith("python") and len(words) > 2 and words[1] == "-m":
        name, rest = words[2], words[3:]
    else:
        rest = words[1:]
    if name == "accelerate" and rest[:1] == ["launch"]:
        rest = rest[1:]
    launcher = _launchers().get(name)
    return python_command(words, {}, "python") if launcher is None else launcher(rest, rank, gpus)


def _launchers() -> dict[str, Launcher]:
    from dslint.smoke.rank.launchers import by_deepspeed, by_torch

    return {
        **dict.fromkeys(
            ("deepspeed", "ds", "deepspeed.launcher.runner", "deepspeed.launcher"), by_deepspeed.start
        ),
        **dict.fromkeys(("torchrun", "torch.distributed.run"), by_torch.start),
        "torch.distributed.launch": by_torch.start_by_launch,
        **dict.fromkeys(("accelerate", "accelerate-launch", "accelerate.commands.launch"), _by_accelerate),
    }


def _by_accelerate(words: Sequence[str], rank: int, gpus: int) -> Started:
    from dslint.smoke.rank.launchers import by_accelerate

    return by_accelerate.start(words, rank, gpus)

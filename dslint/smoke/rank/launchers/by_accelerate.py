"""Accelerate's launcher: `accelerate launch …`, which sets variables and then starts another launcher."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

from dslint.smoke.rank.launchers import by_deepspeed, by_torch
from dslint.smoke.rank.launchers.started import RecordedError, Recorder, Started, python_command


def start(words: Sequence[str], rank: int, gpus: int) -> Started:
    """The rank of this number (accelerate/commands/launch.py, launch_command).

    Args:
        words: what follows `accelerate launch`.
        rank: the rank's number.
        gpus: how many GPUs this node has.
    """
    import accelerate.commands.launch
    import accelerate.utils.launch
    import torch
    import torch.distributed.run

    command: Any = accelerate.commands.launch
    settings: Any = accelerate.utils.launch
    torchrun: Any = torch.distributed.run
    before = dict(os.environ)
    recorder = Recorder(stop=True)
    given_on: list[tuple[Any, dict[str, str]]] = []  # to torchrun: its options, and the variables beside them
    command.subprocess = recorder.module()
    settings.is_port_in_use = lambda *_: False
    torchrun.run = lambda options: given_on.append((options, _changes(before, os.environ)))
    count = torch.cuda.device_count
    torch.cuda.device_count = lambda: gpus
    try:
        command.launch_command(command.launch_command_parser().parse_args(list(words)))
    except RecordedError:
        pass
    finally:
        torch.cuda.device_count = count
    if given_on:
        options, changes = given_on[0]
        return _with(by_torch.start_parsed(options, rank, gpus), changes)
    started, environment = recorder.commands[0]
    changes = _changes(before, environment)
    if started[0] == "deepspeed":
        return _with(by_deepspeed.start(started[1:], rank, gpus), changes)
    return python_command(started, changes, "accelerate")


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in after.items() if before.get(name) != value}


def _with(started: Started, changes: Mapping[str, str]) -> Started:
    return dataclasses.replace(started, environment={**changes, **started.environment}, with_launcher="accelerate")

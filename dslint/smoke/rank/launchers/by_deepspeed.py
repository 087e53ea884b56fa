"""DeepSpeed's launcher: `deepspeed …`, then what it starts on each node."""

from __future__ import annotations

import importlib
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from dslint.smoke.rank.launchers.started import RecordedError, Recorder, Started, python_command

ON_NODE = "deepspeed.launcher.launch"


def start(words: Sequence[str], rank: int, gpus: int) -> Started:
    """The rank of this number, as the launcher's own program starts it (deepspeed/launcher/runner.py, main).

    Every host can be reached, and every program for several nodes counts as installed.

    Args:
        words: what follows `deepspeed`.
        rank: the rank's number.
        gpus: how many GPUs this node has.
    """
    command, environment = _command_for_nodes(words, gpus)
    if ON_NODE not in command:  # mpirun or srun: DeepSpeed tells such ranks nothing itself
        return python_command(command, environment, "deepspeed")
    exported = dict(re.findall(r"export (\w+)=(.*?); ", " ".join(command[: command.index(ON_NODE)])))
    own = [word.replace("%n", "0") for word in command[command.index(ON_NODE) + 1 :]]
    return _on_node(own, {**environment, **exported}, rank)


def _command_for_nodes(words: Sequence[str], gpus: int) -> tuple[list[str], dict[str, str]]:
    import deepspeed.launcher.runner
    from deepspeed.accelerator import get_accelerator

    runner: Any = deepspeed.launcher.runner
    accelerator: Any = get_accelerator()
    count = accelerator.device_count
    recorder = Recorder(stop=True)
    runner.subprocess = recorder.module()
    runner.run_autotuning = lambda *_: recorder.module().Popen(["python", *_script_of(words)], {})
    for backend in runner.LAUNCHER_CLASSES.values():
        backend.backend_exists = lambda _: True
    accelerator.device_count = lambda: gpus
    try:
        runner.main(list(words))
    except RecordedError:
        pass
    finally:
        accelerator.device_count = count
    return recorder.commands[0]


def _script_of(words: Sequence[str]) -> list[str]:
    """From the script on, where the launcher would tune before it starts it."""
    import deepspeed.launcher.runner

    options = deepspeed.launcher.runner.parse_args(list(words))
    return [options.user_script, *options.user_args]


def _on_node(words: Sequence[str], environment: Mapping[str, str], rank: int) -> Started:
    """What the node's program starts (deepspeed/launcher/launch.py, main)."""
    launch: Any = importlib.import_module(ON_NODE)
    recorder = Recorder(stop=False)
    launch.subprocess = recorder.module()
    before = sys.argv
    handlers = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    sys.argv = [ON_NODE, *words]
    try:
        launch.main()
    except RecordedError:
        pass
    finally:
        sys.argv = before
        for each, handler in handlers.items():
            signal.signal(each, handler)
    command, own = recorder.commands[min(rank, len(recorder.commands) - 1)]
    return python_command(command, {**environment, **own}, "deepspeed")

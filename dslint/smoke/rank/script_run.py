"""A script as one rank, in the child: the launcher decides what it gets, then it runs as `__main__`."""

from __future__ import annotations

import contextlib
import os
import sys
import time
import traceback
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from dslint.smoke.rank.following import Follower
from dslint.smoke.rank.launchers.started import Started
from dslint.smoke.rank.launching import start
from dslint.smoke.rank.memory_meter import peak_on_gpu
from dslint.smoke.rank.process_groups import groups_through_gloo, simulate_groups
from dslint.smoke.rank.script_folder import ScriptFolder
from dslint.smoke.rank.simulation import (
    hide_packages,
    set_abilities,
    share_gpus,
    without_shared_memory_collective,
)
from dslint.smoke.rank.step_limit import StepLimit
from dslint.smoke.rank.watch import Watch
from dslint.smoke.reporting import Reporter
from dslint.smoke.script.intercept import execute
from dslint.smoke.script_trial import ScriptTrial

REPORT = "TINY_REPORT"
"""The variable that tells the module `tiny` where to write what the script says."""


class WrongRanksError(Exception):
    """The launch command starts another number of ranks than the trial has."""


def run_script(trial: ScriptTrial, rank: int, port: int, report: Path, reporter: Reporter) -> None:
    """Launch and run the trial's script as this rank, in the folder that holds its files.

    Args:
        trial: what to run.
        rank: the rank's number, 0 in a simulation.
        port: where real ranks meet.
        report: the file of the reporter, for the module `tiny`.
        reporter: who is told.
    """
    reporter.enter("launch")
    folder = ScriptFolder(trial)
    _become_rank(trial)
    watch = Watch(reporter, redirect=False)
    watch.follow_warnings()
    watch.follow_builds()
    try:
        os.environ.update(trial.environment)
        folder.enter()
        started = start(trial.command(), rank, trial.gpus)
    except BaseException as error:
        _tell_failure(error, folder, reporter)
        reporter.tell(warned=watch.warned)
        raise
    reporter.tell(started=[started.script, *started.arguments], ranks=started.ranks)
    if trial.script is None:
        reporter.tell(warned=watch.warned)
        reporter.enter("done")
        return
    _take_environment(trial, started, port, report)
    reporter.enter("script")
    _run(trial, started, reporter, watch, folder)
    reporter.enter("done")


def _become_rank(trial: ScriptTrial) -> None:
    """What has to hold before anything of the script runs."""
    sys.dont_write_bytecode = True
    os.environ["TQDM_DISABLE"] = "1"  # bars of progress would only lengthen the output
    set_abilities(fp16=trial.fp16, bf16=trial.bf16)
    without_shared_memory_collective()
    hide_packages(tuple(name for name in trial.missing if name in sys.modules or find_spec(name)))
    if not trial.real:
        simulate_groups()
    elif not torch.cuda.is_available():
        groups_through_gloo()
    if not torch.cuda.is_available():
        torch.cuda.set_device = lambda *_: None
    _prepare_huggingface()


def _prepare_huggingface() -> None:
    """Where Accelerate and Transformers are imported already, let them take a machine without GPU for one with."""
    from dslint.smoke.rank import hugging_face

    if "accelerate.state" in sys.modules:
        hugging_face.simulate_launched_gpu()
    if "transformers.training_args" in sys.modules:
        hugging_face.simulate_gpu_for_transformers()


def _take_environment(trial: ScriptTrial, started: Started, port: int, report: Path) -> None:
    if trial.real and started.ranks != trial.ranks:
        raise WrongRanksError(f"the command starts {started.ranks} ranks, the trial has {trial.ranks}")
    left_out = {"CUDA_VISIBLE_DEVICES"} if torch.cuda.is_available() else set()
    os.environ.update({name: value for name, value in started.environment.items() if name not in left_out})
    os.environ[REPORT] = str(report)
    if trial.real and started.environment.get("WORLD_SIZE"):
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    if trial.shared:
        share_gpus()


def _run(trial: ScriptTrial, started: Started, reporter: Reporter, watch: Watch, folder: ScriptFolder) -> None:
    limit = StepLimit(trial.steps, reporter, to_the_end=trial.to_the_end) if trial.steps else None
    follower = Follower(simulated=not trial.real, limit=limit)
    follower.begin()
    if limit is not None:
        limit.begin()
    folder.search_modules(started)
    try:
        _execute(started)
    except BaseException as error:
        if not _is_normal_end(error):
            _tell_failure(error, folder, reporter)
            raise
    finally:
        told: dict[str, Any] = {"warned": watch.warned, "peak_memory": peak_on_gpu()}
        with contextlib.suppress(Exception):
            told |= {"engines": follower.facts(), "settings": follower.settings()}
        told["files"] = folder.written_files()
        reporter.tell(**told)


def _execute(started: Started) -> None:
    if not started.is_module:
        execute(started.script, list(started.arguments))
        return
    import runpy

    sys.argv = [started.script, *started.arguments]
    runpy.run_module(started.script, run_name="__main__", alter_sys=True)


def _is_normal_end(error: BaseException) -> bool:
    return isinstance(error, SystemExit) and error.code in (None, 0)


def _tell_failure(error: BaseException, folder: ScriptFolder, reporter: Reporter) -> None:
    """When it failed, at which line of the script, and with which exit code if it chose one."""
    own = folder.own_files
    lines = [
        f"{own[frame.filename]}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename in own
    ]
    if isinstance(error, SyntaxError) and error.filename in own:
        lines.append(f"{own[error.filename]}:{error.lineno}")
    code = error.code if isinstance(error, SystemExit) else None
    reporter.tell(failed_at=time.monotonic(), where=lines[-1] if lines else None, code=code)

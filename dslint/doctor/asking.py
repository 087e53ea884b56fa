"""Asks an interpreter about itself, its torch and its DeepSpeed, in a process of its own.

Torch and DeepSpeed are never imported here: they take seconds, and a broken build can kill the process.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dslint.doctor.environment import Failure

PROBE = Path(__file__).with_name("probe.py")
SECONDS = 180.0
"""The time limit; imports take about three seconds, and much longer from a cold network disk."""


class NoAnswerError(Exception):
    """An interpreter that can't be asked; the message says why."""


@dataclass(frozen=True)
class Answers:
    """What the interpreter said, by stage; a stage is missing where it failed or there was nothing to ask."""

    python: Mapping[str, Any]
    torch: Mapping[str, Any] | None
    deepspeed: Mapping[str, Any] | None
    failures: tuple[Failure, ...]


def ask(python: str, builders: Sequence[str], seconds: float = SECONDS) -> Answers:
    """Runs the probe.

    Args:
        python: the interpreter, by its path or by a name on the PATH.
        builders: DeepSpeed's op builders to ask about.
        seconds: the time limit.

    Raises:
        NoAnswerError: there is no such interpreter, or it doesn't even tell its version.
    """
    path = shutil.which(python)
    if path is None:
        what = "not a program that can be run" if os.path.exists(python) else "no such program"
        raise NoAnswerError(f"{python}: {what}")
    output, errors, status = _run([path, str(PROBE), *builders], seconds)
    stages, begun = _stages(output)
    if "version" not in stages.get("python", {}):
        reason = str(stages.get("python", {}).get("error") or _last_words(errors, status))
        raise NoAnswerError(f"{python}: gives no answer as Python 3.8 or newer would ({reason})")
    return Answers(
        stages["python"],
        _fine(stages.get("torch")),
        _fine(stages.get("deepspeed")),
        tuple(_failures(stages, begun, errors, status, seconds)),
    )


def _run(command: list[str], seconds: float) -> tuple[str, str, int | None]:
    """Output, error output and exit status, which is None where the time was up."""
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise NoAnswerError(f"{command[0]}: can't be run: {error.strerror or error}") from None
    try:
        output, errors = child.communicate(timeout=seconds)
        return output, errors, child.returncode
    except subprocess.TimeoutExpired:
        _end(child)
        output, errors = child.communicate()
        return output, errors, None
    except BaseException:
        _end(child)
        raise


def _end(child: subprocess.Popen[str]) -> None:
    """Ends the child and what it started, such as a compiler."""
    if os.name == "posix":
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
    else:
        child.kill()


def _stages(output: str) -> tuple[dict[str, dict[str, Any]], str | None]:
    """The finished stages, and the one that was begun last."""
    stages: dict[str, dict[str, Any]] = {}
    begun = None
    for line in output.splitlines():
        try:
            content = json.loads(line)
        except ValueError:
            continue  # what a sitecustomize prints, or half a line of a process that was killed
        if not isinstance(content, dict):
            continue
        if "begins" in content:
            begun = str(content["begins"])
        elif "stage" in content:
            stages[str(content["stage"])] = content
    return stages, begun


def _fine(stage: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return None if stage is None or "error" in stage else stage


def _failures(
    stages: Mapping[str, Mapping[str, Any]], begun: str | None, errors: str, status: int | None, seconds: float
) -> list[Failure]:
    failures = [Failure(stage, str(content["error"])) for stage, content in stages.items() if "error" in content]
    if begun is not None and begun not in stages:
        if status is None:
            failures.append(Failure(begun, f"it took more than {seconds:g} s", is_timeout=True))
        else:
            failures.append(Failure(begun, _last_words(errors, status)))
    return failures


def _last_words(errors: str, status: int | None) -> str:
    """Why a process ended, in a few words."""
    if status is None:
        return "the time was up"
    if status < 0:
        try:
            return f"killed by {signal.Signals(-status).name}"
        except ValueError:
            return f"killed by signal {-status}"
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    return lines[-1][:200] if lines else f"exit status {status}"

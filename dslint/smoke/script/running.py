"""A user's own script, run for a few optimizer steps under the launcher: the side that starts it and listens."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from dslint.smoke.environment import SmokeError
from dslint.smoke.launch import run_group
from dslint.smoke.leftovers import about_old_lock
from dslint.smoke.listening import Heard, Progress
from dslint.smoke.peers.first_failure import standings
from dslint.smoke.peers.in_words import headline
from dslint.smoke.peers.stacks import frames_of
from dslint.smoke.reporting import launcher_output
from dslint.smoke.script import intercept
from dslint.smoke.script.user_builds import mark_beginning

LAST_LINES = 5
"""Lines of the launcher's output that a message shows."""


def run_script(
    script: Path,
    arguments: Sequence[str],
    *,
    ranks: int,
    steps: int,
    timeout: float,
    python: str,
    progress: Progress | None = None,
) -> list[Heard]:
    """Execute a script where, and as, the user would run it, until it has taken its steps; what was heard of it.

    The reports, what the ranks print and dslint's own try to save go to a temporary folder that is gone
    afterwards, also when this is interrupted. What comes back is for `verdict.judge` with `same_batch=False`.

    Args:
        script: the Python file, as the user names it.
        arguments: what the script gets.
        ranks: number of processes.
        steps: optimizer steps before the script is ended.
        timeout: seconds it may take, builds of ops left out.
        python: the interpreter.
        progress: called with each line of rank 0's report.

    Raises:
        SmokeError: if the script is no file, can't be started, or doesn't call deepspeed.initialize.
    """
    if not script.is_file():
        raise SmokeError(f"{script}: {'is not a file' if script.exists() else 'no such file'}")
    with tempfile.TemporaryDirectory(prefix="dslint-smoke-", ignore_cleanup_errors=True) as place:
        folder = Path(place)
        mark_beginning(folder)
        heard = run_group(
            [
                str(intercept.__file__),
                *(str(folder), str(steps), "--", str(script), *arguments),
            ],
            ranks=ranks,
            folder=folder,
            where=Path.cwd(),
            environment=script_environment(python),
            python=python,
            timeout=timeout,
            progress=progress,
        )
        _require_start(heard, folder, script, python)
    _require_deepspeed(heard, script, timeout)
    return heard


def script_environment(python: str) -> dict[str, str]:
    """The user's own environment, with defaults where it says nothing.

    DeepSpeed runs ninja by its name (torch/utils/cpp_extension.py), which lies beside the interpreter, where an
    activated environment has it; one that isn't activated is looked through last.
    """
    defaults = {"OMP_NUM_THREADS": "1", "WANDB_MODE": "disabled", "NCCL_NVLS_ENABLE": "0"}
    path = [os.environ.get("PATH", os.defpath)]
    if os.sep in python:
        path.append(str(Path(python).absolute().parent))
    return {**defaults, **os.environ, "PATH": os.pathsep.join(path)}


def _require_start(ranks: Sequence[Heard], folder: Path, script: Path, python: str) -> None:
    """See that the launcher came as far as to start a rank.

    Raises:
        SmokeError: with what the launcher printed.
    """
    if any("pid" in one.seen for one in ranks):
        return
    printed = launcher_output(folder).read_text(errors="replace").strip().splitlines()
    raise SmokeError(f"{script}: {python} didn't start it: " + "\n".join(printed[-LAST_LINES:]))


def _require_deepspeed(ranks: Sequence[Heard], script: Path, timeout: float) -> None:
    """See that the script called deepspeed.initialize, unless it failed or hung before, which is a verdict.

    Raises:
        SmokeError: if it ended, or ran out of time, without.
    """
    if any(one.phase != "start" or "exception" in one.seen or one.idle for one in ranks):
        return
    if all(one.seen.get("never_initialized") for one in ranks):
        raise SmokeError(f"{script}: it ended without calling deepspeed.initialize, so there is nothing to try")
    if not all(one.in_time for one in ranks):
        locks = [one.seen["old_lock"] for one in ranks if "old_lock" in one.seen]
        advice = about_old_lock(locks[0]) if locks else "if it needs longer to get there, allow it more time"
        raise SmokeError(
            f"{script}: it didn't call deepspeed.initialize within {timeout:g} seconds"
            f"{_where(ranks, script)}; {advice}"
        )


def _where(ranks: Sequence[Heard], script: Path) -> str:
    """Where the script stood: several ranks with what they wait for, one alone by the innermost of its lines."""
    if len(ranks) > 1:
        told = headline(standings(ranks))
        return f" ({told})" if told else ""
    lines = [frame.line for frame in frames_of(ranks[0].stack) if frame.path == str(script.absolute())]
    return f" (rank 0 stood in line {lines[0]})" if lines else ""

"""A forked child for each trial: whatever happens to it, nothing of it is left and nothing leaks into the next."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from dslint.smoke.listening import Heard, Listener, Progress
from dslint.smoke.peers.activity import Activity
from dslint.smoke.reporting import Reporter, output_file, stack_file

POLL = 0.005
"""Seconds between two looks at a child."""

_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h


GRACE = 1.0
"""Seconds that ranks have to fail too once one has."""

ASKING = signal.SIGRTMAX - 7 if sys.platform == "linux" else signal.SIGUSR1
"""The signal that asks a process where it stands: where there are many, one that no script waits for."""

Work = Callable[[Reporter], None]


class ServerClosedError(Exception):
    """Nobody waits for the trial any more."""


def adopt_orphans() -> None:
    """Make what a trial's child leaves behind a child of this process, so that it can be ended (Linux)."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def run_forked(
    work: Work,
    folder: Path,
    timeout: float,
    progress: Progress | None = None,
    wanted: Callable[[], bool] = lambda: True,
    alone: bool = False,
) -> Heard:
    """Run `work` in a child with a session and a folder of its own, and say what was heard of it.

    The arguments are those of `run_forked_group`.
    """
    return run_forked_group([work], folder, timeout, progress, wanted, alone)[0]


def run_forked_group(
    works: Sequence[Work],
    folder: Path,
    timeout: float,
    progress: Progress | None = None,
    wanted: Callable[[], bool] = lambda: True,
    alone: bool = False,
    silence: float | None = None,
) -> list[Heard]:
    """Run a child for each of `works`, by rank, and say what was heard of each.

    Once one of several has failed, the others are ended soon, as launchers do it. One that ends well stays until
    all have, so that its peers, which may wait for it, see no broken connection.

    Args:
        works: what the children do; each reports to the Reporter that it is given.
        folder: an existing folder; the children work in `folder/work`, where files may lie already.
        timeout: seconds it may take, builds of ops left out.
        progress: called with each line of rank 0's report.
        wanted: whether somebody still waits for the result.
        alone: whether this process has no other children, so that all that are left afterwards are the trial's
            and are ended (see `adopt_orphans`).
        silence: seconds of standstill after which they count as hanging; None for no such limit.

    Raises:
        ServerClosedError: if nobody waits any more; the children are ended by then.
    """
    (folder / "work").mkdir(exist_ok=True)
    parent = os.getpid()
    pids: list[int] = []
    listener = Listener(folder, ranks=len(works), timeout=timeout, progress=progress)
    codes: dict[int, int] = {}
    try:
        for rank, work in enumerate(works):
            pid = os.fork()
            if pid == 0:
                _live_as_child(work, folder, parent, rank, stays=len(works) > 1)
            pids.append(pid)
        in_time = _wait(pids, listener, wanted, None if silence is None else Activity(pids, silence))
        if not in_time and not listener.flooded:
            ask_for_stacks(pids)
    finally:
        for rank, pid in enumerate(pids):
            codes[rank] = end_group(pid)
        if alone:
            _end_orphans()
    return listener.close(in_time=in_time, exit_codes=codes)


def _live_as_child(work: Work, folder: Path, parent: int, rank: int, *, stays: bool) -> None:
    """The child's whole life: it must never return into the server's code."""
    try:
        os.setsid()
        _prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:
            return
        os.chdir(folder / "work")
        redirect_output(output_file(folder, rank))
        show_stack_on_signal(folder, rank)
        if attempt(work, Reporter(folder, rank)) and stays:
            sys.stdout.flush()
            while True:
                signal.pause()  # until it is ended
    finally:
        os._exit(0)


def attempt(work: Work, reporter: Reporter) -> bool:
    """Run `work` and report how it ended; whether it ended well."""
    ended_well = False
    try:
        work(reporter)
        ended_well = True
    except BaseException as error:  # SystemExit is an outcome too
        import traceback

        traceback.print_exc()
        reporter.fail(error)
    reporter.finish()
    return ended_well


def show_stack_on_signal(folder: Path, rank: int) -> None:
    """Let a signal write where this process stands, for a trial that hangs."""
    file = stack_file(folder, rank).open("w")
    faulthandler.register(ASKING, file=file, all_threads=False, chain=False)


def ask_for_stacks(pids: list[int]) -> None:
    """Let processes that hang write where they stand."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, ASKING)
    time.sleep(0.2)


def redirect_output(path: Path) -> None:
    """Send what this process prints into a file; it has nothing to read."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)


def _wait(pids: Sequence[int], listener: Listener, wanted: Callable[[], bool], activity: Activity | None) -> bool:
    """Wait until the children finished, died or failed (True), or have to be ended (False)."""
    failed_at: float | None = None
    while True:
        listener.listen()
        gone = [bool(os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)) for pid in pids]
        if listener.finished or all(gone):
            return True
        if any(gone) or any("exception" in one.seen for one in listener.heard):
            failed_at = failed_at or time.monotonic()
            if time.monotonic() - failed_at > GRACE and len(pids) > 1:
                return True
        if not wanted():
            raise ServerClosedError
        if listener.out_of_time or listener.flooded:
            return False
        if activity is not None and activity.is_over(paused=any(one.building for one in listener.heard)):
            listener.idle, listener.idle_for = True, activity.silence
            return False
        time.sleep(POLL)


def end_group(pid: int) -> int:
    """End a child and all of its process group; the exit code, negative for a signal."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _end_orphans() -> None:
    """End what a child left behind in sessions of its own, until nothing is left (Linux)."""
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    for _ in range(100):
        try:
            pids = [int(pid) for pid in children.read_text().split()]
        except OSError:
            return
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, int(value), 0, 0, 0)

"""Real ranks: a program started by torchrun, one process a rank, watched until it ends."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from dslint.smoke.children import ask_for_stacks
from dslint.smoke.client import refuse_full_disk
from dslint.smoke.environment import SmokeError, training_environment
from dslint.smoke.leftovers import remove_leftovers
from dslint.smoke.listening import Heard, Listener, Progress
from dslint.smoke.peers.standstill import Standstill
from dslint.smoke.processes import MARK, end_marked, new_mark
from dslint.smoke.reporting import launcher_output
from dslint.smoke.torchrun_exits import exit_codes
from dslint.smoke.trial import Trial

POLL = 0.02
"""Seconds between two looks at the ranks."""
SILENCE = 15.0
"""Seconds that ranks may wait for each other without anything going on; see standstill.py."""
GRACE = 20.0
"""Seconds that the launcher may take to end once every rank has finished."""


def run_real(trial: Trial, *, python: str, device: str, progress: Progress | None = None) -> list[Heard]:
    """Run a trial on real ranks of this machine: NCCL on GPUs, gloo on the CPU; what was heard of each rank.

    Raises:
        SmokeError: if the launcher can't be started.
    """
    with tempfile.TemporaryDirectory(prefix="dslint-smoke-", ignore_cleanup_errors=True) as place:
        folder = Path(place)
        (folder / "work").mkdir()
        (folder / "trial.json").write_text(json.dumps(trial.as_data()))
        heard = run_group(
            ["-m", "dslint.smoke.rank", str(folder)],
            ranks=trial.ranks,
            folder=folder,
            where=folder / "work",
            environment=training_environment(python, device, place),
            python=python,
            timeout=trial.timeout,
            progress=progress,
        )
        refuse_full_disk(heard, place)
        return heard


def run_group(
    program: Sequence[str],
    *,
    ranks: int,
    folder: Path,
    where: Path,
    environment: Mapping[str, str],
    python: str,
    timeout: float,
    progress: Progress | None = None,
) -> list[Heard]:
    """Run a Python program under torchrun and listen to its ranks, which report into `folder`.

    Args:
        program: what torchrun starts: a script or `-m module`, and its arguments.
        ranks: number of processes, all on this machine.
        folder: an existing folder for reports and outputs.
        where: the folder in which the program runs.
        environment: its whole environment.
        python: the interpreter.
        timeout: seconds it may take, builds of ops left out.
        progress: called with each line of rank 0's report.

    Raises:
        SmokeError: if the launcher can't be started.
    """
    mark = new_mark()
    # Without a folder for logs torchrun leaves an empty one behind.
    how = ["--standalone", f"--nproc_per_node={ranks}", f"--log_dir={folder / 'launcher'}"]
    command = [python, "-m", "torch.distributed.run", *how, *program]
    listener = Listener(folder, ranks=ranks, timeout=timeout, progress=progress)
    with launcher_output(folder).open("wb") as output:
        try:
            process = subprocess.Popen(
                command,
                cwd=where,
                env={**environment, MARK: mark},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C goes to this process alone, which ends the others in order
            )
        except OSError as error:
            raise SmokeError(f"can't start {python}: {error.strerror}") from error
        try:
            in_time = _wait(process, listener, Standstill(listener, SILENCE))
            if not in_time and not listener.idle:
                ask_for_stacks([pid for one in listener.heard if (pid := one.seen.get("pid"))])
        finally:
            end_marked(mark)
            listener.listen()
            remove_leftovers(listener.heard)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=5)
        printed = launcher_output(folder).read_text(errors="replace")
    return listener.close(in_time=in_time, exit_codes=exit_codes(printed, ranks))


def _wait(process: subprocess.Popen[bytes], listener: Listener, standstill: Standstill) -> bool:
    """Wait until the launcher ended (True), or the ranks have to be ended (False)."""
    finished_at: float | None = None
    while True:
        listener.listen()
        if process.poll() is not None:
            return True
        if listener.finished:
            finished_at = finished_at or time.monotonic()
            if time.monotonic() - finished_at > GRACE:
                return True
        elif listener.out_of_time or listener.flooded or standstill.is_certain():
            return False
        time.sleep(POLL)

"""The linter's side of the fork server: starts it, sends trials, reads what was heard, leaves nothing behind."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from dslint.smoke.environment import SmokeError, training_environment
from dslint.smoke.leftovers import remove_leftovers
from dslint.smoke.listening import Heard, Progress
from dslint.smoke.processes import MARK, end_marked, new_mark
from dslint.smoke.script_trial import ScriptTrial
from dslint.smoke.trial import Trial

SILENCE = 60.0
"""Seconds that the server may be silent beyond a trial's own time."""

DISK_NEEDED = 200 * 2**20
"""Bytes a trial may need for its weights and its checkpoint."""


def refuse_full_disk(ranks: Sequence[Heard], folder: str) -> None:
    """See that no rank failed since there was no room left.

    Raises:
        SmokeError: naming the folder.
    """
    if any(one.disk_full for one in ranks):
        raise SmokeError(f"the disk with {folder} is full, so the trial failed: set TMPDIR to another disk")


class SmokeServer:
    """A process that runs trials, as a context manager.

    Attributes:
        hello: what the server told of its environment: `device` ("cuda" or "cpu"), `count` of GPUs, whether
            `transformers` is there, the release of `deepspeed`, the `ops` it loaded.
    """

    def __init__(
        self,
        *,
        python: str = sys.executable,
        device: str = "auto",
        ops: Sequence[str] = (),
        progress: Progress | None = None,
        start_timeout: float = 1800,
        program: str = "dslint.smoke.server",
    ) -> None:
        self.hello: Mapping[str, Any] = {}
        self._python = python
        self._device = device
        self._ops = ops
        self._progress = progress
        self._start_timeout = start_timeout  # ops may have to be built
        self._program = program
        self._folder = ""
        self._mark = new_mark()
        self._log: IO[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = b""
        self._told = Heard()  # what server and trials tell on the way, for what a killed build leaves

    def __enter__(self) -> SmokeServer:
        self._folder = tempfile.mkdtemp(prefix="dslint-smoke-")
        try:
            self._start()
        except BaseException:
            self._clean_up()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clean_up()

    def _start(self) -> None:
        self._log = Path(self._folder, "server.log").open("w+b")  # noqa: SIM115 - lives as long as the server
        try:
            self._process = subprocess.Popen(
                [self._python, "-m", self._program, self._folder, *self._ops],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env={**training_environment(self._python, self._device, self._folder), MARK: self._mark},
                cwd=self._folder,
                start_new_session=True,  # Ctrl-C goes to this process alone, which ends the server in order
            )
        except OSError as error:
            raise SmokeError(f"can't start {self._python}: {error.strerror}") from error
        first = self._answer(self._start_timeout, "hello", "missing")
        if "missing" in first:
            names = " and ".join(first["missing"])
            raise SmokeError(
                f"{names} not installed for {self._python}: smoke trains on real DeepSpeed; "
                "pip install 'deepspeed-lint[smoke]', or name another interpreter with --python"
            )
        self.hello = first["hello"]

    def run(self, trial: Trial, progress: Progress | None = None) -> Heard:
        """Run a simulated trial and say what was heard of its rank 0.

        Raises:
            SmokeError: if the disk is full, or the server is gone.
        """
        return self._heard_of(trial, progress)[0]

    def run_ranks(self, trial: Trial, progress: Progress | None = None) -> list[Heard]:
        """Run a trial and say what was heard of each rank; only of rank 0 in a simulation.

        Raises:
            SmokeError: if the disk is full, or the server is gone.
        """
        return self._heard_of(trial, progress)

    def run_script(self, trial: ScriptTrial, progress: Progress | None = None) -> list[Heard]:
        """Run a script and say what was heard of each rank; only of rank 0 in a simulation.

        Raises:
            SmokeError: if the disk is full, or the server is gone.
        """
        return self._heard_of(trial, progress)

    def _heard_of(self, trial: Trial | ScriptTrial, progress: Progress | None) -> list[Heard]:
        free = shutil.disk_usage(self._folder).free
        if free < DISK_NEEDED:
            raise SmokeError(
                f"only {free / 2**20:.0f} MB free in {self._folder}, and a trial saves weights and a checkpoint "
                f"there: make {DISK_NEEDED / 2**20:.0f} MB of room or set TMPDIR to another disk"
            )
        self._progress = progress or self._progress
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(trial.as_data()).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise SmokeError(f"the process that trains is gone: {self._last_words()}") from error
        ranks = [Heard(**heard) for heard in self._answer(trial.timeout + SILENCE, "heard")["heard"]]
        refuse_full_disk(ranks, self._folder)
        return ranks

    def _answer(self, patience: float, *awaited: str) -> dict[str, Any]:
        """The next answer of an awaited kind; the patience begins anew while an op is built."""
        deadline = time.monotonic() + patience
        building = False
        while True:
            line = self._line(deadline)
            if line is None:
                if building and self._alive():
                    deadline = time.monotonic() + patience
                    continue
                raise SmokeError(f"the process that trains is gone or stuck: {self._last_words()}")
            if any(kind in line for kind in awaited):
                return line
            told = line.get("progress", {})
            self._told.take(dict(told))
            building = "building" in told or (building and "built" not in told)
            if self._progress is not None:
                self._progress(told)

    def _line(self, deadline: float) -> dict[str, Any] | None:
        assert self._process is not None
        assert self._process.stdout is not None
        while b"\n" not in self._unread:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                return None
            chunk = os.read(self._process.stdout.fileno(), 1 << 16)
            if not chunk:
                return None
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _last_words(self, size: int = 2000) -> str:
        assert self._log is not None
        self._log.seek(0)
        return self._log.read()[-size:].decode(errors="replace").strip() or "it said nothing"

    def _clean_up(self) -> None:
        if self._process is not None:
            end_marked(self._mark, patience=5.0)
            self._process.communicate()
            remove_leftovers([self._told])
        if self._log is not None:
            self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)

"""How a child tells what it sees: one JSON line after the other, in a file of its rank."""

from __future__ import annotations

import json
import os
import time
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

STACK_BEGINS = "Stack (most recent call first):"
"""The line before a stack that faulthandler writes."""

TRACE_ENDS_KEPT = 50
"""Calls that are told at either end of a long trace."""


class Reporter:
    """Writes a rank's lines; whoever started the rank reads them while it runs.

    A line is a dict. `phase` says what comes next, `building` and `built` name an op of DeepSpeed, `exception`
    ends in failure, `finished` is the last line; everything else is something seen.
    """

    def __init__(self, folder: Path, rank: int) -> None:
        self._file = os.open(report_file(folder, rank), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._phase: str | None = None

    def enter(self, phase: str) -> None:
        """The next phase begins."""
        if phase != self._phase:
            self._phase = phase
            self.tell(phase=phase)

    def tell(self, **seen: Any) -> None:
        """Something seen, by name; what JSON has no form for becomes its text."""
        line = json.dumps({**seen, "at": round(time.monotonic(), 4)}, default=str)
        os.write(self._file, line.encode() + b"\n")

    def fail(self, error: BaseException) -> None:
        """The exception that ended the trial."""
        names = [base.__name__ for base in type(error).__mro__ if base is not object]
        trace = trace_of(error.__traceback__)
        self.tell(exception=names[0], bases=names, message=str(error), trace=trace)

    def finish(self) -> None:
        """The last line."""
        self.tell(finished=True)


def trace_of(trace: TracebackType | None) -> str:
    """The calls that an exception came through, innermost first, as faulthandler would write them."""
    calls = [(frame.f_code, line) for frame, line in traceback.walk_tb(trace)][::-1]
    if len(calls) > 2 * TRACE_ENDS_KEPT:
        calls = calls[:TRACE_ENDS_KEPT] + calls[-TRACE_ENDS_KEPT:]
    lines = [f'  File "{code.co_filename}", line {line} in {code.co_name}' for code, line in calls]
    return "\n".join([STACK_BEGINS, *lines])


def report_file(folder: Path, rank: int) -> Path:
    """The file with a rank's lines."""
    return folder / f"rank-{rank}.jsonl"


def output_file(folder: Path, rank: int) -> Path:
    """The file with what a rank prints."""
    return folder / f"rank-{rank}.out"


def stack_file(folder: Path, rank: int) -> Path:
    """The file with where a rank stood when it was asked."""
    return folder / f"rank-{rank}.stack"


def launcher_output(folder: Path) -> Path:
    """The file with what the launcher prints."""
    return folder / "launcher.out"

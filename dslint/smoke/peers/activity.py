"""Whether processes still do anything: ranks that wait for each other use no time of a processor."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

LOOK = 0.25
"""Seconds between two looks."""

WORKING = 0.05
"""The part of one processor's time above which processes count as working; threads in the background use less."""

_SECONDS = 14 - 3
"""Where in /proc/PID/stat, from the third field on, the first of four times stands: see proc(5)."""


class Activity:
    """Follows the processors' time of some processes (Linux; elsewhere they always count as working).

    Attributes:
        silence: seconds that they may do nothing.
    """

    def __init__(self, pids: Sequence[int], silence: float, *, with_children: bool = False) -> None:
        """Follow `pids`; `with_children` also what they have started, such as the workers of a data loader."""
        self._pids = pids
        self.silence = silence
        self._with_children = with_children
        self._looks: deque[tuple[float, Mapping[int, float]]] = deque()

    def is_over(self, *, paused: bool = False) -> bool:
        """Whether they have done next to nothing for the whole time of silence.

        Args:
            paused: whether it doesn't count now, since others work for them.
        """
        now = time.monotonic()
        if paused:
            self.begin_anew()
        if self._looks and now - self._looks[-1][0] < LOOK:
            return False
        used = _used(_with_descendants(self._pids) if self._with_children else self._pids)
        if used is None:
            return False
        self._looks.append((now, used))
        while now - self._looks[0][0] > self.silence + 2 * LOOK:
            self._looks.popleft()
        began, before = self._looks[0]
        work = sum(seconds - before.get(pid, 0.0) for pid, seconds in used.items())
        return now - began >= self.silence and work < WORKING * (now - began)

    def begin_anew(self) -> None:
        """Let the time of silence begin now."""
        self._looks.clear()


def _with_descendants(pids: Iterable[int]) -> Iterator[int]:
    for pid in pids:
        yield pid
        yield from _with_descendants(_children(pid))


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError):  # it has ended, or a kernel without this file
        for file in Path(f"/proc/{pid}/task").glob("*/children"):
            found += map(int, file.read_text().split())
    return found


def _used(pids: Iterable[int]) -> dict[int, float] | None:
    """Seconds of processors' time that each process has used so far; None where it can't be read."""
    if not Path("/proc/self/stat").exists():
        return None
    used = {}
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            try:
                used[pid] = _used_by(pid)
            except (PermissionError, ValueError, IndexError):
                return None
    return used


def _used_by(pid: int) -> float:
    """In user and in system mode, by itself and by its children that have ended."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    times = after_name[_SECONDS : _SECONDS + 4]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")

"""Whether processes still do anything: ranks that wait for each other use no time of a processor."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

LOOK = 0.25
"""Seconds between two looks."""

WORKING = 0.05
"""The part of one processor's time above which processes count as working; threads in the background use less."""


class Activity:
    """Follows the processors' time of some processes (Linux; elsewhere they always count as working)."""

    def __init__(self, pids: Sequence[int], silence: float) -> None:
        self._pids = pids
        self._silence = silence
        self._looks: deque[tuple[float, float]] = deque()

    def is_over(self, *, paused: bool = False) -> bool:
        """Whether they have done next to nothing for the whole time of silence.

        Args:
            paused: whether it doesn't count now, since others work for them.
        """
        now = time.monotonic()
        if paused:
            self._looks.clear()
        if self._looks and now - self._looks[-1][0] < LOOK:
            return False
        used = _used(self._pids)
        if used is None:
            return False
        self._looks.append((now, used))
        while now - self._looks[0][0] > self._silence + 2 * LOOK:
            self._looks.popleft()
        began, before = self._looks[0]
        return now - began >= self._silence and used - before < WORKING * (now - began)


def _used(pids: Sequence[int]) -> float | None:
    """Seconds of processors' time that processes have used so far; None where it can't be read."""
    try:
        return sum(_used_by(pid) for pid in pids)
    except (OSError, ValueError, IndexError):
        return None


def _used_by(pid: int) -> float:
    """See proc(5): the times in user and in system mode are the 14th and 15th field."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")

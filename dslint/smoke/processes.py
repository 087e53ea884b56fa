"""Processes of one smoke, found by a mark in their environment, so that none is left behind."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from pathlib import Path

MARK = "DSLINT_SMOKE"
"""The environment variable that each process of a smoke inherits."""


def new_mark() -> str:
    """A mark that no other smoke has."""
    return secrets.token_hex(8)


def marked(mark: str) -> list[int]:
    """The processes that run with a mark, whoever their parent is now (Linux; elsewhere none are found)."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if wanted in entry.read_bytes().split(b"\0"):
                found.append(int(entry.parent.name))
    return [pid for pid in found if pid != os.getpid()]


def end_marked(mark: str, patience: float = 0.0) -> None:
    """End all processes with a mark: ask, wait for `patience` seconds, then use force."""
    if patience and _signal_all(mark, signal.SIGTERM):
        deadline = time.monotonic() + patience
        while _alive(mark) and time.monotonic() < deadline:
            time.sleep(0.05)
    for _ in range(100):
        if not _signal_all(mark, signal.SIGKILL):
            return
        time.sleep(0.02)


def _signal_all(mark: str, number: signal.Signals) -> bool:
    """Send a signal to all that still live; whether there were any."""
    pids = _alive(mark)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    return bool(pids)


def _alive(mark: str) -> list[int]:
    return [pid for pid in marked(mark) if not _is_zombie(pid)]


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True

"""One line on the terminal that says what a smoke is doing, and since when."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any, TextIO

_PHASES = {
    "start": "starting",
    "read": "reading the config",
    "fill": 'Transformers fills in "auto"',
    "parse": "DeepSpeed parses the config",
    "initialize": "DeepSpeed builds the engine",
    "step": "taking steps",
    "save": "saving weights and a checkpoint",
    "load": "loading the checkpoint",
}


class ProgressLine:
    """Shows what goes on; on a terminal as one line that is written over, elsewhere only builds of ops."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._path = ""
        self._doing = ""
        self._since = time.monotonic()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> ProgressLine:
        if self._live:
            self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._live:
            self._ticker.join()
        self.clear()

    def begin(self, path: str) -> ProgressLine:
        """What follows is about this path."""
        self._path = path
        self._say("starting")
        return self

    def __call__(self, line: dict[str, Any]) -> None:
        """Take a line of a child's report in."""
        if "importing" in line:
            self._say(f"importing {line['importing']}")
        elif "building" in line and line.get("built_before"):
            self._say(f"loading DeepSpeed's op {line['building']}")
        elif "building" in line:
            self._say(f"building DeepSpeed's op {line['building']}, which takes minutes once", lasting=True)
        elif "built" in line:
            self._say("going on")
        elif "executing" in line:
            self._announce(f"executing {line['executing']} on {line['ranks']} ranks for a few optimizer steps")
        elif "phase" in line:
            self._say(_PHASES.get(line["phase"], line["phase"]))

    def clear(self) -> None:
        """Make room for other output."""
        if self._live:
            with self._lock, contextlib.suppress(OSError, ValueError):
                self._stream.write("\r\033[K")
                self._stream.flush()

    def _announce(self, what: str) -> None:
        """Say something that has to stand there whatever comes after it."""
        self.clear()
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(f"dslint: {what}\n")
            self._stream.flush()

    def _say(self, doing: str, *, lasting: bool = False) -> None:
        self._doing, self._since = doing, time.monotonic()
        if self._live:
            self._show()
        elif lasting:
            self._stream.write(f"dslint: {doing}\n")

    def _show(self) -> None:
        seconds = time.monotonic() - self._since
        after = f" ({seconds:.0f} s)" if seconds >= 1 else ""
        told = f"{self._path}: {self._doing}" if self._path else self._doing
        with self._lock, contextlib.suppress(OSError, ValueError):
            self._stream.write(f"\r\033[K{told} …{after}")
            self._stream.flush()

    def _tick(self) -> None:
        while not self._stop.wait(1):
            self._show()

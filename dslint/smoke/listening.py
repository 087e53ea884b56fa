"""What the ranks of a trial reported, read while they run."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from dslint.smoke.reporting import STACK_BEGINS, output_file, report_file, stack_file

OUTPUT_KEPT = 4000
"""Characters of a rank's last output that are kept."""

STACK_KEPT = 64 * 2**10
"""Characters of the last stack of a rank that are kept: 100 frames, which is as many as faulthandler writes."""

FLOOD = 256 * 2**20
"""Bytes of output at which a rank is ended, before it fills the disk."""

FULL = 2**20
"""Bytes of free disk below which it counts as full."""

BUILD_PATIENCE = 1800.0
"""Seconds that builds of ops may take in all before a trial's own time runs again."""

Progress = Callable[[dict[str, Any]], None]
"""Called with each line of rank 0 as it comes."""


@dataclass
class Heard:
    """What one rank reported.

    Attributes:
        seen: the values it told, the last of each name.
        entered: when each phase was entered, in seconds of the rank's clock.
        building: the op that is being built now, if any.
        built: seconds that each op's build or loading took.
        finished: whether the rank came to the end of its own program.
        exit_code: the exit code, negative for a signal; None where nobody saw one.
        in_time: False if the rank had to be ended.
        flooded: whether it had to be ended since it printed too much.
        idle: whether it had to be ended since nothing went on.
        idle_for: for how many seconds nothing had; 0 if nobody says.
        disk_full: whether it failed while there was next to no room on its disk; then it may not even say so.
        output: the end of what it printed.
        stack: where it stood when it had to be ended.
        last_at: when its last line came, in seconds of its clock.
        began_building: when the last build began.
    """

    seen: dict[str, Any] = field(default_factory=dict)
    entered: dict[str, float] = field(default_factory=dict)
    building: str | None = None
    built: dict[str, float] = field(default_factory=dict)
    finished: bool = False
    exit_code: int | None = None
    in_time: bool = True
    flooded: bool = False
    idle: bool = False
    idle_for: float = 0.0
    disk_full: bool = False
    output: str = ""
    stack: str = ""
    last_at: float = 0.0
    began_building: float = 0.0

    def take(self, line: dict[str, Any]) -> None:
        """Take a line of the rank's report in."""
        at = float(line.pop("at", 0.0))
        self.last_at = at
        if "phase" in line:
            self.entered.setdefault(line["phase"], at)
        if "building" in line:
            self.building, self.began_building = line.pop("building"), at
        if "built" in line:
            self.built[line.pop("built")] = round(at - self.began_building, 2)
            self.building = None
        if "exception" in line:
            self.seen.setdefault("failed_at", at)
        self.finished = bool(line.pop("finished", self.finished))
        self.seen.update(line)

    @property
    def phase(self) -> str:
        """The phase it was in at the end."""
        return str(self.seen.get("phase", "start"))

    def seconds(self) -> dict[str, float]:
        """How long each phase took, in seconds."""
        marks = [*self.entered.items(), ("", self.last_at)]
        return {phase: round(after - at, 3) for (phase, at), (_, after) in pairwise(marks) if phase != "done"}

    def as_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


class Listener:
    """Reads the reports of all ranks of one trial, and keeps its clock.

    The clock stands still while an op of DeepSpeed is built: that can take minutes the first time, and is no fault
    of the config.

    Attributes:
        heard: what was heard so far, by rank.
        idle: whether the ranks have to be ended since nothing goes on.
        idle_for: for how many seconds nothing has; 0 if nobody says.
    """

    def __init__(self, folder: Path, ranks: int, timeout: float, progress: Progress | None = None) -> None:
        self.heard = [Heard() for _ in range(ranks)]
        self.idle = False
        self.idle_for = 0.0
        self._folder = folder
        self._read = [0] * ranks
        self._left = timeout
        self._for_builds = BUILD_PATIENCE
        self._last = time.monotonic()
        self._progress = progress

    @property
    def finished(self) -> bool:
        """Whether every rank came to its end."""
        return all(one.finished for one in self.heard)

    @property
    def out_of_time(self) -> bool:
        """Whether the time is over."""
        return self._left <= 0

    @property
    def flooded(self) -> bool:
        """Whether a rank printed more than one can want."""
        sizes = (_size(output_file(self._folder, rank)) for rank in range(len(self.heard)))
        return any(size > FLOOD for size in sizes)

    def listen(self) -> None:
        """Read what came since the last call."""
        for rank, one in enumerate(self.heard):
            for line in self._new_lines(rank):
                if rank == 0 and self._progress is not None:
                    self._progress(line)
                one.take(dict(line))
        now = time.monotonic()
        if any(one.building for one in self.heard) and self._for_builds > 0:
            self._for_builds -= now - self._last
        else:
            self._left -= now - self._last
        self._last = now

    def _new_lines(self, rank: int) -> list[dict[str, Any]]:
        try:
            with report_file(self._folder, rank).open("rb") as file:
                file.seek(self._read[rank])
                text = file.read()
        except OSError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self._read[rank] += len(whole)
        lines = []
        for line in whole.splitlines():
            with contextlib.suppress(ValueError):
                lines.append(json.loads(line))
        return lines

    def close(self, *, in_time: bool, exit_codes: dict[int, int] | None = None) -> list[Heard]:
        """Read what is left, once no rank runs any more."""
        self.listen()
        full = shutil.disk_usage(self._folder).free < FULL
        for rank, one in enumerate(self.heard):
            one.disk_full = full and (not one.finished or "exception" in one.seen)
            one.in_time = in_time or one.finished
            one.idle = self.idle and not one.in_time
            one.idle_for = self.idle_for if one.idle else 0.0
            one.flooded = not one.in_time and _size(output_file(self._folder, rank)) > FLOOD
            one.exit_code = (exit_codes or {}).get(rank)
            one.output = _tail(output_file(self._folder, rank))
            one.stack = self.stack(rank)
        return self.heard

    def told_of_stacks(self, rank: int) -> int:
        """Bytes that a rank has written of where it stood, which grow with each answer."""
        return _size(stack_file(self._folder, rank))

    def stack(self, rank: int) -> str:
        """Where a rank stood when it was asked last; empty if it has never told."""
        text = _tail(stack_file(self._folder, rank), STACK_KEPT)
        return text[max(text.rfind(STACK_BEGINS), 0) :]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _tail(path: Path, kept: int = OUTPUT_KEPT) -> str:
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - kept))
            return file.read().decode(errors="replace").strip()
    except OSError:
        return ""

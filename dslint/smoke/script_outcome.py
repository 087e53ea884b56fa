"""What came of the run of a script, over all of its ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dslint.smoke.listening import Heard
from dslint.smoke.peers.first_failure import LEFT_ALONE, standings
from dslint.smoke.peers.standing import Standing
from dslint.smoke.verdict import DIED, HANGS

KILLED = -9
"""The exit code of a rank that was ended since another one had failed."""


@dataclass(frozen=True)
class Outcome:
    """What a script came to.

    Attributes:
        phase: where it ended: "launch", "script", or "done" if it came to its end.
        exception: class of the exception of the rank that failed first, or DIED or HANGS.
        bases: that class and those it comes from.
        message: the exception's message.
        where: the innermost line of the script's files that it came through, as "train.py:12"; None without one.
        code: the exit code that the script, or its launcher, chose; None without one.
        hung: whether ranks had to be ended since nothing went on, or were left alone by their peers.
        said: what the script told by `tiny.say`: rank 0's facts, and others' that it has none of.
        engines: what each engine of rank 0 came to (see rank/following.py).
        settings: every setting of rank 0's first engine, flat.
        files: what all ranks have written, by name (see rank/written_files.py).
        warned: what was logged or warned of.
        started: script and arguments as the launcher started them; empty if it didn't.
        ranks: number of ranks as the launcher told it; 0 if it didn't start any.
        output: the end of what was printed.
        stacks: where each rank stood when it had to be ended.
        seconds: how long each phase took.
        peak_memory: the most bytes held on a GPU; None without one.
        cut: whether it was ended after the trial's number of optimizer steps.
        idle: whether it had to be ended since its ranks did nothing any more, and not for lack of time.
        standing: where each of several ranks stands, or was left, if they had to be ended or lost each other.
        before: what came of the trial before it: `failure` in words (empty if it ended well) and the names of the
            `files` that it wrote; None without one.
    """

    phase: str
    exception: str | None
    bases: tuple[str, ...]
    message: str
    where: str | None
    code: Any
    hung: bool
    said: Mapping[str, Any]
    engines: tuple[Mapping[str, Any], ...]
    settings: Mapping[str, Any]
    files: Mapping[str, Mapping[str, Any]]
    warned: tuple[str, ...]
    started: tuple[str, ...]
    ranks: int
    output: str
    stacks: tuple[str, ...]
    seconds: Mapping[str, float]
    peak_memory: int | None
    cut: bool = False
    idle: bool = False
    standing: tuple[Standing, ...] = ()
    before: Mapping[str, Any] | None = None

    @property
    def ended(self) -> bool:
        """Whether it came to its end, whatever the result is worth."""
        return self.phase == "done" and self.exception is None

    def raised(self, name: str) -> bool:
        """Whether it ended with this exception class or a subclass of it."""
        return name in self.bases


def outcome(ranks: Sequence[Heard]) -> Outcome:
    """The outcome of a trial, from what was heard of its ranks; only of rank 0 in a simulation."""
    worst = min(ranks, key=_how_well)
    exception, bases, message = _exception(worst)
    left_alone = worst.seen.get("exception") is not None and LEFT_ALONE.search(message) is not None
    hung = exception == HANGS or (left_alone and len(ranks) > 1)
    first = ranks[0].seen
    peaks = [one.seen["peak_memory"] for one in ranks if one.seen.get("peak_memory") is not None]
    return Outcome(
        phase=worst.phase,
        exception=exception,
        bases=bases,
        message=message,
        where=worst.seen.get("where"),
        code=worst.seen.get("code"),
        hung=hung,
        said={key: value for one in reversed(ranks) for key, value in one.seen.get("said", {}).items()},
        engines=tuple(first.get("engines", ())),
        settings=first.get("settings", {}),
        files={file["name"]: file for one in _by_end(ranks) for file in one.seen.get("files", ())},
        warned=tuple(dict.fromkeys(text for one in ranks for text in one.seen.get("warned", ()))),
        started=tuple(first.get("started", ())),
        ranks=int(first.get("ranks", 0)),
        output=worst.output,
        stacks=tuple(one.stack for one in ranks if one.stack),
        seconds=worst.seconds(),
        peak_memory=max(peaks, default=None),
        cut=any(one.seen.get("cut") for one in ranks),
        idle=any(one.idle for one in ranks),
        standing=standings(ranks) if hung and len(ranks) > 1 else (),
        before=first.get("before"),
    )


def _how_well(one: Heard) -> tuple[int, float]:
    """Orders ranks: one that had to be ended, the first that raised, one that died, one that ended well.

    No rank has to be ended after another has failed: what others raise then comes of its end.
    """
    if not one.in_time:
        return 0, one.last_at
    if one.seen.get("exception") is not None:
        return 1, float(one.seen.get("failed_at", one.last_at))
    if one.finished:
        return 4, 0.0
    return (3 if one.exit_code == KILLED else 2), one.last_at


def _exception(one: Heard) -> tuple[str | None, tuple[str, ...], str]:
    if one.seen.get("exception") is not None:
        return one.seen["exception"], tuple(one.seen.get("bases", ())), str(one.seen.get("message", ""))
    if one.finished:
        return None, (), ""
    name = DIED if one.in_time else HANGS
    return name, (name,), f"exit code {one.exit_code}" if one.in_time else "no end in time"


def _by_end(ranks: Sequence[Heard]) -> list[Heard]:
    """The rank that ended last, and so has seen the most, comes last."""
    return sorted(ranks, key=lambda one: one.last_at)

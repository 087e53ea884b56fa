"""The most bytes that tensors of a rank took at once: on its GPU, or else on the CPU."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Iterable, Iterator
from typing import Any

import torch

ALLOCATION = "[memory]"
"""What torch's profiler calls the moment at which memory is taken or given back."""


class MemoryMeter:
    """Counts while it is entered.

    For a GPU torch keeps the count itself. For the CPU its profiler notes what the thread that trains takes and
    gives back; buffers that gloo takes in its own threads are left out, as NCCL's own are on a GPU.

    Attributes:
        peak: the most bytes; None as long as they are not known.
    """

    def __init__(self, *, on_cpu: bool) -> None:
        """Makes a meter; `on_cpu` is whether it may go to the expense of counting there."""
        self.peak: int | None = None
        self._on_cpu = on_cpu
        self._profiler: Any = None

    def __enter__(self) -> MemoryMeter:
        if self._on_cpu and not torch.cuda.is_available():
            self._profiler = torch.profiler.profile(
                activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
            )
            _let_gloo_let_go()
            self._profiler.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._profiler is None:
            self.peak = peak_on_gpu()
            return
        with contextlib.suppress(RuntimeError, AttributeError):  # a config may have profiled too; another torch
            self._profiler.stop()
            self.peak = highest(_changes(self._profiler))


def peak_on_gpu() -> int | None:
    """The most bytes that torch held on this rank's GPU; None without one."""
    return int(torch.cuda.max_memory_allocated()) if torch.cuda.is_initialized() else None


def _changes(profiler: Any) -> Iterator[int]:
    """The bytes that were taken, or given back, one after the other."""
    noted = [each for each in profiler.profiler.kineto_results.events() if each.name() == ALLOCATION]
    for each in sorted(noted, key=lambda event: event.start_ns()):
        yield int(each.nbytes())


def highest(changes: Iterable[int]) -> int:
    """The highest level that changes lead to, beginning at 0."""
    level = top = 0
    for change in changes:
        level += change
        top = max(top, level)
    return top


LETTING_GO = 0.001
"""Seconds in which gloo's thread lets go of the tensors of a collective that has ended."""


def _let_gloo_let_go() -> None:
    """Go on after a collective only when gloo has no hold on its tensors any more.

    Else they may be freed by gloo's thread, of which the profiler doesn't hear, and the count would only grow.
    Works of a fake group have a `wait` of their own, which stays as it is.
    """
    work: Any = torch.distributed.Work
    wait = work.wait

    @functools.wraps(wait)
    def waited(*args: Any, **kwargs: Any) -> Any:
        ended = wait(*args, **kwargs)
        time.sleep(LETTING_GO)
        return ended

    work.wait = waited

"""What the GPU of a run can do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dslint.runs.unknown import needs

if TYPE_CHECKING:
    from dslint.runs.gpus import Gpu

UNKNOWN_GPU = needs("the type of GPU (--gpu)")


def ask_gpu(gpu: Gpu | None, ask: Callable[[Gpu], Any]) -> Any:
    """An ability of the GPU; Unknown where nobody says which one it is."""
    return UNKNOWN_GPU if gpu is None else ask(gpu)

"""What a rank can't take away itself when it is killed: locks of builds, and the CPU's shared memory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from dslint.smoke.listening import Heard

SHARED_MEMORY = Path("/dev/shm")


def shared_memory(environment: Mapping[str, str]) -> Path:
    """The file of a rank's shared memory, 66 MiB where gloo is used (deepspeed/ops/csrc/cpu/comm/shm.cpp)."""
    place = "_".join(environment.get(name, "") for name in ("MASTER_ADDR", "MASTER_PORT", "RANK"))
    return SHARED_MEMORY / f"deepspeed_allreduce_buffer_{os.getuid()}_{place}"


def about_old_lock(lock: str) -> str:
    """What to do about the lock of a build that was there before the run."""
    return (
        f"{lock} was there before the script ran; torch waits for ever while it is, "
        "so remove it unless another process is building this op now"
    )


def remove_leftovers(ranks: Sequence[Heard]) -> None:
    """Remove what the ranks of one run left, once none of them lives.

    They tell `own_lock`, the lock of the last build that they began (watch.py, user_builds.py), and
    `shared_memory`.
    """
    for one in ranks:
        lock = Path(one.seen.get("own_lock", ""))
        if one.building and lock.parent.name == one.building:
            lock.unlink(missing_ok=True)
        if "shared_memory" in one.seen:
            Path(one.seen["shared_memory"]).unlink(missing_ok=True)

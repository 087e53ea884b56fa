"""Troubles with what the machine grants: shared and locked memory."""

from __future__ import annotations

from collections.abc import Iterator

from dslint.doctor.environment import Environment
from dslint.doctor.trouble import Trouble

MEBIBYTE = 1024**2
WORKSPACE = 66 * MEBIBYTE
"""What a rank of DeepSpeed's shared-memory collective maps:
struct allreduce_workspace in csrc/cpu/comm/shm.cpp."""


def small_shared_memory(env: Environment) -> Iterator[Trouble]:
    """/dev/shm is about as small as Docker makes it (64 MB).

    Tried with 64 MB: a torch DataLoader with two workers stops, and two ranks of inference_all_reduce on a CPU
    host (deepspeed/comm/torch.py; tensor parallelism uses it) are killed by SIGBUS, while 160 MB is enough for
    these. DeepSpeed's other collectives on a CPU host do without. That NCCL needs it is read, not tried.
    """
    size = env.limits.shared_memory
    if size is None or size >= 2 * WORKSPACE:
        return
    on_cpu = env.deepspeed is not None and env.deepspeed.accelerator == "cpu"
    other = (
        "tensor parallelism, with 66 MiB a rank, by SIGBUS"
        if on_cpu
        else "NCCL where GPUs share memory through it"
    )
    yield Trouble(
        "small-shared-memory",
        "warning",
        "limits",
        f"/dev/shm has {in_words(size)}: data loaders with workers stop when it is full (RuntimeError: unable to "
        f"allocate shared memory), and so does {other}",
        "docker run --shm-size=16g, or --ipc=host; elsewhere: sudo mount -o remount,size=16G /dev/shm",
    )


def little_locked_memory(env: Environment) -> Iterator[Trouble]:
    """The limit of locked memory stands against what locks memory.

    DS_PIN_MEMORY_BACKEND=native pins with mlock (csrc/pin_memory/page_alloc.cpp), as does async_io for its
    bounce buffers. Tried with a limit of 8 MiB: pinning 64 MiB so aborts the process by an assertion. That CUDA's
    own pinned memory is not counted, and InfiniBand's is, was not tried.
    """
    limit = env.limits.locked_memory
    if limit is None or limit >= 1024 * MEBIBYTE or env.needs is None:
        return
    is_native = env.variables.get("DS_PIN_MEMORY_BACKEND", "").strip().lower() == "native"
    pinned = env.needs.pinned_memory
    if is_native and pinned:
        users = f"DS_PIN_MEMORY_BACKEND is native, and beyond that {pinned} aborts the process (mlock failed)"
    elif env.needs.nvme:
        users = f"{env.needs.nvme} may lock buffers with mlock, which fails beyond that"
    elif pinned:
        users = f"{pinned} is not counted where CUDA pins, but InfiniBand's buffers are"
    else:
        return
    yield Trouble(
        "little-locked-memory",
        "warning" if is_native and pinned else "hint",
        "limits",
        f"a process may lock {in_words(limit)} of memory (ulimit -l): {users}",
        "ulimit -l unlimited, docker run --ulimit memlock=-1, or LimitMEMLOCK=infinity for a service",
    )


def in_words(size: int) -> str:
    """A size for a message: "64 MiB", "1.5 GiB"."""
    for unit, length in (("GiB", 1024**3), ("MiB", MEBIBYTE), ("KiB", 1024)):
        if size >= length:
            return f"{size / length:.3g} {unit}" if size < 100 * length else f"{size // length} {unit}"
    return f"{size} bytes"

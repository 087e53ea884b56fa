"""Troubles in the folder where ops are built."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator

from dslint.doctor.environment import BuildLock, Environment, OpsFolder
from dslint.doctor.trouble import Trouble

LONGEST_BUILD = 30 * 60
"""Seconds after which no build can still be at work; DeepSpeed's ops take minutes."""


def stale_locks(env: Environment) -> Iterator[Trouble]:
    """A build that was killed has left its lock, and every later start waits for it.

    _jit_compile in torch/utils/cpp_extension.py makes the file `lock`; FileBaton.wait in torch/utils/file_baton.py
    looks every 0.1 s whether it is gone, without end. Tried: loading the op hangs. A lock that a process of this
    machine holds is left alone; a young one may belong to a build on another machine that shares the folder.
    """
    for lock in env.ops_folder.locks if env.ops_folder is not None else ():
        if lock.holder is None:
            yield _stale(env, lock) if lock.age >= LONGEST_BUILD else _doubtful(lock)


def _stale(env: Environment, lock: BuildLock) -> Trouble:
    return Trouble(
        "stale-build-lock",
        "error" if _is_needed(env, lock) else "warning",
        "ops folder",
        f"{lock.path} is {age_in_words(lock.age)} old, and no process of this machine builds there: a build was "
        "killed, and every run that needs this op waits for ever, without a message",
        f"rm {shlex.quote(lock.path)}",
    )


def _is_needed(env: Environment, lock: BuildLock) -> bool:
    """Whether the op is used, as far as the configs tell; without any, every op may be."""
    if env.needs is None or env.deepspeed is None:
        return True
    return os.path.basename(os.path.dirname(lock.path)) in {op.name for op in env.deepspeed.ops}


def _doubtful(lock: BuildLock) -> Trouble:
    return Trouble(
        "unattended-build-lock",
        "warning",
        "ops folder",
        f"{lock.path} is {age_in_words(lock.age)} old, and no process of this machine builds there: if the build "
        "was killed, every run that needs this op waits for ever",
        f"unless another machine is building into this folder: rm {shlex.quote(lock.path)}",
    )


def foreign_ops(env: Environment) -> Iterator[Trouble]:
    """Two environments share one folder, and rebuild each other's ops.

    _get_build_directory in torch/utils/cpp_extension.py tells environments apart by Python and CUDA release only,
    and by nothing where TORCH_EXTENSIONS_DIR is set; build.ninja names the torch that an op was built for.
    """
    if env.ops_folder is None or not env.ops_folder.foreign:
        return
    names = sorted(env.ops_folder.foreign)
    yield Trouble(
        "ops-of-another-environment",
        "hint",
        "ops folder",
        f"{', '.join(names)} in {env.ops_folder.path} was built last for another environment "
        f"({env.ops_folder.foreign[names[0]]}): each of the two builds it anew after the other, and a run of one "
        "can meet the other's library",
        "give each environment a folder of its own: export TORCH_EXTENSIONS_DIR=PATH",
    )


def unwritable_folder(env: Environment) -> Iterator[Trouble]:
    """Ops can't be built, nor loaded: torch makes its lock in the folder either way."""
    folder: OpsFolder | None = env.ops_folder
    if folder is not None and not folder.is_writable:
        yield Trouble(
            "ops-folder-read-only",
            "error" if env.deepspeed is not None else "warning",
            "ops folder",
            f"{folder.path} can't be written to: torch makes a lock file there before it builds or loads an op, "
            "and stops with an OSError",
            "export TORCH_EXTENSIONS_DIR to a folder of yours",
        )


def age_in_words(seconds: float) -> str:
    """An age for a message: "3 days", "5 minutes"."""
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        count = int(seconds // length)
        if count:
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return "less than a minute"

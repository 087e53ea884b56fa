"""The folder of DeepSpeed's compiled ops, and the locks that a killed build leaves in it."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

SERVED = ("CPUAdam", "FusedAdam", "CPULion", "CPUAdagrad", "PinMemory")
"""The ops that a server for many trials loads before it forks."""


def own_folder() -> Path:
    """Where smoke keeps compiled ops: a folder for each environment, torch and DeepSpeed.

    Two environments that share a folder rebuild each other's ops at every start.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    environment = hashlib.sha256(sys.prefix.encode()).hexdigest()[:8]
    return cache / "dslint" / f"ops-torch{version('torch')}-deepspeed{version('deepspeed')}-{environment}"


def use_own_folder() -> None:
    """Keep the ops apart from the user's, unless a folder is set."""
    folder = Path(os.environ.setdefault("TORCH_EXTENSIONS_DIR", str(own_folder())))
    folder.mkdir(parents=True, exist_ok=True)


@contextlib.contextmanager
def building(op: str) -> Iterator[None]:
    """Let one process at a time build an op in smoke's own folder; any other folder is left to torch.

    torch waits for ever while a file `lock` lies in an op's folder (torch/utils/file_baton.py, FileBaton), also
    when the build that made it was killed. Who holds our lock knows that nobody builds, and removes it.
    """
    folder = own_folder()
    if os.environ.get("TORCH_EXTENSIONS_DIR") != str(folder):
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{op}.dslint-lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        remove_lock(folder, op)
        yield


def lock_of(op: str) -> Path | None:
    """The lock that torch keeps while an op is built in smoke's own folder; None in any other folder."""
    folder = own_folder()
    return folder / op / "lock" if os.environ.get("TORCH_EXTENSIONS_DIR") == str(folder) else None


def is_built(op: str) -> bool:
    """Whether an op has been built before, so that it most likely needs only be loaded."""
    folder = os.environ.get("TORCH_EXTENSIONS_DIR")
    if folder is not None:
        return Path(folder, op, f"{op}.so").exists()
    from torch.utils.cpp_extension import get_default_build_root

    return any(Path(get_default_build_root()).glob(f"*/{op}/{op}.so"))


def remove_lock(folder: Path, op: str) -> None:
    """Remove the lock of a build that is known to have been killed."""
    (folder / op / "lock").unlink(missing_ok=True)

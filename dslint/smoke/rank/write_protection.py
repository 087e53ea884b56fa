"""Keeps a process from writing anywhere but in a few folders, where Linux can (Landlock, since 5.19)."""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on all architectures but alpha
_ASK_FOR_VERSION = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38  # linux/prctl.h
_WITH_MOVES = 2
_WITH_TRUNCATE = 3

_WRITE_FILE = 1 << 1
_REMOVE_AND_MAKE = sum(1 << bit for bit in range(4, 13))
_MOVE, _TRUNCATE = 1 << 13, 1 << 14  # linux/landlock.h

CACHES = ("XDG_CACHE_HOME", "HF_HOME", "TORCH_EXTENSIONS_DIR", "TORCH_HOME", "TRITON_CACHE_DIR", "TRITON_HOME")
"""Variables that name folders of caches."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64),)


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def write_only_below(folders: Iterable[Path]) -> bool:
    """Let this process, and those that it starts, write below these folders only; False where that can't be had.

    Whatever else it tries to write fails with a PermissionError.
    """
    if sys.platform != "linux":
        return False
    library = ctypes.CDLL(None, use_errno=True)
    version = library.syscall(_CREATE_RULESET, None, 0, _ASK_FOR_VERSION)
    if version < _WITH_MOVES:
        return False
    handled = _WRITE_FILE | _REMOVE_AND_MAKE | _MOVE | (_TRUNCATE if version >= _WITH_TRUNCATE else 0)
    wanted = _Ruleset(handled)
    ruleset = library.syscall(_CREATE_RULESET, ctypes.byref(wanted), ctypes.sizeof(wanted), 0)
    if ruleset < 0:
        return False
    try:
        for folder in folders:
            _allow(library, ruleset, folder, handled)
        library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        return bool(library.syscall(_RESTRICT_SELF, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def _allow(library: ctypes.CDLL, ruleset: int, folder: Path, access: int) -> None:
    try:
        opened = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # not there
        return
    try:
        rule = _PathBeneath(access, opened)
        library.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(opened)


def places_of_libraries() -> Iterator[Path]:
    """Where torch, DeepSpeed, Triton and Hugging Face keep what they compile, fetch and share."""
    yield from (Path("/dev"), Path("/proc"), Path(tempfile.gettempdir()))
    yield from (Path.home() / name for name in (".cache", ".triton", ".nv"))
    yield from (Path(os.environ[name]) for name in CACHES if os.environ.get(name))

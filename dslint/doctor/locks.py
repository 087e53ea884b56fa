"""The folder where torch builds DeepSpeed's ops: what is built there, and which builds have left a lock."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator

from dslint.doctor.environment import BuildLock, OpsFolder

_LOCK = "lock"
_NINJA_FILE = "build.ninja"
_LARGEST_NINJA_FILE = 1024 * 1024
_TORCH_HEADERS = re.compile(r"-isystem (\S+?)[/\\]include(?=\s)")


def ops_folder(path: str, torch_folder: str, processes: str = "/proc") -> OpsFolder:
    """What is in the folder for ops.

    Args:
        path: the folder; it need not exist.
        torch_folder: the folder of the torch that will train.
        processes: where the system lists its processes.
    """
    folders = sorted(_op_folders(path))
    locks = [os.path.join(folder, _LOCK) for folder in folders if os.path.isfile(os.path.join(folder, _LOCK))]
    return OpsFolder(
        path,
        frozenset(os.path.basename(folder) for folder in folders if _is_built(folder)),
        tuple(_build_locks(locks, processes)),
        {os.path.basename(folder): owner for folder in folders if (owner := _foreign(folder, torch_folder))},
        _is_writable(path),
    )


def _op_folders(path: str) -> Iterator[str]:
    try:
        with os.scandir(path) as entries:
            yield from (entry.path for entry in entries if entry.is_dir())
    except OSError:
        return


def _is_built(folder: str) -> bool:
    return os.path.isfile(os.path.join(folder, os.path.basename(folder) + ".so"))


def _is_writable(path: str) -> bool:
    """Whether the folder can be written to, or made."""
    path = os.path.abspath(path)
    while not os.path.exists(path):
        above = os.path.dirname(path)
        if above == path:
            return False
        path = above
    return os.access(path, os.W_OK | os.X_OK)


def _foreign(folder: str, torch_folder: str) -> str | None:
    """The torch that this op was built for, where that is another one than ours."""
    try:
        with open(os.path.join(folder, _NINJA_FILE), encoding="utf-8", errors="replace") as stream:
            text = stream.read(_LARGEST_NINJA_FILE)
    except OSError:
        return None
    found = {match for match in _TORCH_HEADERS.findall(text) if os.path.basename(match) == "torch"}
    others = {match for match in found if os.path.realpath(match) != os.path.realpath(torch_folder)}
    return min(others) if others and others == found else None


def _build_locks(paths: list[str], processes: str) -> Iterator[BuildLock]:
    holders = _holders(paths, processes) if paths else {}
    for path in paths:
        try:
            age = time.time() - os.stat(path).st_mtime
        except OSError:
            continue  # the build has just ended
        yield BuildLock(path, max(age, 0.0), holders.get(path))


def _holders(paths: Iterable[str], processes: str) -> dict[str, str]:
    """For each lock, a process that has it open or that works in its folder.

    FileBaton (torch/utils/file_baton.py) keeps the lock open while it holds it; ninja and the compilers that it
    starts run in the op's folder.
    """
    locks = {os.path.realpath(path): path for path in paths}
    folders = {os.path.dirname(real): path for real, path in locks.items()}
    found: dict[str, str] = {}
    for process in _process_folders(processes):
        path = folders.get(_target(os.path.join(process, "cwd")))
        for target in _open_files(process) if path is None else ():
            path = locks.get(target, path)
        if path is not None:
            found.setdefault(path, _process_name(process))
    return found


def _process_folders(processes: str) -> Iterator[str]:
    try:
        names = os.listdir(processes)
    except OSError:
        return  # no such folder outside of Linux
    yield from (os.path.join(processes, name) for name in names if name.isdecimal())


def _open_files(process: str) -> Iterator[str]:
    folder = os.path.join(process, "fd")
    try:
        names = os.listdir(folder)
    except OSError:
        return  # somebody else's process, or one that has ended
    yield from (_target(os.path.join(folder, name)) for name in names)


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def _process_name(process: str) -> str:
    try:
        with open(os.path.join(process, "comm"), encoding="utf-8", errors="replace") as stream:
            name = stream.read().strip()
    except OSError:
        name = "process"
    return f"{name} ({os.path.basename(process)})"

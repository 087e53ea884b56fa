from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dslint.doctor.locks import ops_folder

HAS_PROC = os.path.isdir("/proc/self/fd")
OURS = "/env/lib/python3.11/site-packages/torch"


def op(folder: Path, name: str, *, age: float | None = None) -> Path:
    path = folder / name
    path.mkdir(parents=True)
    if age is not None:
        lock = path / "lock"
        lock.touch()
        os.utime(lock, (time.time() - age,) * 2)
    return path


def test_a_folder_that_does_not_exist_is_empty_and_can_be_made(tmp_path: Path) -> None:
    found = ops_folder(str(tmp_path / "none" / "yet"), OURS)
    assert (found.built, found.locks, found.is_writable) == (frozenset(), (), True)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_named_from_here_can_be_made_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert ops_folder("ops", OURS).is_writable
    assert ops_folder("ops/deeper", OURS).is_writable


def test_built_ops_are_those_with_a_library(tmp_path: Path) -> None:
    (op(tmp_path, "cpu_adam") / "cpu_adam.so").touch()
    op(tmp_path, "fused_adam")
    (tmp_path / "a file").touch()
    assert ops_folder(str(tmp_path), OURS).built == {"cpu_adam"}


def test_a_lock_is_found_with_its_age(tmp_path: Path) -> None:
    folder = op(tmp_path, "fused_adam", age=7200)
    op(tmp_path, "cpu_adam")
    (lock,) = ops_folder(str(tmp_path), OURS).locks
    assert lock.path == str(folder / "lock")
    assert lock.age == pytest.approx(7200, abs=60)
    assert lock.holder is None


@pytest.mark.skipif(not HAS_PROC, reason="needs /proc")
def test_a_lock_that_a_process_has_open_is_held(tmp_path: Path) -> None:
    folder = op(tmp_path, "fused_adam")
    descriptor = os.open(folder / "lock", os.O_CREAT | os.O_EXCL)
    try:
        (lock,) = ops_folder(str(tmp_path), OURS).locks
        assert lock.holder is not None
        assert f"({os.getpid()})" in lock.holder
    finally:
        os.close(descriptor)


@pytest.mark.skipif(not HAS_PROC, reason="needs /proc")
def test_a_lock_in_the_folder_of_a_working_process_is_held(tmp_path: Path) -> None:
    folder = op(tmp_path, "fused_adam", age=86400)
    op(tmp_path, "cpu_adam", age=86400)
    with subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        held = {Path(lock.path).parent.name: lock.holder for lock in ops_folder(str(tmp_path), OURS).locks}
        child.communicate(b"\n")
    assert held["cpu_adam"] is None
    assert f"({child.pid})" in str(held["fused_adam"])


def test_where_processes_are_not_listed_no_lock_is_held(tmp_path: Path) -> None:
    op(tmp_path, "fused_adam", age=1)
    (lock,) = ops_folder(str(tmp_path), OURS, processes=str(tmp_path / "no proc")).locks
    assert lock.holder is None


def test_an_op_of_another_torch_is_told_apart(tmp_path: Path) -> None:
    line = "cflags = -DX -isystem {0}/include -isystem {0}/include/torch/csrc/api/include -isystem /usr/include/python3\n"
    (op(tmp_path, "cpu_adam") / "build.ninja").write_text(line.format("/other/site-packages/torch"))
    (op(tmp_path, "fused_adam") / "build.ninja").write_text(line.format(OURS))
    (op(tmp_path, "async_io") / "build.ninja").write_bytes(b"\xff\x00 nothing of the kind")
    assert dict(ops_folder(str(tmp_path), OURS).foreign) == {"cpu_adam": "/other/site-packages/torch"}

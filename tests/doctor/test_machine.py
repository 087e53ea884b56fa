from __future__ import annotations

from pathlib import Path

import pytest

from dslint.doctor import machine
from dslint.doctor.environment import Driver, Gpu


def program(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def path_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the only one on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CXX", raising=False)
    return folder


def test_without_nvidia_smi_there_is_no_gpu(path_folder: Path) -> None:
    assert machine.gpus() == ((), None)


def test_gpus_and_their_driver(path_folder: Path) -> None:
    text = (
        'case "$1" in *compute_cap*) echo "NVIDIA H200, 9.0, 580.159.03";; *) echo "| CUDA Version: 13.0 |";; esac'
    )
    program(path_folder, "nvidia-smi", text)
    assert machine.gpus() == ((Gpu("NVIDIA H200", (9, 0)),), Driver("580.159.03", "13.0"))


def test_an_old_nvidia_smi_tells_no_capability(path_folder: Path) -> None:
    program(path_folder, "nvidia-smi", 'case "$1" in *compute_cap*) exit 2;; *) echo "Tesla V100, 440.33";; esac')
    assert machine.gpus() == ((Gpu("Tesla V100", None),), Driver("440.33", None))


def test_a_failing_nvidia_smi_is_no_gpu(path_folder: Path) -> None:
    program(path_folder, "nvidia-smi", "echo could not talk to the driver; exit 9")
    assert machine.gpus() == ((), None)


def test_an_empty_path_has_no_tools(path_folder: Path) -> None:
    tools = machine.toolchain("", None)
    assert (tools.compiler, tools.compiler_path, tools.ninja, tools.nvcc) == ("c++", None, None, None)


def test_releases_of_the_compilers(path_folder: Path, tmp_path: Path) -> None:
    gnu = 'echo "c++ (Debian 12.2.0-14) 12.2.0"; echo "Copyright (C) 2022 Free Software Foundation, Inc."'
    compiler = program(path_folder, "c++", gnu)
    (tmp_path / "cuda" / "bin").mkdir(parents=True)
    nvcc = program(tmp_path / "cuda" / "bin", "nvcc", 'echo "Cuda compilation tools, release 12.4, V12.4.131"')
    tools = machine.toolchain("", str(tmp_path / "cuda"))
    assert (tools.compiler_path, tools.gcc) == (str(compiler), (12, 2, 0))
    assert (tools.nvcc, tools.nvcc_version) == (str(nvcc), "12.4")


def test_another_compiler_than_gnus_has_no_release_to_compare(path_folder: Path) -> None:
    program(path_folder, "c++", 'echo "clang version 17.0.6"')
    assert machine.toolchain("", None).gcc is None


def test_torch_runs_cxx_where_it_is_set(path_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(path_folder, "g++", "true")
    monkeypatch.setenv("CXX", "my-c++")
    tools = machine.toolchain("", None)
    assert (tools.compiler, tools.compiler_path, tools.other_compiler) == ("my-c++", None, "g++")


def test_a_ninja_beside_the_interpreter_is_noticed(path_folder: Path, tmp_path: Path) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    ninja = program(scripts, "ninja", "true")
    tools = machine.toolchain(str(scripts), None)
    assert (tools.ninja, tools.ninja_off_path) == (None, str(ninja))


def test_a_program_that_hangs_holds_nobody_up(path_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_SECONDS", 0.2)
    program(path_folder, "nvidia-smi", "exec /bin/sleep 5")
    assert machine.gpus() == ((), None)


def test_limits_of_this_machine_can_be_read() -> None:
    found = machine.limits()
    assert found.shared_memory is None or found.shared_memory > 0
    assert found.locked_memory is None or found.locked_memory >= 0

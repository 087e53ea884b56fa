from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dslint.doctor.asking import PROBE, NoAnswerError, ask


def fake_python(folder: Path, text: str) -> str:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python with nothing installed."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return str(folder / "bin" / "python")


def python_with(folder: Path, bare: str, **packages: str) -> str:
    """The bare Python, with modules of this text on its path."""
    for name, text in packages.items():
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(text)
    return fake_python(folder, f'PYTHONPATH="{folder}" exec "{bare}" "$@"')


def test_a_python_without_torch_tells_its_version(bare_python: str) -> None:
    answers = ask(bare_python, ["FusedAdamBuilder"])
    assert answers.python["version"] == ".".join(map(str, sys.version_info[:3]))
    assert (answers.torch, answers.deepspeed, answers.failures) == (None, None, ())
    assert "torch" not in answers.python["versions"]


def test_an_import_that_raises_is_a_failure(tmp_path: Path, bare_python: str) -> None:
    python = python_with(tmp_path, bare_python, torch="raise OSError('libcudart.so.13: cannot open')")
    (failure,) = ask(python, []).failures
    assert (failure.package, failure.reason) == ("torch", "OSError: libcudart.so.13: cannot open")


def test_an_import_that_kills_python_leaves_what_was_told_before(tmp_path: Path, bare_python: str) -> None:
    python = python_with(tmp_path, bare_python, torch="import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    answers = ask(python, [])
    assert answers.python["version"]
    (failure,) = answers.failures
    assert (failure.package, failure.reason) == ("torch", "killed by SIGSEGV")


def test_an_import_that_hangs_is_ended(tmp_path: Path, bare_python: str) -> None:
    python = python_with(tmp_path, bare_python, torch="import time; time.sleep(60)")
    (failure,) = ask(python, [], seconds=1.5).failures
    assert failure.is_timeout
    assert "1.5 s" in failure.reason


def test_what_an_import_prints_is_no_answer(tmp_path: Path, bare_python: str) -> None:
    text = 'print(\'{"stage": "python", "version": "hijacked"}\', flush=True)\nraise SystemExit(3)'
    answers = ask(python_with(tmp_path, bare_python, torch=text), [])
    assert answers.python["version"] != "hijacked"
    assert [failure.reason for failure in answers.failures] == ["SystemExit: 3"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("exit 1", "exit status 1"),
        ("echo 'SyntaxError: invalid syntax' >&2; exit 1", "SyntaxError"),
        ("echo '{\"stage\": \"python\"}'; echo '[]'; echo nonsense", "exit status 0"),
        ('echo \'{"stage": "python", "error": "ModuleNotFoundError: x"}\'', "ModuleNotFoundError: x"),
        ("kill -9 $$", "SIGKILL"),
    ],
)
def test_something_else_than_python_gives_no_answer(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(NoAnswerError, match=said):
        ask(fake_python(tmp_path, text), [])


def test_a_path_that_is_no_program(tmp_path: Path) -> None:
    with pytest.raises(NoAnswerError, match="no such program"):
        ask(str(tmp_path / "python"), [])
    (tmp_path / "file").touch()
    with pytest.raises(NoAnswerError, match="not a program"):
        ask(str(tmp_path / "file"), [])


def test_a_program_for_another_machine(tmp_path: Path) -> None:
    path = tmp_path / "python"
    path.write_bytes(b"\x7fELF\x02\x01\x01")
    path.chmod(0o755)
    with pytest.raises(NoAnswerError, match="can't be run"):
        ask(str(path), [])


def test_the_probe_imports_nothing_of_dslint() -> None:
    assert "dslint." not in PROBE.read_text(encoding="utf-8").partition('"""\n')[2].replace(
        "dslint.doctor.asking", ""
    )

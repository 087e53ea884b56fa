"""The folder of compiled ops never keeps a lock that nobody holds."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from dslint.smoke.leftovers import remove_leftovers
from dslint.smoke.listening import Heard
from dslint.smoke.ops import building, is_built, lock_of, own_folder, use_own_folder

pytestmark = pytest.mark.deepspeed


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("TORCH_EXTENSIONS_DIR", raising=False)
    return own_folder()


def test_the_folder_goes_with_torch_deepspeed_and_the_environment(folder: Path, tmp_path: Path) -> None:
    assert folder.parent == tmp_path / "dslint"
    assert "torch" in folder.name
    assert "deepspeed" in folder.name


def test_a_lock_that_a_killed_build_left_is_removed(folder: Path) -> None:
    use_own_folder()
    lock = folder / "cpu_adam" / "lock"
    lock.parent.mkdir()
    lock.touch()
    with building("cpu_adam"):
        assert not lock.exists()


def test_another_folder_is_left_alone(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "mine"
    lock = own / "cpu_adam" / "lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(own))
    use_own_folder()
    with building("cpu_adam"):
        assert lock.exists()
    assert not folder.exists()


def test_an_op_that_was_built_is_known(folder: Path) -> None:
    use_own_folder()
    assert not is_built("cpu_adam")
    (folder / "cpu_adam").mkdir()
    (folder / "cpu_adam" / "cpu_adam.so").touch()
    assert is_built("cpu_adam")


def test_the_lock_of_a_build_that_was_cut_off_goes(folder: Path) -> None:
    use_own_folder()
    lock = lock_of("cpu_adam")
    assert lock is not None
    lock.parent.mkdir()
    lock.touch()
    remove_leftovers([Heard(seen={"own_lock": str(lock)})])
    assert lock.exists()
    remove_leftovers([Heard(seen={"own_lock": str(lock)}, building="cpu_adam")])
    assert not lock.exists()


def test_a_foreign_folder_has_no_lock_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    assert lock_of("cpu_adam") is None

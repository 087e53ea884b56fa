"""Files are written whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from dslint.documents.source import Source, read_source
from dslint.fixes import writing
from dslint.fixes.writing import CannotWriteError, write


def replacement(path: Path, data: bytes) -> tuple[Source, Source]:
    return read_source(path), Source(str(path), data)


def test_the_new_content_takes_the_place_of_the_old(tmp_path: Path) -> None:
    path = tmp_path / "ds.json"
    path.write_bytes(b"{}\r\n")
    write(*replacement(path, b'{"a": 1}\r\n'))
    assert path.read_bytes() == b'{"a": 1}\r\n'


def test_permissions_stay(tmp_path: Path) -> None:
    path = tmp_path / "run.sh"
    path.write_text("a")
    path.chmod(0o751)
    write(*replacement(path, b"b"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


def test_a_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    path = tmp_path / "real" / "ds.json"
    path.parent.mkdir()
    path.write_text("a")
    link = tmp_path / "ds.json"
    link.symlink_to(path)
    write(*replacement(link, b"b"))
    assert link.is_symlink()
    assert path.read_text() == "b"


def test_a_file_that_changed_since_it_was_read_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ds.json"
    path.write_text("a")
    before, after = replacement(path, b"b")
    path.write_text("somebody else's")
    with pytest.raises(CannotWriteError, match="changed since dslint read it"):
        write(before, after)
    assert path.read_text() == "somebody else's"


def test_a_file_that_is_gone_is_not_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "ds.json"
    path.write_text("a")
    before, after = replacement(path, b"b")
    path.unlink()
    with pytest.raises(CannotWriteError, match="not there any more"):
        write(before, after)
    assert not path.exists()


def test_nothing_is_left_behind_where_the_last_step_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ds.json"
    path.write_text("a")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing.os, "replace", fail)
    with pytest.raises(CannotWriteError, match="No space left on device"):
        write(*replacement(path, b"b"))
    assert os.listdir(tmp_path) == ["ds.json"]
    assert path.read_text() == "a"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_without_write_permission_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ds.json"
    path.write_text("a")
    path.chmod(0o444)
    with pytest.raises(CannotWriteError, match="no permission"):
        write(*replacement(path, b"b"))

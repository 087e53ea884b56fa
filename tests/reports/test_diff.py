"""The diff is one that `patch` takes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from dslint.documents.source import Source
from dslint.reports.diff import unified_diff
from dslint.reports.style import Style


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs patch")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"a\nb\nc\n", b"a\nB\nc\n"),
        (b"a\nb", b"a\nc"),
        (b"a\nb", b"a\nb\n"),
        (b"a\r\nb\r\n", b"a\r\nc\r\n"),
        ('{"ä": 1}\n'.encode(), '{"ä": 2}\n'.encode()),
        (b"a\x0cb\nc\n", b"a\x0cb\nd\n"),
    ],
)
def test_patch_makes_the_new_file_of_the_old_one(tmp_path: Path, old: bytes, new: bytes) -> None:
    path = tmp_path / "ds.json"
    path.write_bytes(old)
    diff = unified_diff([(Source("ds.json", old), Source("ds.json", new))], Style(colour=False))
    subprocess.run(
        ["patch", "-p0", "--binary"], input=diff.encode(), cwd=tmp_path, check=True, capture_output=True
    )
    assert path.read_bytes() == new


def test_colours_mark_what_goes_and_what_comes() -> None:
    diff = unified_diff([(Source("d", b"a\n"), Source("d", b"b\n"))], Style(colour=True))
    assert "\033[31m-a" in diff
    assert "\033[32m+b" in diff

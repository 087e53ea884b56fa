"""A folder that looks like one of the user's, in which a script can run and write without touching that."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

LEFT_OUT = frozenset({"__pycache__"})
"""Folders that nobody misses."""

LARGEST_COPY = 16 * 2**20
"""Bytes of a file that is still copied; a larger one is linked."""


@dataclass
class Budget:
    """What a mirror may still take.

    Attributes:
        entries: files and folders.
        size: bytes of copies.
    """

    entries: int = 5_000
    size: int = 256 * 2**20


class Mirror:
    """Makes a folder look like another.

    Args:
        copy: the folder that is made, empty so far.
        budget: what it may take.
    """

    def __init__(self, copy: Path, budget: Budget | None = None) -> None:
        self._copy = Path(os.path.realpath(copy))
        self._budget = budget or Budget()

    def fill(self, original: Path, inner: Iterable[Path], ways: Iterable[Path] = ()) -> None:
        """Make the copy look like `original`.

        Folders in `inner`, and all below them, are made anew, with copies of their files, so that what a script
        writes there stays in the copy. Those in `ways`, and what leads to either, are folders of their own whose
        entries are linked. Large files, hidden folders, and everything beyond the budget, are linked everywhere.

        Args:
            original: the user's folder.
            inner: paths below it, relative to it.
            ways: the same.
        """
        self._fill(Path(os.path.realpath(original)), self._copy, set(inner), {*inner, *ways})

    def _fill(self, original: Path, copy: Path, inner: set[Path], ways: set[Path]) -> None:
        is_inner = Path() in inner
        for entry in sorted(os.scandir(original), key=lambda entry: entry.name):
            path, target = Path(entry.path), copy / entry.name
            if entry.name in LEFT_OUT or path == self._copy:
                continue
            self._budget.entries -= 1
            ahead = _below(ways, entry.name)
            if entry.is_dir() and (ahead or (is_inner and self._is_worth_it(entry))):
                target.mkdir()
                deeper = {Path()} if is_inner else _below(inner, entry.name)
                self._fill(path, target, deeper, ahead)
            elif is_inner and self._is_worth_a_copy(entry):
                shutil.copyfile(path, target)
                shutil.copymode(path, target)
            else:
                target.symlink_to(path)

    def _is_worth_it(self, entry: os.DirEntry[str]) -> bool:
        """Whether a folder that nobody named is made anew."""
        is_plain = entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
        return is_plain and self._budget.entries > 0

    def _is_worth_a_copy(self, entry: os.DirEntry[str]) -> bool:
        """Whether a file is copied, for which the budget then pays."""
        if not entry.is_file() or self._budget.entries <= 0:
            return False
        size = entry.stat().st_size
        if size > min(LARGEST_COPY, self._budget.size):
            return False
        self._budget.size -= size
        return True


def _below(paths: Iterable[Path], name: str) -> set[Path]:
    """What is left of the paths that lead into this folder, as seen from it."""
    return {Path(*path.parts[1:]) for path in paths if path.parts[:1] == (name,)}

"""Looks up the files that other files name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dslint.documents.source import Source, UnreadableFileError, read_source


class Files:
    """The files at hand, and those on the disk that they lead to."""

    def __init__(self, known: Iterable[Source] = ()) -> None:
        self._by_path = {os.path.realpath(source.path): source for source in known}

    def find(self, reference: str, folders: Sequence[str]) -> Source | None:
        """The file that a path names, as seen from one of these folders, in this order.

        A relative path is tried in each folder, then in those above them up to the top of the repository; not
        above a folder that is given by an absolute path, which is known to be the right one.
        """
        reference = os.path.expanduser(reference)
        if os.path.isabs(reference):
            return self._read(reference)
        for folder in folders:
            found = self._read(os.path.join(folder, reference))
            if found is not None:
                return found
        for folder in folders:
            found = None if os.path.isabs(folder) else self._find_above(folder, reference)
            if found is not None:
                return found
        return None

    def at(self, path: str) -> Source | None:
        """The file at exactly this path."""
        return self._read(path)

    def names_in(self, folder: str) -> frozenset[str] | None:
        """The names of what lies in a folder; None where it isn't there, or can't be read."""
        try:
            return frozenset(os.listdir(folder))
        except (OSError, ValueError):
            return None

    def _find_above(self, folder: str, reference: str) -> Source | None:
        here = os.path.abspath(folder)
        while not os.path.isdir(os.path.join(here, ".git")):
            above = os.path.dirname(here)
            if above == here:
                return None
            here = above
            found = self._read(os.path.join(here, reference))
            if found is not None:
                return found
        return None

    def _read(self, path: str) -> Source | None:
        real = os.path.realpath(path)
        if real not in self._by_path:
            if not os.path.isfile(path):
                return None
            try:
                self._by_path[real] = read_source(path, _shown(path))
            except UnreadableFileError:
                return None
        return self._by_path[real]


class GivenFiles(Files):
    """Files that exist by their names only: those of an example."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        super().__init__()
        self._sources = sources

    def find(self, reference: str, folders: Sequence[str]) -> Source | None:
        """The file of this name."""
        return self.at(reference)

    def at(self, path: str) -> Source | None:
        """The file of this name."""
        return self._sources.get(os.path.normpath(path))

    def names_in(self, folder: str) -> frozenset[str] | None:
        """The first parts of the names below this one."""
        above = os.path.normpath(folder)
        top = "" if above == "." else above + "/"
        below = [name[len(top) :] for name in self._sources if name.startswith(top)]
        return frozenset(name.partition("/")[0] for name in below) or None


@dataclass(frozen=True)
class Place:
    """Where a run looks for the folders that it names.

    Attributes:
        files: the files at hand.
        folders: where it may run.
    """

    files: Files
    folders: tuple[str, ...]

    def folder(self, reference: str) -> str | None:
        """The one folder that a path names; None where there is none, or where the run may mean another one.

        A `~` stays one, as for DeepSpeed: only a shell knows what it means.
        """
        paths = [os.path.normpath(os.path.join(folder, reference)) for folder in self.folders]
        found = {os.path.realpath(path): path for path in paths if self.names(path) is not None}
        return next(iter(found.values())) if len(found) == 1 else None

    def names(self, folder: str) -> frozenset[str] | None:
        """The names of what lies in a folder; None where it isn't there."""
        return self.files.names_in(folder)

    def text(self, path: str) -> str | None:
        """The text of a small file; None where it isn't there, or is no text."""
        source = self.files.at(path)
        if source is None:
            return None
        try:
            return source.text
        except UnreadableFileError:
            return None


def _shown(path: str) -> str:
    """A path as a person would write it: relative to the working folder where it lies below it."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") and os.path.isabs(path) else relative

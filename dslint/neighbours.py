"""The files beside the checked ones that name them: a changed config is checked with the script that takes it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from dslint.documents.discover import CODE_ENDINGS
from dslint.documents.source import Source, UnreadableFileError, read_source

MOST_FOLDERS, MOST_FILES, LARGEST = 30, 150, 256 * 1024
"""Folders and files that are looked into, and bytes of one; what lies further away the settings can state."""

HIGHEST = 2
"""Folders above a file in which a script or a command may stand that names it."""


def files_naming(sources: Sequence[Source]) -> list[Source]:
    """The scripts and shell scripts near some files that name one of them, or one that does.

    They are searched for by name only, in the folders of the files and, in a repository, in those just above.
    """
    known = {os.path.realpath(source.path) for source in sources}
    candidates = _candidates(_folders(sources), known)
    names = {os.path.basename(source.path).encode() for source in sources}
    found: list[Source] = []
    while names:
        naming = [source for source in candidates if any(name in source.data for name in names)]
        candidates = [source for source in candidates if source not in naming]
        found += naming
        names = {os.path.basename(source.path).encode() for source in naming}
    return found


def _folders(sources: Iterable[Source]) -> list[str]:
    """The folders of some files, and in a repository those just above."""
    folders: dict[str, None] = {}
    for source in sources:
        here = os.path.dirname(source.path) or "."
        folders.setdefault(os.path.normpath(here))
        above = [os.path.join(here, *[os.pardir] * height) for height in range(HIGHEST + 1)]
        top = next((height for height, path in enumerate(above) if _is_top(path)), None)
        inside = above[1 : top + 1] if top is not None else above[1:] if _is_in_repository(above[-1]) else []
        for path in inside:
            folders.setdefault(os.path.normpath(path))
    return list(folders)[:MOST_FOLDERS]


def _is_top(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, ".git"))


def _is_in_repository(folder: str) -> bool:
    """Whether a folder, of which it is known that it is no top, stands in a repository; else who knows in what."""
    here = os.path.abspath(folder)
    while not _is_top(here):
        above = os.path.dirname(here)
        if above == here:
            return False
        here = above
    return True


def _candidates(folders: Iterable[str], known: set[str]) -> list[Source]:
    """The Python and shell files of some folders."""
    found: list[Source] = []
    for folder in folders:
        for path in _code_in(folder):
            if len(found) >= MOST_FILES:
                return found
            if os.path.realpath(path) not in known:
                try:
                    found.append(read_source(path))
                except UnreadableFileError:
                    continue
    return found


def _code_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(
                os.path.normpath(entry.path)
                for entry in entries
                if entry.name.lower().endswith(CODE_ENDINGS)
                and entry.is_file()
                and entry.stat().st_size <= LARGEST
            )
    except OSError:
        return []

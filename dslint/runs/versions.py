"""Which DeepSpeed release a project says it uses."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dslint.runs.releases import Release, newest_allowed, parse_release
from dslint.runs.requirement_files import FINDERS, Mention, names_in

_HIGHEST_PARENT = 6  # folders above the file that are searched where there is no repository
_MOST_MENTIONS = 100  # more in one folder are no project's


@dataclass(frozen=True)
class KnownVersion:
    """The release that a project uses, and how that is known.

    Attributes:
        release: the release; the newest possible one where only a range is known.
        exact: whether a file names this very release.
        where: the place for people: "requirements.txt:3 `deepspeed>=0.12`".
        path: the file or folder that tells it.
        line: the line in it, from 1.
    """

    release: Release
    exact: bool
    where: str
    path: str | None
    line: int | None


def find_version(near: str) -> KnownVersion | None:
    """The DeepSpeed release that the project around a file asks for, or None where no file tells.

    The file's folder is searched first, then its parents up to the repository's root, or six of them. In
    one folder a lock file counts more than requirements files, these more than pyproject.toml, then
    setup.py and setup.cfg, then a conda environment. The nearest folder that mentions DeepSpeed decides:
    one that takes it from a URL gives None.
    """
    for folder in _folders(near):
        for find in FINDERS:
            mentions = find(folder)
            if mentions:
                return _decide(mentions)
    return None


def installed_version() -> KnownVersion | None:
    """The DeepSpeed that this Python could import, told by the names of folders alone."""
    for entry in sys.path:
        folder = entry or os.curdir
        for name in names_in(folder):
            match = re.fullmatch(r"(?i:deepspeed)-(.+)\.(?:dist|egg)-info", name)
            if match is not None:
                known = _installed(match[1], os.path.join(folder, name))
                if known is not None:
                    return known
    return None


def _installed(version: str, path: str) -> KnownVersion | None:
    """The release of an installed package; None for a folder name that holds no version."""
    try:
        release = parse_release(re.split(r"-py\d", version)[0])
    except ValueError:
        return None
    return KnownVersion(release, exact=True, where=f"installed: {path}", path=path, line=None)


def _folders(near: str) -> Iterator[str]:
    """The folder of a file and its parents, up to the repository's root."""
    path = os.path.abspath(near.replace("\0", ""))
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    for _ in range(_HIGHEST_PARENT + 1):
        yield folder
        parent = os.path.dirname(folder)
        if parent == folder or os.path.exists(os.path.join(folder, ".git")):
            return
        folder = parent


def _decide(mentions: Sequence[Mention]) -> KnownVersion | None:
    """What the mentions of one kind of file say: the first that names a release, else the first."""
    known = [_known(mention) for mention in mentions[:_MOST_MENTIONS]]
    exact = (version for version in known if version is not None and version.exact)
    return next(exact, known[0])


def _known(mention: Mention) -> KnownVersion | None:
    """The release that one requirement means; None where it can't be told."""
    found = None if mention.spec is None else newest_allowed(mention.spec)
    if found is None:
        return None
    release, exact = found
    path = _shown_path(mention.path)
    where = f"{path}:{mention.line} `{mention.text}`"
    return KnownVersion(release, exact, where, path, mention.line)


def _shown_path(path: str) -> str:
    """A path as people want to read it: relative where it lies below the current folder."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        return path
    return path if relative.startswith(os.pardir) else relative

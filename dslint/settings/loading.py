"""Finds the settings that hold for some paths: the nearest file upwards, within the repository."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dslint.documents.source import LARGEST_FILE

if TYPE_CHECKING:
    from dslint.rulebook.labels import Labelled
    from dslint.settings.settings import Settings

PYPROJECT, OWN_FILE = "pyproject.toml", "dslint.toml"
_MARK = b"tool.dslint"


class SettingsError(Exception):
    """Settings that can't be used; the text begins with the file and, where there is one, the line."""


def load_settings(paths: Sequence[str], rules: Sequence[Labelled], file: str | None = None) -> Settings | None:
    """The settings for some paths; None where nobody has written any.

    Args:
        paths: the files and folders that are to be checked.
        rules: all rules, so that labels can be told from slips.
        file: the settings file, where the user names it.

    Raises:
        SettingsError: the settings can't be used.
    """
    for path, data in _candidates(paths) if file is None else [(file, _read_named(file))]:
        from dslint.settings.reader import read_settings

        settings = read_settings(path, data, rules)
        if settings is not None:
            return settings
    if file is not None:
        raise SettingsError(f"{file}: has no table [tool.dslint]")
    return None


def _candidates(paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Files that may hold settings, the nearest first, with their content."""
    here = _common_folder(paths)
    while True:
        own = os.path.join(here, OWN_FILE)
        if os.path.isfile(own):
            yield own, _read_named(own)
        project = os.path.join(here, PYPROJECT)
        content = _read_if_possible(project)
        if _MARK in content:
            yield project, content
        above = os.path.dirname(here)
        if above == here or os.path.exists(os.path.join(here, ".git")):
            return
        here = above


def _common_folder(paths: Sequence[str]) -> str:
    folders = {_folder(path) for path in paths}
    try:
        return os.path.commonpath(folders) if folders else os.getcwd()
    except ValueError:  # several drives
        return os.getcwd()


def _folder(path: str) -> str:
    if path == "-":
        return os.getcwd()
    absolute = os.path.abspath(path)
    return absolute if os.path.isdir(absolute) else os.path.dirname(absolute)


def _read_if_possible(path: str) -> bytes:
    """The content of a file that may concern others only, so that trouble with it is not ours to tell."""
    try:
        with open(path, "rb") as stream:
            return stream.read(LARGEST_FILE)
    except (OSError, ValueError):
        return b""


def _read_named(path: str) -> bytes:
    from dslint.documents.source import UnreadableFileError, read_source

    try:
        return read_source(path).data
    except UnreadableFileError as error:
        raise SettingsError(f"{path}: {error}") from None

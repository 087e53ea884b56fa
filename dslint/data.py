"""Where the data that ships with dslint lives: `rules` and `schemas`."""

from __future__ import annotations

import os

PACKAGE = os.path.dirname(os.path.abspath(__file__))


def data_folder(name: str) -> str:
    """The folder of shipped data with this name.

    A wheel holds it inside the package, a checkout at the top level; nothing else knows the difference.
    """
    inside = os.path.join(PACKAGE, name)
    return inside if os.path.isdir(inside) else os.path.join(os.path.dirname(PACKAGE), name)


def read_data(folder: str, file: str) -> str:
    """The text of a shipped file."""
    with open(os.path.join(data_folder(folder), file), encoding="utf-8") as stream:
        return stream.read()

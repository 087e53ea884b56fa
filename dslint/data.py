"""Where the data that ships with dslint lives: `rules` and `schemas`."""

from __future__ import annotations

from pathlib import Path


def data_folder(name: str) -> Path:
    """The folder of shipped data with this name.

    A wheel holds it inside the package, a checkout at the top level; nothing else knows the difference.
    """
    package = Path(__file__).parent
    inside = package / name
    return inside if inside.is_dir() else package.parent / name

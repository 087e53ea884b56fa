"""What dslint keeps between runs: JSON files in one folder, replaced as a whole; no trouble if they can't be."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any

from dslint import __version__


def kept_file(name: str) -> str:
    """The path of a kept file; each version of dslint has its own."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "dslint", f"{name}-{__version__}.json")


def read_kept(name: str) -> dict[str, Any]:
    """The object in a kept file; empty where it is missing, or where something else has written it."""
    try:
        with open(kept_file(name), encoding="utf-8") as stream:
            content = json.load(stream)
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def keep(name: str, content: dict[str, Any]) -> None:
    """Replaces a kept file."""
    path = kept_file(name)
    temporary = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(temporary, "w", encoding="utf-8") as stream:
            json.dump(content, stream)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)

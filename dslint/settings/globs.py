"""Patterns for paths, as people know them from .gitignore."""

from __future__ import annotations

import re
from functools import lru_cache

_PIECE = re.compile(r"\*\*/|\*\*|\*|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)


def glob_matches(pattern: str, path: str) -> bool:
    """Whether a pattern means a file, or a folder above it.

    `*` and `?` stay within one name, `**` crosses folders. A pattern without a slash (other than at its end)
    means every file or folder of that name; any other is as seen from the top.

    Args:
        pattern: a pattern that `is_glob` accepts.
        path: the file as seen from the top, with slashes.
    """
    return _compiled(pattern).match(path) is not None


def is_glob(pattern: str) -> bool:
    """Whether a text can be used as a pattern."""
    try:
        _compiled(pattern)
    except re.error:
        return False
    return bool(pattern.strip("/"))


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    plain = pattern.removeprefix("./").rstrip("/")
    is_anywhere = "/" not in plain
    body = "".join(map(_translated, _PIECE.findall(plain.removeprefix("/"))))
    return re.compile(("(?:.*/)?" if is_anywhere else "") + body + r"(?:/.*)?\Z", re.DOTALL)


def _translated(piece: str) -> str:
    if piece == "**/":
        return "(?:.*/)?"
    if piece == "**":
        return ".*"
    if piece == "*":
        return "[^/]*"
    if piece == "?":
        return "[^/]"
    if len(piece) > 2 and piece.startswith("["):
        inside = piece[1:-1].replace("\\", r"\\").replace("[", r"\[")
        return f"[^/{inside[1:]}]" if inside.startswith("!") else f"(?!/)[{inside}]"
    return re.escape(piece)

"""Keeps the checked rules as one JSON file, since reading them anew costs more than everything else.

The cache holds data only: trees of expressions, never code.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dslint import __version__
from dslint.data import PACKAGE, data_folder
from dslint.rulebook.rule_text import RuleText

if TYPE_CHECKING:
    from dslint.rulebook.rule import Rule


def shipped_rules() -> list[Rule]:
    """The rules that come with dslint, from the cache where it is fresh.

    Raises:
        RuleError: a rule file has a mistake.
    """
    from dslint.rulebook.rule import Rule, RuleFix

    def fix(data: dict[str, Any]) -> RuleFix:
        return RuleFix(**{**data, "title": tuple(data["title"]), "delete": tuple(data["delete"])})

    def rule(data: dict[str, Any]) -> Rule:
        each = tuple(data["each"]) if data["each"] else None
        mended = {
            "each": each,
            "message": tuple(data["message"]),
            "fix": fix(data["fix"]) if data["fix"] else None,
        }
        return Rule(**{**data, **mended})

    return [rule(data) for data in _cached("rules")]


def shipped_rule_texts() -> list[RuleText]:
    """The texts of the same rules, in the same order.

    Raises:
        RuleError: a rule file has a mistake.
    """
    return [RuleText(text["file"], text["data"]) for text in _cached("texts")]


def _cached(part: str) -> list[dict[str, Any]]:
    """One of the two halves of the cache: what the judge needs ("rules"), and the rest ("texts")."""
    folder = data_folder("rules")
    fingerprint = rules_fingerprint()
    cached = _read(_cache_file(part), fingerprint)
    if cached is not None:
        return cached
    from dataclasses import asdict
    from pathlib import Path

    from dslint.rulebook.loader import load_rules

    loaded = load_rules(Path(folder))
    halves = {
        "rules": [asdict(one.rule) for one in loaded],
        "texts": [{"file": one.text.file, "data": one.text.data} for one in loaded],
    }
    for name, content in halves.items():
        _write(_cache_file(name), {"fingerprint": fingerprint, "content": content})
    return halves[part]


def cache_folder() -> str:
    """The folder for all that dslint keeps between runs."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "dslint")


def _cache_file(part: str) -> str:
    return os.path.join(cache_folder(), f"{part}-{__version__}.json")


def rules_fingerprint() -> str:
    """Names, sizes and times of all files that the rules are made from."""
    rules = data_folder("rules")
    makers = [data_folder("schemas"), os.path.join(PACKAGE, "rulebook"), os.path.join(PACKAGE, "runs")]
    pieces = [rules]
    for folder in [*makers, *_subfolders(rules)]:
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            if entry.is_file():
                status = entry.stat()
                pieces.append(f"{entry.name}:{status.st_size}:{status.st_mtime_ns}")
    return " ".join(pieces)


def _subfolders(folder: str) -> list[str]:
    return sorted(entry.path for entry in os.scandir(folder) if entry.is_dir())


def _read(path: str, fingerprint: str) -> list[dict[str, Any]] | None:
    try:
        with open(path, encoding="utf-8") as stream:
            stored = json.load(stream)
        content: list[dict[str, Any]] = stored["content"]
        return content if stored["fingerprint"] == fingerprint else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _write(path: str, content: Mapping[str, Any]) -> None:
    """Replaces a cache file as a whole; a cache that can't be written is no trouble."""
    temporary = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(temporary, "w", encoding="utf-8") as stream:
            json.dump(content, stream)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)

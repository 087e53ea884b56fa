"""Keeps the checked rules as one JSON file, since reading them anew costs more than everything else.

The cache holds data only: trees of expressions, never code.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dslint import __version__
from dslint.data import data_folder
from dslint.rulebook.rule import Rule, RuleFix


def shipped_rules() -> list[Rule]:
    """The rules that come with dslint, from the cache where it is fresh.

    Raises:
        RuleError: a rule file has a mistake.
    """
    folder = data_folder("rules")
    fingerprint = _fingerprint(folder)
    path = _cache_folder() / f"rules-{__version__}.json"
    cached = _read(path, fingerprint)
    if cached is not None:
        return cached
    from dslint.rulebook.loader import load_rules

    rules = load_rules(folder)
    _write(path, fingerprint, rules)
    return rules


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "dslint"


def _fingerprint(rules: Path) -> str:
    """Names, sizes and times of all files that the rules are made from."""
    package = Path(__file__).parent.parent
    pieces = [str(rules)]
    for folder in (data_folder("schemas"), package / "rulebook", package / "runs", *_subfolders(rules)):
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            if entry.is_file():
                status = entry.stat()
                pieces.append(f"{entry.name}:{status.st_size}:{status.st_mtime_ns}")
    return " ".join(pieces)


def _subfolders(folder: Path) -> list[str]:
    return sorted(entry.path for entry in os.scandir(folder) if entry.is_dir())


def _read(path: Path, fingerprint: str) -> list[Rule] | None:
    try:
        stored = json.loads(path.read_text("utf-8"))
        if stored["fingerprint"] != fingerprint:
            return None
        return [_rule(data) for data in stored["rules"]]
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _rule(data: dict[str, Any]) -> Rule:
    fix = data["fix"]
    each = data["each"]
    return Rule(
        **{
            **data,
            "each": tuple(each) if each else None,
            "message": tuple(data["message"]),
            "fix": RuleFix(**{**fix, "title": tuple(fix["title"]), "delete": tuple(fix["delete"])}) if fix else None,
        }
    )


def _write(path: Path, fingerprint: str, rules: Iterable[Rule]) -> None:
    """Replaces the cache file as a whole; a cache that can't be written is no trouble."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {"fingerprint": fingerprint, "rules": [asdict(rule) for rule in rules]}
        temporary.write_text(json.dumps(content), "utf-8")
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)

"""Keeps the checked rules as one JSON file, since reading them anew costs more than everything else.

The cache holds data only: trees of expressions, never code.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from dslint.data import PACKAGE, data_folder
from dslint.kept import keep, read_kept
from dslint.rulebook.rule_text import RuleText

if TYPE_CHECKING:
    from dslint.rulebook.rule import Rule


def shipped_rules() -> list[Rule]:
    """The rules that come with dslint, from the cache where it is fresh.

    Raises:
        RuleError: a rule file has a mistake.
    """
    from dslint.rulebook.rule import Rule

    def rule(data: dict[str, Any]) -> Rule:
        each = tuple(data["each"]) if data["each"] else None
        mended = {
            "each": each,
            "message": tuple(data["message"]),
            "ways": tuple(data["ways"]),
        }
        return Rule(**{**data, **mended})

    return [rule(data) for data in _cached("rules")]


def shipped_rule_texts() -> list[RuleText]:
    """The texts of the same rules, in the same order.

    Raises:
        RuleError: a rule file has a mistake.
    """
    return [_text(entry) for entry in _cached("texts")]


def shipped_rule_text(label: str) -> RuleText | None:
    """The text of one rule, by its code or its name; None where there is none.

    Raises:
        RuleError: a rule file has a mistake.
    """
    wanted = (label.upper(), label)
    found = (entry for entry in _cached("texts") if entry["code"] == wanted[0] or entry["name"] == wanted[1])
    return next(map(_text, found), None)


def _text(entry: dict[str, Any]) -> RuleText:
    """A text is kept as a string of JSON, so that who wants one of hundreds doesn't pay for all."""
    return RuleText(entry["file"], json.loads(entry["text"]))


def _cached(part: str) -> list[dict[str, Any]]:
    """One of the two halves of the cache: what the judge needs ("rules"), and the rest ("texts")."""
    fingerprint = rules_fingerprint()
    kept = read_kept(part)
    if kept.get("fingerprint") == fingerprint and isinstance(kept.get("content"), list):
        content: list[dict[str, Any]] = kept["content"]
        return content
    from dataclasses import asdict
    from pathlib import Path

    from dslint.rulebook.loader import load_rules

    loaded = load_rules(Path(data_folder("rules")))
    halves = {
        "rules": [asdict(one.rule) for one in loaded],
        "texts": [
            {
                "code": one.rule.code,
                "name": one.rule.name,
                "file": one.text.file,
                "text": json.dumps(one.text.data, ensure_ascii=False),
            }
            for one in loaded
        ],
    }
    for name, half in halves.items():
        keep(name, {"fingerprint": fingerprint, "content": half})
    return halves[part]


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

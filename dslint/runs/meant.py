"""The value that a wrong one plainly stands for: `"4"` for 4, `"false"` for false, `true` for `{"enabled": true}`.

Only what can be read in one way counts: `"1M"` may be a million or 2**20, and stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from dslint.runs.keys import KeyTable, Schema
from dslint.runs.schema_check import fits

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_LARGEST_WHOLE = 2**53
"""Above this a float no longer holds every whole number."""
_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def meant_value(value: Any, node: Schema, keys: KeyTable) -> Any:
    """What a value that its key doesn't take plainly stands for; None where nothing is plain."""
    for candidate in _readings(value, node, keys):
        if fits(candidate, node, keys.schema):
            return candidate
    return None


def plain_number(value: Any) -> int | float | None:
    """The number in a text, or in a list of one; a whole one as an int. None where there is none."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, str):
        text = value.strip()
        if len(text) > 40 or not _NUMBER.fullmatch(text):
            return None
        value = int(text) if text.lstrip("+-").isdigit() else float(text)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and abs(value) <= _LARGEST_WHOLE and value == int(value):
        return int(value)
    return None if value in (float("inf"), float("-inf")) or value != value else value


def _readings(value: Any, node: Schema, keys: KeyTable) -> Iterator[Any]:
    """What a value may stand for, the likeliest first."""
    if isinstance(value, list) and len(value) == 1 and value[0] != "auto":
        yield value[0]
    number = plain_number(value)
    section = keys.section(node).get("properties", {})
    if number is not None:
        yield number
        if "stage" in section:
            yield {"stage": number}
    if number in (0, 1):
        yield bool(number)
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _WORDS:
            yield _WORDS[word]
        if word != "auto":
            yield word
    if isinstance(value, bool) and "enabled" in section:
        yield {"enabled": value}
    if isinstance(value, dict) and isinstance(value.get("enabled"), bool) and _is_switch(node, keys):
        yield value["enabled"]


def _is_switch(node: Schema, keys: KeyTable) -> bool:
    """Whether a key is on or off, rather than a number as which true would count too."""
    return fits(True, node, keys.schema) and not fits(3, node, keys.schema)

"""Plain data written as JSON, or as Hjson where the file is written so."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from dslint.fixes.edit import CannotEditError

DEEPEST_VALUE = 100  # levels; no config of DeepSpeed comes near

_NAME_WITHOUT_QUOTES = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class Style:
    """How a piece of a config is written.

    Attributes:
        newline: what ends a line.
        unit: what indents by one level.
        colon: what stands between a key and its value.
        comma: what stands between two entries on one line.
        quote: what stands around keys; empty for none.
        commas: whether entries on lines of their own are separated by commas.
        padding: what stands inside of the braces of an object on one line.
        expanded: whether the entries of an object stand on lines of their own.
        expanded_lists: whether the items of a list of plain values do, too.
    """

    newline: str = "\n"
    unit: str = "  "
    colon: str = ": "
    comma: str = ", "
    quote: str = '"'
    commas: bool = True
    padding: str = ""
    expanded: bool = True
    expanded_lists: bool = False


@dataclass(frozen=True)
class Verbatim:
    """A value that is written already."""

    text: str


def written_value(value: Any, style: Style, indent: str = "", level: int = 0) -> str:
    """The text of a value whose first line is indented by `indent`.

    Raises:
        CannotEditError: JSON has no way to say it.
    """
    if level > DEEPEST_VALUE:
        raise CannotEditError("the value is nested too deeply")
    if isinstance(value, Verbatim):
        return value.text
    if isinstance(value, dict):
        entries = [
            written_key(key, style) + style.colon + written_value(child, style, indent + style.unit, level + 1)
            for key, child in value.items()
        ]
        return _enclosed(entries, "{}", style, indent)
    if isinstance(value, list | tuple):
        return _written_list(value, style, indent, level)
    return _written_scalar(value, style)


def written_key(name: object, style: Style) -> str:
    """A key as it stands before its colon.

    Raises:
        CannotEditError: it is no text.
    """
    if not isinstance(name, str):
        raise CannotEditError("a key of a config must be text")
    if not style.quote and _NAME_WITHOUT_QUOTES.fullmatch(name):
        return name
    return quoted(name, style.quote)


def quoted(text: str, quote: str) -> str:
    """A text in the quotes given; in double quotes where none are."""
    written = json.dumps(text, ensure_ascii=_needs_escapes(text))
    if quote != "'":
        return written
    return "'" + written[1:-1].replace('\\"', '"').replace("'", "\\'") + "'"


def _needs_escapes(text: str) -> bool:
    """Whether UTF-8 has no bytes for a part of the text."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def _written_list(items: Iterable[Any], style: Style, indent: str, level: int) -> str:
    plain = not any(isinstance(item, dict | list | tuple) for item in items)
    inner = replace(style, expanded=style.expanded and (style.expanded_lists or not plain), padding="")
    texts = [written_value(item, style, indent + style.unit, level + 1) for item in items]
    return _enclosed(texts, "[]", inner, indent)


def _enclosed(texts: list[str], brackets: str, style: Style, indent: str) -> str:
    opening, closing = brackets[0], brackets[1]
    if not texts:
        return brackets
    if not style.expanded:
        return opening + style.padding + style.comma.join(texts) + style.padding + closing
    line = style.newline + indent
    separator = ("," if style.commas else "") + line + style.unit
    return opening + line + style.unit + separator.join(texts) + line + closing


def _written_scalar(value: object, style: Style) -> str:
    if isinstance(value, str):
        return quoted(value, style.quote)
    if isinstance(value, float) and not math.isfinite(value):
        raise CannotEditError(f"JSON has no number {value}")
    if value is None or isinstance(value, bool | int | float):
        try:
            return json.dumps(value)
        except ValueError:  # Python writes no integers of thousands of digits
            raise CannotEditError("the number is too large to be written") from None
    raise CannotEditError(f"JSON has no way to write a {type(value).__name__}")

"""Writes plain data as YAML, so that PyYAML reads the same values back."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dslint.fixes.edit import CannotEditError

if TYPE_CHECKING:
    import yaml

_LOOKS_SPECIAL = re.compile(r"y|n|yes|no|on|off|true|false|null|none|~|[-+]?[0-9][0-9_.]*([eE][-+]?[0-9]+)?", re.I)
"""Words that some YAML reader or human takes for something else than text."""


def write_inline(value: Any, *, flow: bool = False, quote: str = "") -> str:
    """A value on one line; lists and mappings with brackets.

    Args:
        value: plain data.
        flow: whether it is to stand inside brackets, where more text needs quotes.
        quote: the quotes for all text, also where it needs none.

    Raises:
        CannotEditError: it is no plain data.
    """
    import yaml

    dumper = _dumper(quote)
    wrapped = [value] if flow else value
    try:
        text: str = yaml.dump(
            wrapped, Dumper=dumper, default_flow_style=True, width=sys.maxsize, allow_unicode=True, sort_keys=False
        )
    except (yaml.YAMLError, RecursionError):
        raise CannotEditError("the new value can't be written as YAML") from None
    text = text.removesuffix("\n...\n").removesuffix("\n")
    return text[1:-1] if flow else text


def needs_quotes(text: str) -> bool:
    """Whether a text can't stand plain."""
    return write_inline(text) != text


def write_block(value: Mapping[Any, Any], indent: str, step: str, quote: str = "") -> str:
    """A mapping as lines with this indentation, without the last line's end; lists in brackets.

    Args:
        value: a mapping that isn't empty.
        indent: the white space before its keys.
        step: what is added to it for each mapping inside.
        quote: the quotes for its own keys, also where they need none.
    """
    lines = []
    for key, inner in value.items():
        name = indent + write_inline(key, quote=quote) + ":"
        if isinstance(inner, Mapping) and inner:
            lines += [name, write_block(inner, indent + step, step)]
        else:
            lines.append(f"{name} {write_inline(inner)}")
    return "\n".join(lines)


def _dumper(quote: str) -> type[yaml.SafeDumper]:
    """PyYAML's dumper, with quotes around more text and without aliases."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: yaml.SafeDumper, data: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=_style(data, quote))

    Dumper.add_representer(str, text)
    return Dumper


def _style(text: str, quote: str) -> str | None:
    """The quotes that a text gets; None leaves it to PyYAML."""
    if any(character < " " or character in "\x7f\x85\u2028\u2029" for character in text):
        return '"'
    if quote:
        return quote
    return "'" if _LOOKS_SPECIAL.fullmatch(text) else None

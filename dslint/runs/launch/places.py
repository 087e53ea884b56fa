"""Where the words of a command are written out, so that a fix can change them; Unknown where they aren't."""

from __future__ import annotations

import re

from dslint.documents.source import Span
from dslint.runs.launch.launch import Launch, Option, UnknownOption
from dslint.runs.unknown import UNDECIDABLE, Unknown

Place = Span | Unknown


def option_place(launch: Launch, option: Option) -> Place:
    """An option with its value, where the command itself spells it."""
    return option.span if _is_spelled(_text(launch, option.span), "-") else UNDECIDABLE


def value_place(launch: Launch, option: Option) -> Place:
    """An option's value alone, where the command itself spells it, with or without quotes."""
    span, value = option.value_span, option.value
    if span is None or not isinstance(value, str) or not value:
        return UNDECIDABLE
    name, equals, behind = _text(launch, option.span).partition("=")
    if equals and " " not in name:
        span = Span(option.span.start + len(name.encode()) + 1, option.span.end)
    text = behind if equals and " " not in name else _text(launch, span)
    if text == value:
        return span
    is_quoted = text in (f"'{value}'", f'"{value}"')
    return Span(span.start + 1, span.end - 1) if is_quoted else UNDECIDABLE


def name_place(launch: Launch, word: Span, name: str) -> Place:
    """The name of an option at the beginning of a word."""
    span = Span(word.start, word.start + len(name.encode()))
    return span if span.end <= word.end and _text(launch, span) == name else UNDECIDABLE


def number_place(launch: Launch, directive: Span, number: int) -> Place:
    """The number at the end of an `#SBATCH` option: the 8 of `--gres=gpu:8`."""
    text = launch.source.data[directive.start : directive.end]
    found = re.search(rb"(?<![0-9])[0-9]+$", text)
    is_it = found is not None and int(found[0]) == number
    return Span(directive.end - len(found[0]), directive.end) if found is not None and is_it else UNDECIDABLE


def whole_place(launch: Launch, option: UnknownOption) -> Place:
    """An option that the launcher doesn't have, with what seems to be its value."""
    return option.whole if _is_spelled(_text(launch, option.whole), option.name) else UNDECIDABLE


def _is_spelled(text: str, beginning: str) -> bool:
    """Whether a text begins so, and no variable in it may hold further words: one in quotes is a single word."""
    without_single = re.sub(r'"\$(\w+|\{\w+\})"', "", text)
    return text.startswith(beginning) and "$" not in without_single and "`" not in without_single


def _text(launch: Launch, span: Span) -> str:
    """What stands at a span; nothing in a text that another command runs, where all words share one place."""
    return "" if launch.is_in_text else launch.source.data[span.start : span.end].decode("utf-8", "replace")

"""Takes a launcher's arguments apart as argparse does: its options, then the script, then the script's own."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dslint.documents.source import Span
from dslint.runs.launch.launch import Argument, Option, UnknownOption
from dslint.runs.launch.option_tables import OptionTable
from dslint.runs.unknown import UNDECIDABLE, Unknown

_NEGATIVE_NUMBER = re.compile(r"-\d+|-\d*\.\d+")


class Parsed:
    """What stood behind a launcher's name."""

    def __init__(self) -> None:
        self.options: dict[str, Option] = {}
        self.unknown_options: list[UnknownOption] = []
        self.incomplete = False
        self.script: Argument | None = None
        self.rest: tuple[Argument, ...] = ()


def parse_options(arguments: Sequence[Argument], table: OptionTable) -> Parsed:
    """Parses a launcher's arguments."""
    parsed = Parsed()
    index = 0
    while index < len(arguments):
        argument = arguments[index]
        text = argument.text
        if argument.many:
            parsed.incomplete = True
            index += 1
            continue
        if isinstance(text, Unknown):
            if argument.prefix.startswith("-") and "=" in argument.prefix:
                _put(parsed, table, argument, argument.prefix.partition("=")[0], UNDECIDABLE)
                index += 1
                continue
        elif text == "--":
            index += 1
            if index >= len(arguments):
                break
            argument = arguments[index]
        elif _looks_like_option(text):
            index = _option(parsed, table, arguments, index, text)
            continue
        parsed.script = argument
        parsed.rest = tuple(arguments[index + 1 :])
        break
    return parsed


def canonical_name(table: OptionTable, spelling: str) -> str | None:
    """The option that a spelling, perhaps shortened, means; None for none or several."""
    if spelling in table.names:
        return table.names[spelling]
    if not spelling.startswith("--") or len(spelling) < 3:
        return None
    matches = [name for name in table.names if name.startswith(spelling)]
    return table.names[matches[0]] if len(matches) == 1 else None


def _looks_like_option(text: str) -> bool:
    return len(text) > 1 and text[0] == "-" and " " not in text and not _NEGATIVE_NUMBER.fullmatch(text)


def _option(parsed: Parsed, table: OptionTable, arguments: Sequence[Argument], index: int, text: str) -> int:
    """Takes the option at an index, and gives the index behind it and its value."""
    argument = arguments[index]
    spelling, equals, value = text.partition("=")
    name = canonical_name(table, spelling)
    if name is None and not text.startswith("--") and text[:2] in table.names:  # -Hfile
        name, equals, value = table.names[text[:2]], "=", text[2:].removeprefix("=")
        if name in table.flags:
            equals = ""
    if name is None:
        has_value = not equals and _has_value_before_script(arguments, index)
        whole = _both(argument.span, arguments[index + 1].span) if has_value else argument.span
        parsed.unknown_options.append(UnknownOption(spelling, argument.span, whole))
        return index + (2 if has_value else 1)
    if name in table.flags:
        parsed.options[name] = Option(True, argument.span)
        return index + 1
    if equals:
        place = end_of(argument.span, value)
        parsed.options[name] = Option(value, argument.span, argument.overridable, argument.origin, place)
        return index + 1
    following = arguments[index + 1] if index + 1 < len(arguments) else None
    if following is None or (isinstance(following.text, str) and _looks_like_option(following.text)):
        parsed.options[name] = Option(UNDECIDABLE, argument.span)
        return index + 1
    span = _both(argument.span, following.span)
    parsed.options[name] = Option(following.text, span, following.overridable, following.origin, following.span)
    parsed.incomplete = parsed.incomplete or following.many
    return index + 2


def _put(parsed: Parsed, table: OptionTable, argument: Argument, spelling: str, value: Unknown) -> None:
    name = canonical_name(table, spelling)
    if name is None:
        parsed.unknown_options.append(UnknownOption(spelling, argument.span, argument.span))
    else:
        parsed.options[name] = Option(value, argument.span, False, argument.origin)


def end_of(span: Span, text: str) -> Span:
    """Where a text would stand that ends a word."""
    return Span(max(span.start, span.end - len(text.encode())), span.end)


def _both(one: Span, other: Span) -> Span:
    return Span(min(one.start, other.start), max(one.end, other.end))


def _has_value_before_script(arguments: Sequence[Argument], index: int) -> bool:
    """Whether what follows an unknown option is its value: no script itself, and a script comes later."""
    if index + 1 >= len(arguments):
        return False
    following = arguments[index + 1].text
    if isinstance(following, Unknown) or _looks_like_option(following) or following.endswith(".py"):
        return False
    return any(isinstance(later.text, str) and later.text.endswith(".py") for later in arguments[index + 2 :])

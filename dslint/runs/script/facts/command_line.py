"""What a script's parser makes of the words of its command line."""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from dslint.runs.script.arguments import HfParser, Option, Parser
from dslint.runs.script.events import Call
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import NOTHING, Class, Named, Table, Thing, Value

Words = Sequence["str | None"]
"""The words after the script; None for one that can't be told."""

STRANGE = frozenset(["prefix_chars", "fromfile_prefix_chars", "parents", "exit_on_error", "conflict_handler"])
"""Arguments of ArgumentParser that make it read words another way."""


@dataclass(frozen=True)
class Refusal:
    """Why a parser ends the run.

    Attributes:
        message: what it says.
        index: the word at which it stops; None for something missing.
        is_unknown: whether that word names an option that the parser doesn't have.
    """

    message: str
    index: int | None
    is_unknown: bool = False


def strict_parses(deeds: Deeds) -> Iterator[Call]:
    """The calls in which a parser surely reads the whole command line, and refuses what it doesn't know.

    They are made in every run, and by a parser of which all arguments are known.
    """
    if not deeds.is_complete or _changes_words(deeds):
        return
    for call in deeds.calls:
        is_bare = not call.positional and not call.keywords and call.is_complete
        is_sure = call.spot.is_called and not call.spot.guards
        is_strict = call.dotted in _STRICT and is_bare and is_sure
        if is_strict and _is_known(deeds, call.receiver) and not _is_tried(deeds, call):
            yield call


_STRICT = frozenset(["parse_args", "parse_args_into_dataclasses"])


def _changes_words(deeds: Deeds) -> bool:
    """Whether the script changes its own command line before anybody reads it."""
    is_set = any(
        isinstance(store.target, Named)
        and (store.target.name, store.name) in (("sys", "argv"), ("sys.argv", "[]"))
        for store in deeds.stores
    )
    return is_set or any(call.dotted.startswith("sys.argv.") for call in deeds.calls)


def _is_known(deeds: Deeds, parser: Value) -> bool:
    """Whether all arguments of a parser are known, and it reads them in the usual way."""
    if isinstance(parser, HfParser):
        return fields_of(parser) is not None
    if not isinstance(parser, Parser) or not parser.is_complete or "__class__" in parser.attributes:
        return False
    if not all(map(_is_plain, parser.options)):
        return False
    made = parser.call
    is_usual = isinstance(made, Call) and not STRANGE & set(made.keywords) and made.is_complete
    return is_usual and not any(_may_add(call, parser) for call in deeds.calls)


def _is_plain(option: Option) -> bool:
    """Whether an argument takes its words in a way that its declaration shows."""
    keywords = option.node.keywords if isinstance(option.node, ast.Call) else []
    return all(_is_plain_keyword(keyword) for keyword in keywords if keyword.arg in ("action", "nargs"))


def _is_plain_keyword(keyword: ast.keyword) -> bool:
    value = keyword.value
    if isinstance(value, ast.Attribute):
        return value.attr == "BooleanOptionalAction"
    is_rest = isinstance(value, ast.Constant) and value.value in (argparse.REMAINDER, argparse.PARSER)
    return isinstance(value, ast.Constant) and not is_rest


def _may_add(call: Call, parser: Parser) -> bool:
    """Whether a call hands the parser to code that may add arguments which nobody sees."""
    if call.name == "deepspeed.add_config_arguments":
        return False
    return any(value is parser for value in (*call.positional, *call.keywords.values()))


def _is_tried(deeds: Deeds, call: Call) -> bool:
    """Whether somebody catches the parser's SystemExit."""
    tree = deeds.script.owner(call.node).tree
    return tree is not None and any(
        isinstance(node, ast.Try) and any(call.node is inner for body in node.body for inner in ast.walk(body))
        for node in ast.walk(tree)
    )


def fields_of(parser: HfParser) -> dict[str, Value] | None:
    """The fields of all dataclasses that HfArgumentParser fills; None where they aren't all in sight."""
    fields: dict[str, Value] = {}
    for one in parser.classes:
        if not isinstance(one, Class) or set(one.bases) - {"object"}:
            return None
        fields.update(one.fields)
    return fields if not any(map(_has_more_names, fields.values())) else None


def _has_more_names(default: Value) -> bool:
    """Whether a field may have aliases, which its metadata tells."""
    if not isinstance(default, Thing) or default.call is None:
        return False
    metadata = default.call.keywords.get("metadata")
    if default.name.startswith("dataclasses."):
        is_clear = metadata is None or (isinstance(metadata, Table) and not metadata.open)
        return not is_clear or (isinstance(metadata, Table) and "aliases" in metadata.entries)
    return True


def knows(parser: Value, flag: str) -> bool:
    """Whether a parser of known arguments takes an option, also by the first letters of its name."""
    if isinstance(parser, HfParser):
        fields = fields_of(parser) or {}
        names = {f"--{spelling}" for name in fields for spelling in (name, name.replace("_", "-"))}
        names |= {f"--no_{name}" for name in fields} | {f"--no-{name.replace('_', '-')}" for name in fields}
        return flag in names or any(name.startswith(flag) for name in names)
    assert isinstance(parser, Parser)
    flags = {flag for option in parser.options for flag in option.flags} | {"--help", "-h"}
    return flag in flags or (flag.startswith("--") and any(name.startswith(flag) for name in flags))


def flags_of(parser: Value) -> list[str]:
    """The long options of a parser, as far as they are in sight."""
    if isinstance(parser, HfParser):
        return [f"--{name}" for name in fields_of(parser) or {}]
    options = parser.options if isinstance(parser, Parser) else []
    return [flag for option in options for flag in option.flags if flag.startswith("--")]


def refusal(parser: Value, words: Words) -> Refusal | None:
    """Why a parser of known arguments refuses these words; None if it may accept them."""
    if isinstance(parser, HfParser) or None in words:
        return _unknown_option(parser, words)
    assert isinstance(parser, Parser)
    texts = [word for word in words if word is not None]
    try:
        _stand_in(parser).parse_args(texts)
    except _RefusedError as refused:
        return _located(str(refused), texts)
    except (Exception, SystemExit):  # --help, or an argument that argparse itself can't have
        return None
    return None


def _unknown_option(parser: Value, words: Words) -> Refusal | None:
    """A word that is an option the parser doesn't have; the words that can't be told may be anything else."""
    takes_rest = isinstance(parser, Parser) and any(
        option.takes == argparse.REMAINDER for option in parser.options
    )
    if takes_rest or "--" in words:
        return None
    for index, word in enumerate(words):
        name = (word or "").partition("=")[0]
        if name.startswith("--") and " " not in name and not knows(parser, name):
            return Refusal(f"unrecognized arguments: {word}", index, is_unknown=True)
    return None


class _RefusedError(Exception):
    """What the stand-in of a parser has to say."""


class _StandIn(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _RefusedError(message)


def _stand_in(parser: Parser) -> _StandIn:
    """A parser that reads words as the script's does."""
    made = parser.call.keywords if isinstance(parser.call, Call) else {}
    stand_in = _StandIn(
        prog="script",
        add_help=made.get("add_help") is not False,
        allow_abbrev=made.get("allow_abbrev") is not False,
        conflict_handler="resolve",
    )
    for option in parser.options:
        _add(stand_in, option)
    return stand_in


_TYPES = {"int": int, "float": float}


def _add(stand_in: _StandIn, option: Option) -> None:
    settings: dict[str, Any] = {}
    if option.takes == 0:
        settings["action"] = "store_true"
    else:
        settings["type"] = _TYPES.get(option.convert, str)
        settings["nargs"] = None if option.takes == 1 else option.takes
        choices = _choices(option)
        if choices is not None:
            settings["choices"] = choices
    if option.flags:
        is_conditional = option.default is not NOTHING
        stand_in.add_argument(*option.flags, dest=option.destination, required=not is_conditional, **settings)
    else:
        stand_in.add_argument(option.destination, **settings)


def _choices(option: Option) -> list[Any] | None:
    """The values that an argument allows, where it is declared with a plain list of texts or numbers."""
    if not isinstance(option.node, ast.Call) or option.convert not in ("str", "int", "float"):
        return None
    for keyword in option.node.keywords:
        if keyword.arg == "choices":
            try:
                values = ast.literal_eval(keyword.value)
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                return None
            return list(values) if isinstance(values, (list, tuple)) else None
    return None


def _located(message: str, words: Sequence[str]) -> Refusal:
    """The refusal, with the word that argparse speaks of."""
    head, _, rest = message.partition(": ")
    if head == "unrecognized arguments":
        strange = rest.split(" ")[0]
        index = next((place for place, word in enumerate(words) if word.split(" ")[0] == strange), None)
        return Refusal(message, index, is_unknown=strange.startswith("-"))
    if head.startswith("argument "):
        flags = head.removeprefix("argument ").split("/")
        index = next((place for place, word in enumerate(words) if word.partition("=")[0] in flags), None)
        return Refusal(message, index)
    return Refusal(message, None)

"""The arguments of a script: what its parser knows, and the values that a launch command gives them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dslint.runs.script.events import Call
from dslint.runs.script.known_apis import kind_of, kind_of_instance
from dslint.runs.script.values import NOTHING, Class, Named, PathText, Thing, Value, is_known

if TYPE_CHECKING:
    from dslint.runs.script.calls import Calls

Words = Sequence["str | None"]
"""The words after the script; None for one that can't be told."""


@dataclass(frozen=True)
class Option:
    """One argument that a parser knows.

    Attributes:
        destination: its name in the namespace.
        flags: `--lr`, `-l`; empty for a positional argument.
        takes: how many words follow: 0, 1, "?", "*", "+", or a number.
        default: its value where nobody gives it; NOTHING where it must be given.
        constant: its value where it is given without a word.
        convert: "int", "float", "str", "bool" or "" (nobody knows).
        node: where it is declared.
    """

    destination: str
    flags: tuple[str, ...]
    takes: Any
    default: Value
    constant: Value
    convert: str
    node: ast.AST | None


@dataclass(eq=False, repr=False)
class Parser(Thing):
    """An argparse parser.

    Attributes:
        options: what it knows so far.
        is_complete: whether these are all.
        call: the call that made it.
    """

    options: list[Option] = field(default_factory=list)
    is_complete: bool = True

    def add(self, call: Call) -> None:
        """`add_argument`."""
        flags = tuple(value for value in call.positional if isinstance(value, str))
        destination = call.keywords.get("dest") or (_destination(flags) if flags else None)
        if not call.is_complete or not flags or not isinstance(destination, str):
            self.is_complete = False
            return
        action = call.keywords.get("action")
        constant, takes = _action(action, call.keywords.get("nargs"))
        default = call.keywords.get("default", _default_of(action))
        if call.keywords.get("required") is True or (not flags[0].startswith("-") and takes not in ("?", "*")):
            default = NOTHING
        convert = call.keywords.get("type")
        name = convert.name if isinstance(convert, Named) else "str" if convert is None else ""
        dashed = tuple(flag for flag in flags if flag.startswith("-"))
        if isinstance(action, Named):  # argparse.BooleanOptionalAction and classes of one's own
            dashed += tuple("--no-" + flag[2:] for flag in dashed if flag.startswith("--"))
            constant, takes = Thing("argument", destination), 0
        self.options.append(Option(destination, dashed, takes, default, constant, name, call.node))

    def add_deepspeed_options(self, call: Call) -> None:
        """deepspeed/__init__.py, _add_core_arguments."""
        for name, takes, default in (
            ("deepspeed", 0, False),
            ("deepspeed_config", 1, None),
            ("deepscale", 0, False),
            ("deepscale_config", 1, None),
        ):
            convert = "str" if takes else ""
            self.options.append(Option(name, (f"--{name}",), takes, default, True, convert, call.node))

    def knows(self, flag: str) -> bool | None:
        """Whether it accepts an option of this name; None where nobody knows."""
        if any(flag in option.flags for option in self.options):
            return True
        return False if self.is_complete else None


@dataclass(eq=False, repr=False)
class HfParser(Thing):
    """Transformers' HfArgumentParser, or a relative.

    Attributes:
        classes: the dataclasses it fills: Named or Class.
    """

    classes: tuple[Value, ...] = ()


def parser_made_by(call: Call) -> Thing | None:
    """The parser that a call makes, if it does."""
    if call.dotted in ("argparse.ArgumentParser", "configargparse.ArgumentParser", "configargparse.ArgParser"):
        parser = Parser("parser", call.dotted, call.node)
        parser.is_complete = call.is_complete and "parents" not in call.keywords and call.dotted[0] == "a"
        return parser
    if kind_of(call.dotted) == "hf_parser":
        given = call.argument(0, "dataclass_types")
        classes = tuple(given) if isinstance(given, (tuple, list)) else (given,)
        return HfParser("hf_parser", call.dotted, call.node, classes=classes)
    return None


def parser_method(reading: Calls, call: Call) -> Value:
    """What a parser's method gives."""
    parser = call.receiver
    if isinstance(parser, HfParser):
        return _parse_dataclasses(reading, parser, call)
    if call.dotted == "add_argument":
        parser.add(call)
        return None
    if call.dotted in ("add_argument_group", "add_mutually_exclusive_group"):
        return parser
    if call.dotted in ("add_subparsers", "set_defaults"):
        parser.is_complete = False
    if call.dotted in ("parse_args", "parse_known_args"):
        args = _parse(reading, parser, call)
        return args if call.dotted == "parse_args" else (args, Thing("result", "rest", call.node))
    return Thing("result", call.name, call.node, (parser,))


def _destination(flags: Sequence[str]) -> str:
    long = next((flag for flag in flags if flag.startswith("--")), flags[0])
    return long.lstrip("-").replace("-", "_")


def _action(action: Value, nargs: Value) -> tuple[Value, Any]:
    """The constant and the number of words of an action."""
    if action == "store_true":
        return True, 0
    if action == "store_false":
        return False, 0
    if action in ("count", "store_const", "append_const", "help", "version"):
        return Thing("argument", "constant"), 0
    return None, 1 if nargs is None else nargs if is_known(nargs) else "*"


def _default_of(action: Value) -> Value:
    return {"store_true": False, "store_false": True}.get(action) if isinstance(action, str) else None


def _parse(reading: Calls, parser: Parser, call: Call) -> Thing:
    args = Thing("args", "parse_args", call.node, (parser,))
    args.attributes["__parser__"] = parser
    words = _words(call, reading.arguments)
    given = None if words is None else scan(words, parser.options)
    for option in parser.options:
        args.attributes[option.destination] = _value(option, given)
    return args


def _words(call: Call, given: Words | None) -> Words | None:
    """The words that are parsed: those of the command, or those that the script itself gives."""
    own = call.argument(0, "args")
    if own is None or _is_command_line(own):
        return given
    if isinstance(own, list) and all(isinstance(word, str) for word in own):
        return own
    return None


def _is_command_line(value: Value) -> bool:
    """Whether a value is `sys.argv[1:]`."""
    return (
        isinstance(value, Thing)
        and value.name == "[:]"
        and isinstance(value.inputs[0], Named)
        and value.inputs[0].name == "sys.argv"
    )


def _value(option: Option, given: dict[str, Value] | None) -> Value:
    if given is not None and option.destination in given:
        return given[option.destination]
    unknown = Thing("argument", option.destination, option.node)
    if option.default is not NOTHING:
        unknown.attributes["default"] = option.default
    if given is None or "*" in given or option.default is NOTHING:
        return unknown
    return option.default


def scan(words: Words, options: Sequence[Option]) -> dict[str, Value]:
    """The values that a command line gives, by destination; "*" is there where more may be given."""
    flags = {flag: option for option in options for flag in option.flags}
    given: dict[str, Value] = {}
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if word is None:
            given["*"] = None
            continue
        name, has_value, value = word.partition("=")
        option = flags.get(name) or _abbreviated(name, flags)
        if option is None:
            continue
        following: list[str | None] = [value] if has_value else []
        while not has_value and index < len(words) and len(following) < _most(option.takes):
            following_word = words[index]
            if following_word is not None and following_word.startswith("--"):
                break
            following.append(following_word)
            index += 1
        given[option.destination] = _converted(option, following)
    return given


def _abbreviated(name: str, flags: dict[str, Option]) -> Option | None:
    if not name.startswith("--") or len(name) < 4:
        return None
    found = {id(option): option for flag, option in flags.items() if flag.startswith(name)}
    return next(iter(found.values())) if len(found) == 1 else None


def _most(takes: Any) -> int:
    if isinstance(takes, int):
        return takes
    return 1 if takes == "?" else 10_000


def _converted(option: Option, words: Sequence[str | None]) -> Value:
    if not words:
        return option.constant
    values = [_one(option.convert, word, option) for word in words]
    return values[0] if option.takes in (0, 1, "?") else values


def _one(convert: str, word: str | None, option: Option) -> Value:
    if word is None:
        return Thing("argument", option.destination, option.node)
    try:
        if convert in ("int", "float"):
            return int(word) if convert == "int" else float(word)
    except ValueError:
        return Thing("argument", option.destination, option.node)
    if convert in ("pathlib.Path", "Path"):
        return PathText(word)
    return word if convert == "str" else Thing("argument", option.destination, option.node)


def _guess(word: str) -> Value:
    """A word as HfArgumentParser's field types convert it, as far as its look tells."""
    if word.lower() in ("true", "yes"):
        return True
    if word.lower() in ("false", "no"):
        return False
    for convert in (int, float):
        try:
            return convert(word)
        except ValueError:
            continue
    return word


# --- HfArgumentParser ---


def _parse_dataclasses(reading: Calls, parser: HfParser, call: Call) -> Value:
    if not call.dotted.startswith("parse_"):
        return Thing("result", call.name, call.node, (parser,))
    words = _words(call, reading.arguments) if call.dotted in _FROM_COMMAND_LINE else None
    given = None if words is None else _scan_freely(words)
    made = [_filled(one, given, call) for one in parser.classes]
    is_open = given is None or "*" in given or "config" in given
    for thing in made:
        thing.attributes["__parser__"] = parser
        if is_open:
            thing.attributes["*"] = None
    if call.dotted == "parse_args_and_config" and len(made) == 1:
        return made[0]
    return tuple(made)


_FROM_COMMAND_LINE = ("parse_args_into_dataclasses", "parse_args_and_config")


def _scan_freely(words: Words) -> dict[str, Value]:
    """The values of all `--name value` pairs, whatever the fields are; "*" where more may be given."""
    given: dict[str, Value] = {}
    name: str | None = None
    values: list[Value] = []

    def finish() -> None:
        if name is not None:
            given[name.replace("-", "_")] = values[0] if len(values) == 1 else list(values) if values else True

    for word in words:
        if word is None:
            values.append(Thing("argument", name or "?"))
            given.setdefault("*", None) if name is None else None
        elif word.startswith("--"):
            finish()
            name, has_value, value = word[2:].partition("=")
            values = [_guess(value)] if has_value else []
        else:
            values.append(_guess(word))
    finish()
    if len(words) == 1 and isinstance(words[0], str) and words[0].endswith((".json", ".yaml", ".yml")):
        given["*"] = None
    return given


def _filled(one: Value, given: dict[str, Value] | None, call: Call) -> Thing:
    """An object of a dataclass with the values of the command line."""
    if isinstance(one, Class):
        kind = kind_of_instance(one.bases)
        made = Thing("args" if kind == "instance" else kind, one.node.name, call.node)
        made.attributes["__class__"] = one
        for name, default in one.fields.items():
            value = field_default(default)
            unknown = Thing("argument", name, call.node)
            if value is not NOTHING:
                unknown.attributes["default"] = value
            made.attributes[name] = unknown if given is None or "*" in given or value is NOTHING else value
    else:
        dotted = one.name if isinstance(one, Named) else ""
        kind = kind_of(dotted)
        made = Thing(kind if kind == "training_args" else "args", dotted, call.node)
    for name, value in (given or {}).items():
        if name != "*" and (made.kind == "training_args" or name in made.attributes):
            made.attributes[name] = value
    return made


def field_default(default: Value) -> Value:
    """The default that a dataclass field's right side means; NOTHING where it has none."""
    if isinstance(default, Thing) and default.kind == "nothing":
        return NOTHING
    if isinstance(default, Thing) and default.name in ("dataclasses.field", "field") and default.call is not None:
        return default.call.keywords.get(
            "default", NOTHING if "default_factory" not in default.call.keywords else default
        )
    return default

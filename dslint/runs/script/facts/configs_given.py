"""Facts about how deepspeed.initialize gets its config: by an argument, by the script's own arguments, or not."""

from __future__ import annotations

from typing import Any

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.arguments import Parser
from dslint.runs.script.config_use import node_of
from dslint.runs.script.events import Call
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.here import Here
from dslint.runs.script.items import item, text_at
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import PathText, Table, Thing, Value
from dslint.runs.unknown import UNDECIDABLE

_ARGUMENT = (10, "config")
_OLD_ARGUMENT = (12, "config_params")


def configs_given_twice(facts: Facts) -> tuple[Item, ...]:
    """Calls of initialize with a config beside arguments that hold another: `given` is the latter's path."""
    deeds = deeds_of(facts)
    found = []
    for call in _initializations(deeds):
        by_arguments = _of_arguments(call)
        place = next((one for one in (_ARGUMENT, _OLD_ARGUMENT) if _is_there(call.argument(*one))), None)
        if isinstance(by_arguments, str) and place is not None and not call.spot.guards:
            node = node_of(call, *place)
            is_keyword = any(keyword.value is node for keyword in call.node.keywords)
            fields = {
                "given": str(by_arguments),
                "by_keyword": text_at(deeds.script, node),
                "argument": Here(deeds, call.node).span(node) if is_keyword else UNDECIDABLE,
            }
            found.append(item(deeds.script, call, fields))
    return tuple(found)


def configs_missing(facts: Facts) -> tuple[Item, ...]:
    """Calls of initialize that surely get no config: `has_arguments` whether they get the script's arguments."""
    deeds = deeds_of(facts)
    found = []
    for call in _initializations(deeds):
        is_given = any(call.argument(*one) is not None for one in (_ARGUMENT, _OLD_ARGUMENT))
        if is_given or not call.is_complete:
            continue
        arguments = call.argument(0, "args")
        if arguments is None or _hold_no_config(arguments, deeds):
            found.append(item(deeds.script, call, {"has_arguments": arguments is not None}))
    return tuple(found)


def _initializations(deeds: Deeds) -> list[Call]:
    return [call for call in deeds.calls if call.name == "deepspeed.initialize"]


def _of_arguments(call: Call) -> Value:
    """The config in the script's arguments; None where there is none, or nobody knows."""
    arguments = call.argument(0, "args")
    return arguments.attributes.get("deepspeed_config") if isinstance(arguments, Thing) else None


def _is_there(value: Value) -> bool:
    """Whether a value is surely not None."""
    return isinstance(value, (Table, PathText)) or (isinstance(value, str) and bool(value))


def _hold_no_config(arguments: Value, deeds: Deeds) -> bool:
    """Whether what a parser gave surely has no DeepSpeed config, and nothing sets one later."""
    if not isinstance(arguments, Thing) or arguments.kind != "args":
        return False
    parser: Any = arguments.attributes.get("__parser__")
    if not isinstance(parser, Parser) or not parser.is_complete or _is_changed(arguments, deeds):
        return False
    names = ("deepspeed_config", "deepscale_config")
    return all(arguments.attributes.get(name) is None for name in names)


def _is_changed(arguments: Thing, deeds: Deeds) -> bool:
    """Whether something may set attributes of the arguments by a name that can't be followed."""
    return any(
        call.dotted in ("setattr", "vars", "update", "__setattr__")
        and any(part is arguments for part in (call.receiver, *call.positional))
        for call in deeds.calls
    )

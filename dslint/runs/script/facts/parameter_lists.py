"""Facts about the parameters that deepspeed.initialize is told to train."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.gathering import belongs_to
from dslint.runs.script.facts.here import Here, is_path
from dslint.runs.script.items import item
from dslint.runs.script.values import Thing, Value
from dslint.runs.unknown import UNDECIDABLE, Unknown

_SINGLE = ("weight", "bias")


def parameters_listed_twice(facts: Facts) -> tuple[Item, ...]:
    """Calls of initialize whose `model_parameters` surely name one parameter twice."""
    deeds = deeds_of(facts)
    return tuple(
        item(deeds.script, call, {"whole": _whole(Here(deeds, call.node), call.argument(3, "model_parameters"))})
        for call in deeds.calls
        if call.name == "deepspeed.initialize" and _has_twice(call.argument(3, "model_parameters"))
    )


def _has_twice(value: Value) -> bool:
    parts = list(_parts(value))
    return any(_covers(one, other) for i, one in enumerate(parts) for j, other in enumerate(parts) if i != j)


def _whole(here: Here, value: Value) -> str | Unknown:
    """The parameters of the module that has all those which the list names."""
    parts = list(_parts(value))
    for one in parts:
        if all(other is one or _covers(one, other) for other in parts) and isinstance(one.node, ast.Call):
            func = one.node.func
            is_near = here.function(one.node) is here.function() and isinstance(func, ast.Attribute)
            return here.code(one.node) if is_near and is_path(func) else UNDECIDABLE
    return UNDECIDABLE


def _parts(value: Value, depth: int = 0) -> Iterator[Thing]:
    """The pieces of a flat list of parameters; only those that are surely in it."""
    if depth > 8:
        return
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _parts(part, depth + 1)
    elif isinstance(value, Thing):
        is_sum = value.kind == "operation" and value.name == "+"
        is_list = value.name in ("list", "tuple", "itertools.chain") and bool(value.inputs)
        if is_sum or is_list or value.kind == "starred":
            yield from (piece for part in value.inputs for piece in _parts(part, depth + 1))
        else:
            yield value


def _covers(whole: Thing, other: Thing) -> bool:
    """Whether `whole` is all parameters of a module, and `other` some of them."""
    call = whole.call
    if call is None or call.dotted != "parameters" or call.receiver is None or call.positional or call.keywords:
        return False
    if other.call is not None and other.call.dotted == "parameters" and not other.call.positional:
        return belongs_to(other.call.receiver, call.receiver)
    is_single = other.kind == "attribute" and other.name in _SINGLE and bool(other.inputs)
    return is_single and belongs_to(other.inputs[0], call.receiver)

"""Learning-rate schedulers beside an engine: stepped twice, or built on another optimizer."""

from __future__ import annotations

import ast
from typing import Any

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.config_use import node_of
from dslint.runs.script.events import Call, Spot
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.engine_use import (
    calls_on,
    each_once,
    engines,
    in_same_loop,
    initialize_of,
    is_absent,
    is_optimizer,
    is_reached,
    shared_loops,
)
from dslint.runs.script.facts.here import Here
from dslint.runs.script.items import item
from dslint.runs.script.values import Function, Thing, Value, origins
from dslint.runs.unknown import UNDECIDABLE, Unknown


def scheduler_steps(facts: Facts) -> tuple[Item, ...]:
    """`.step()` on the engine's own scheduler beside engine.step, which steps it already, or in a loop around it.

    `advice` says what to do with the call.
    """
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        given = initialize_of(engine).argument(6, "lr_scheduler")
        steps = calls_on(facts, engine, "step")
        for call in each_once(deeds.calls):
            is_client = isinstance(given, Thing) and given.kind == "scheduler" and call.receiver is given
            is_own = call.receiver is engine.attributes["lr_scheduler"]
            if call.dotted != "step" or not (is_client or is_own):
                continue
            beside = next((one for one in steps if in_same_loop(one.spot, call.spot)), None)
            inside = next((one for one in steps if _is_around(call.spot, one.spot)), None)
            advice = "delete the call" if beside is not None else PER_EPOCH
            beside = beside or inside
            if beside is not None and is_reached(call.spot, beside.spot):
                mended = _stepped_once(Here(deeds, call.node), advice, initialize_of(engine), is_client)
                fields = {"is_given": _is_scheduler(given), "advice": advice, **mended}
                found.append(item(deeds.script, call, fields, ((beside.node, "steps the scheduler too"),)))
    return tuple(found)


def _stepped_once(here: Here, advice: str, made: Call, is_client: bool) -> dict[str, Any]:
    """What to take out, so that one of the two steps the scheduler: the call, or the engine's argument.

    Without that argument initialize returns no scheduler, so that the call has to speak of the script's own.
    """
    if advice != PER_EPOCH:
        is_plain = here.is_statement()
        return {"extra": here.span(here.node) if is_plain else UNDECIDABLE, "receiver": None, "scheduler": None}
    given, func = node_of(made, 6, "lr_scheduler"), here.node.func if isinstance(here.node, ast.Call) else None
    is_keyword = any(keyword.value is given for keyword in made.node.keywords)
    is_near = isinstance(given, ast.Name) and here.function(given) is here.function()
    is_only = isinstance(func, ast.Attribute) and here.uses(here.code(func.value)) == 1
    if not is_keyword or not isinstance(func, ast.Attribute) or not (is_client or (is_near and is_only)):
        return {"extra": UNDECIDABLE, "receiver": UNDECIDABLE, "scheduler": UNDECIDABLE}
    return {
        "extra": here.span(given),
        "receiver": None if is_client else here.span(func.value),
        "scheduler": None if is_client else here.code(given),
    }


PER_EPOCH = "delete the call, or leave a scheduler that counts epochs out of deepspeed.initialize"


def _is_around(outer: Spot, inner: Spot) -> bool:
    """Whether a place stands in a loop around another place's loop: once an epoch, not once a step."""
    return 0 < len(outer.loops) < len(inner.loops) and shared_loops(outer, inner) == len(outer.loops)


def _is_scheduler(value: Value) -> bool:
    """Whether an argument is surely a scheduler, or a function that makes one."""
    if isinstance(value, Function):
        return True
    return isinstance(value, Thing) and value.kind == "scheduler" and isinstance(value.call, Call)


def orphan_schedulers(facts: Facts) -> tuple[Item, ...]:
    """Schedulers given to initialize that set the learning rate of an optimizer that it is not given."""
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        made = initialize_of(engine)
        scheduler = made.argument(6, "lr_scheduler")
        if (
            not isinstance(scheduler, Thing)
            or scheduler.kind != "scheduler"
            or not isinstance(scheduler.call, Call)
        ):
            continue
        own = _optimizer_of(scheduler.call)
        used = made.argument(2, "optimizer")
        if own is not None and made.is_complete and _is_another(used, own):
            related = ((made.node, "trains with another optimizer"),)
            fields = {
                "has_optimizer": not is_absent(used),
                **_as_function(Here(deeds, scheduler.call.node), made, own),
            }
            found.append(item(deeds.script, scheduler.call, fields, related))
    return tuple({one.span: one for one in found}.values())


def _as_function(here: Here, made: Call, own: Thing) -> dict[str, Any]:
    """Where initialize gets a scheduler, and a function instead that builds it on the optimizer it is given."""
    given, node = node_of(made, 6, "lr_scheduler"), here.node
    nothing = {"given": UNDECIDABLE, "function": UNDECIDABLE}
    if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Name):
        return nothing
    call = next((one for one in here.deeds.calls if one.node is node), None)
    rest = [here.code(one) for one in (*node.args[1:], *node.keywords)]
    names = {
        one.id for part in (*node.args[1:], *node.keywords) for one in ast.walk(part) if isinstance(one, ast.Name)
    }
    is_near = here.function(made.node) is here.function() and given is not made.node
    if call is None or call.positional[0] is not own or "optimizer" in names or not is_near:
        return nothing
    function = f"lambda optimizer: {here.code(node.func)}({', '.join(['optimizer', *rest])})"
    return {"given": here.span(given), "function": function}


def _optimizer_of(call: Call) -> Thing | None:
    """The one optimizer that a scheduler was built on."""
    values = [*call.positional, *call.keywords.values()]
    found = [value for value in values if isinstance(value, Thing) and value.kind == "optimizer"]
    return found[0] if len(found) == 1 and is_optimizer(found[0]) else None


def _is_another(used: Value, own: Thing) -> bool:
    if is_absent(used) or isinstance(used, Function):
        return True
    return is_optimizer(used) and all(thing is not own for thing in origins(used))


def schedulers_on_returned(facts: Facts) -> tuple[Item, ...]:
    """Schedulers of torch that are built on the optimizer which initialize returned."""
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        for call in each_once(deeds.calls):
            is_scheduler = call.receiver is None and call.dotted.startswith("torch.optim.lr_scheduler.")
            first = call.argument(0, "optimizer")
            is_returned = first is engine.attributes["optimizer"]
            if is_scheduler and is_returned and is_reached(call.spot, initialize_of(engine).spot):
                here = Here(deeds, call.node)
                name = here.name_of(engine)
                fields = {
                    "type": call.dotted.rpartition(".")[2],
                    "optimizer": here.span(node_of(call, 0, "optimizer")),
                    "basic": UNDECIDABLE if isinstance(name, Unknown) else f"{name}.basic_optimizer",
                }
                found.append(item(deeds.script, call, fields))
    return tuple(found)

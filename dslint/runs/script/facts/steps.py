"""How a raw loop takes its steps: past the engine, behind a condition, never; and its gradients in between."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from dslint.documents.source import Span
from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.events import Call, Guard
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.engine_use import (
    calls_on,
    each_once,
    engines,
    has_unknown_calls,
    in_same_loop,
    initialize_of,
    is_reached,
)
from dslint.runs.script.facts.here import Here
from dslint.runs.script.items import item, plain, text_at
from dslint.runs.script.values import Thing, Value, origins
from dslint.runs.unknown import UNDECIDABLE, Unknown

# --- past the engine ---


def client_steps(facts: Facts) -> tuple[Item, ...]:
    """`.step()` on the very optimizer that was given to initialize, where nothing steps the engine."""
    return tuple(_optimizer_steps(facts, lambda engine: initialize_of(engine).argument(2, "optimizer")))


def returned_steps(facts: Facts) -> tuple[Item, ...]:
    """`.step()` on the optimizer that initialize returned, where nothing steps the engine."""
    return tuple(_optimizer_steps(facts, lambda engine: engine.attributes["optimizer"]))


def _optimizer_steps(facts: Facts, optimizer_of: Any) -> Iterator[Item]:
    deeds = deeds_of(facts)
    for engine in engines(facts):
        optimizer = optimizer_of(engine)
        backwards = calls_on(facts, engine, "backward")
        if not isinstance(optimizer, Thing) or not backwards:
            continue
        if calls_on(facts, engine, "step", "set_gradient_accumulation_boundary"):
            continue
        if _escapes(facts, engine) or has_unknown_calls(facts, "step") or _hands_on_a_step(facts):
            continue
        for call in each_once(deeds.calls):
            is_step = call.dotted == "step" and call.receiver is optimizer
            if is_step and any(is_reached(call.spot, one.spot) for one in backwards):
                made = initialize_of(engine)
                fields = {
                    "has_scheduler": made.has(6, "lr_scheduler"),
                    "by_engine": _by_engine(Here(deeds, call.node), call, engine, backwards),
                }
                yield item(deeds.script, call, fields, ((made.node, "the engine is made here"),))


def _by_engine(here: Here, call: Call, engine: Thing, backwards: list[Call]) -> str | Unknown:
    """The engine's step instead of this one; Unknown unless it comes once with each backward pass."""
    name = here.name_of(engine)
    is_beside = [in_same_loop(one.spot, call.spot) and one.spot.guards == call.spot.guards for one in backwards]
    is_alone = here.is_statement() and not call.positional and not call.keywords and call.is_complete
    if (
        isinstance(name, Unknown)
        or not is_alone
        or is_beside.count(True) != 1
        or _has_scheduler_steps(here.deeds.calls)
    ):
        return UNDECIDABLE
    return f"{name}.step()"


def _has_scheduler_steps(calls: Iterable[Call]) -> bool:
    """Whether the script steps a scheduler, which engine.step might step once more."""
    return any(
        call.dotted == "step" and isinstance(call.receiver, Thing) and "sched" in call.receiver.kind
        for call in calls
    )


def unstepped_backwards(facts: Facts) -> tuple[Item, ...]:
    """engine.backward in a script in which nothing takes a step."""
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        is_stepped = any("step" in call.dotted.rpartition(".")[2] for call in deeds.calls)
        if is_stepped or _escapes(facts, engine) or _hands_on_a_step(facts):
            continue
        passes = calls_on(facts, engine, "backward")
        once = list(each_once(passes))
        found += [
            item(deeds.script, call, {"step": _step_after(Here(deeds, call.node), call, engine, once)})
            for call in once
            if call.spot.loops
        ][:1]
    return tuple(found)


def _step_after(here: Here, call: Call, engine: Thing, passes: list[Call]) -> str | Unknown:
    """The engine's step, to come after the only backward pass; Unknown where the script divides or counts."""
    contexts = [one.name.startswith("engine.") for one in call.spot.contexts if isinstance(one, Thing)]
    is_divided = any(one.kind == "operation" and one.name == "/" for one in origins(call.argument(0, "loss"), 12))
    asks = any(one.dotted == "is_gradient_accumulation_boundary" for one in here.deeds.calls)
    name = here.name_of(engine)
    if isinstance(name, Unknown) or len(passes) != 1 or any(contexts) or is_divided or asks or not _is_line(here):
        return UNDECIDABLE
    return f"{name}.step()"


def _is_line(here: Here) -> bool:
    """Whether a call is a statement, or what one assigns."""
    statement = here.statement()
    return isinstance(statement, (ast.Expr, ast.Assign)) and statement.value is here.node


def _hands_on_a_step(facts: Facts) -> bool:
    """Whether the script takes a method called `step` without calling it at once, to call it somewhere else."""
    tree = deeds_of(facts).script.tree
    nodes = [] if tree is None else list(ast.walk(tree))
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    return any(
        (isinstance(node, ast.Attribute) and node.attr == "step" and id(node) not in called)
        or (isinstance(node, ast.Constant) and node.value == "step")
        for node in nodes
    )


_HARMLESS = ("print", "len", "isinstance", "type", "id", "str", "hasattr", "getattr", "repr", "enumerate", "range")


def _escapes(facts: Facts, engine: Thing) -> bool:
    """Whether something outside this file gets hold of the engine, and may step it."""
    for call in deeds_of(facts).calls:
        given = (*call.positional, *call.keywords.values())
        if call.dotted in _HARMLESS and call.receiver is None:
            continue
        if any(value is engine or _holds(value, engine) for value in given):
            return True
    return any(
        store.value is engine and isinstance(store.target, Thing) and store.target.kind in ("result", "parameter")
        for store in deeds_of(facts).stores
    )


def _holds(value: Value, engine: Thing, depth: int = 4) -> bool:
    """Whether a value contains the engine: a tuple, or an object that has it."""
    if value is engine:
        return True
    if not depth:
        return False
    if isinstance(value, (tuple, list)):
        return any(_holds(part, engine, depth - 1) for part in value)
    if isinstance(value, Thing) and value.kind in ("either", "instance", "callback", "starred"):
        return any(_holds(part, engine, depth - 1) for part in (*value.inputs, *value.attributes.values()))
    return False


# --- behind a condition ---


def gated_steps(facts: Facts) -> tuple[Item, ...]:
    """engine.step only every so many micro-batches, while engine.backward runs at each of them."""
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        if calls_on(facts, engine, "set_gradient_accumulation_boundary"):
            continue
        steps = calls_on(facts, engine, "step")
        for call in each_once(steps):
            backward = _backward_beside(facts, engine, call)
            guard = None if backward is None else _gate(call, backward)
            if guard is None or any(_is_beside(other, backward, guard) for other in steps if other is not call):
                continue
            every = _every(guard, facts)
            if every is not None and is_reached(call.spot, initialize_of(engine).spot):
                test = getattr(guard.node, "test", guard.node)
                fields = {
                    "every": every,
                    "condition": text_at(deeds.script, test),
                    "asks_engine": False,
                    "is_inside": Here(deeds, call.node).is_under(guard.node),
                    "skip": _skip(Here(deeds, call.node), guard.node),
                }
                if every == "boundary":
                    fields |= {"every": None, "asks_engine": True}
                found.append(item(deeds.script, call, fields, ((test, "only then"),)))
    return tuple(found)


def _skip(here: Here, guard: ast.AST) -> Span | Unknown | None:
    """An `if …: continue` right before a step that ends the loop's body; None for a guard of another form."""
    step, loop = here.statement(), next(here.above(guard), None)
    is_skip = (
        isinstance(guard, ast.If) and [type(one) for one in guard.body] == [ast.Continue] and not guard.orelse
    )
    if not is_skip or not isinstance(loop, (ast.For, ast.While)) or loop.body[-2:] != [guard, step]:
        return None
    return here.span(guard)


def _backward_beside(facts: Facts, engine: Thing, step: Call) -> Call | None:
    """The engine.backward of the same turn of the loop."""
    passes = calls_on(facts, engine, "backward")
    return next((one for one in passes if in_same_loop(one.spot, step.spot)), None)


def _gate(step: Call, backward: Call) -> Guard | None:
    """The one condition that stands around the step and not around the backward pass."""
    own = [guard for guard in step.spot.guards if guard not in backward.spot.guards]
    return own[0] if len(own) == 1 else None


def _is_beside(step: Call, backward: Call | None, guard: Guard) -> bool:
    """Whether another step is taken in the turns in which this one isn't."""
    return backward is not None and in_same_loop(step.spot, backward.spot) and guard not in step.spot.guards


def _every(guard: Guard, facts: Facts) -> Any:
    """In how many turns a condition holds once; "boundary" where it asks the engine; None for any other."""
    test, holds = guard.test, guard.holds
    while isinstance(test, Thing) and test.kind == "not":
        test, holds = test.inputs[0], not holds
    if not isinstance(test, Thing):
        return None
    if test.kind == "logic" and test.name == "or" and holds:  # … or the last batch
        found = [_every(Guard(part, True, guard.node), facts) for part in test.inputs]
        return next((one for one in found if one not in (None, "boundary")), None)
    if test.name == "engine.is_gradient_accumulation_boundary" and holds:
        return "boundary"
    if test.kind != "comparison" or len(test.inputs) != 2 or test.name not in ("==", "!="):
        return None
    left, right = test.inputs
    if (
        (test.name == "==") is not holds
        or not isinstance(left, Thing)
        or left.name != "%"
        or len(left.inputs) != 2
    ):
        return None
    counter, divisor = left.inputs
    if isinstance(right, Thing) and right.name not in ("-", "+"):
        return None
    if not any(thing.kind == "index" or thing.name == "counted" for thing in origins(counter, 20)):
        return None
    if isinstance(divisor, Thing) and divisor.name == "engine.gradient_accumulation_steps":
        return facts.value("accumulation")
    return plain(divisor)


# --- gradients between the steps ---


def zeroed_gradients(facts: Facts) -> tuple[Item, ...]:
    """zero_grad in each turn of the loop around engine.backward."""
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        owners = (engine, engine.attributes["optimizer"])
        passes = calls_on(facts, engine, "backward")
        steps = calls_on(facts, engine, "step")
        for call in each_once(deeds.calls):
            if call.dotted != "zero_grad" or not any(call.receiver is owner for owner in owners):
                continue
            beside = [one for one in passes if in_same_loop(one.spot, call.spot)]
            if not beside or not steps or any(guard not in beside[0].spot.guards for guard in call.spot.guards):
                continue
            step = next((one for one in steps if in_same_loop(one.spot, call.spot)), None)
            fields = {
                "of_engine": call.receiver is engine,
                "between": step is not None and beside[-1].spot.order < call.spot.order < step.spot.order,
            }
            if is_reached(call.spot, initialize_of(engine).spot):
                found.append(item(deeds.script, call, fields))
    return tuple(found)


def no_sync_contexts(facts: Facts) -> tuple[Item, ...]:
    """engine.no_sync, and the engine.step calls inside of it."""
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        made = initialize_of(engine).spot
        for call in each_once(calls_on(facts, engine, "no_sync")):
            entered = [
                step
                for step in deeds.calls
                if any(value is call.result for value in step.spot.contexts) and is_reached(step.spot, made)
            ]
            if entered:
                found.append(item(deeds.script, call, {"has_step": _steps(entered, engine)}))
    return tuple(found)


def _steps(calls: list[Call], engine: Thing) -> bool:
    return any(call.receiver is engine and call.dotted == "step" for call in calls)

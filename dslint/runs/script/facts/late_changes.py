"""Changes to a model after it has become an engine's, which the optimizer's own copies don't see."""

from __future__ import annotations

from collections.abc import Iterator

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.events import Call, Spot, Store
from dslint.runs.script.facts.engine_use import (
    calls_on,
    comes_after,
    deeds_of,
    engines,
    initialize_of,
    is_reached,
    path_in_model,
)
from dslint.runs.script.items import item
from dslint.runs.script.values import Thing, Value

Path = tuple[str, ...]

# --- frozen and unfrozen ---


def late_unfreezing(facts: Facts) -> tuple[Item, ...]:
    """Parameters that were frozen when initialize saw them and are unfrozen after it."""
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        made = initialize_of(engine).spot
        switches = [one for one in _switches(facts, engine) if one[2] is not None]
        frozen = [one for one in switches if one[2] is False and one[0].spot.order < made.order]
        for event, path, is_on in switches:
            if not is_on or event.spot.order < made.order or not is_reached(event.spot, made):
                continue
            before = next((one for one in frozen if _covers(event, path, one, made)), None)
            again = [one for one in switches if one[2] and before and before[0].spot.order < one[0].spot.order]
            was_undone = any(one[0].spot.order < made.order and _overlap(one[1], path) for one in again)
            is_stepped = any(comes_after(step.spot, event.spot) for step in calls_on(facts, engine, "step"))
            if before is not None and not was_undone and is_stepped:
                related = ((before[0].node, "frozen here, before initialize"),)
                found.append(item(deeds.script, event, {}, related))
    return tuple({one.span: one for one in found}.values())


def _switches(facts: Facts, engine: Thing) -> Iterator[tuple[Call | Store, Path, bool | None]]:
    """The places that set requires_grad of parts of an engine's model: to what, None where that can't be told."""
    for store in deeds_of(facts).stores:
        path = path_in_model(store.target, engine) if store.name == "requires_grad" else None
        if path is not None:
            yield store, path, store.value if isinstance(store.value, bool) else None
    for call in deeds_of(facts).calls:
        if call.dotted == "requires_grad_":
            path = path_in_model(call.receiver, engine)
            value = call.argument(0, "requires_grad") if call.has(0, "requires_grad") else True
            if path is not None:
                yield call, path, value if isinstance(value, bool) else None


def _covers(event: Call | Store, path: Path, frozen: tuple[Call | Store, Path, bool | None], made: Spot) -> bool:
    """Whether what is unfrozen surely has something that was frozen."""
    freezing, other, _ = frozen
    loops = [guard for guard in event.spot.guards if guard not in made.guards]
    is_whole = not [guard for guard in freezing.spot.guards if guard not in made.guards]
    if other[: len(path)] == path:
        return not any(_is_of_name(guard.test) for guard in loops)
    return path[: len(other)] == other and is_whole


def _is_of_name(test: Value) -> bool:
    """Whether a condition chooses among parameters."""
    return isinstance(test, Thing) and any(thing.kind in ("item", "element") for thing in _parts(test))


def _parts(value: Value, depth: int = 6) -> Iterator[Thing]:
    if isinstance(value, Thing) and depth:
        yield value
        for part in value.inputs:
            yield from _parts(part, depth - 1)


def _overlap(one: Path, other: Path) -> bool:
    return one[: len(other)] == other or other[: len(one)] == one


# --- written over ---

_WRITES = frozenset(
    ["copy_", "fill_", "mul_", "add_", "sub_", "div_", "clamp_", "clip_", "zero_", "normal_", "uniform_", "lerp_"]
)


def late_writes(facts: Facts) -> tuple[Item, ...]:
    """The one place after initialize that writes to parameters directly, before further steps."""
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        made = initialize_of(engine).spot
        writes = [one for one in _writes(facts, engine) if one.spot.order > made.order]
        for event in writes[:1] if len(writes) == 1 else ():
            steps = calls_on(facts, engine, "step")
            is_followed = any(comes_after(step.spot, event.spot) for step in steps)
            if is_followed and is_reached(event.spot, made):
                found.append(item(deeds.script, event, {}))
    return tuple(found)


def _writes(facts: Facts, engine: Thing) -> Iterator[Call | Store]:
    for call in deeds_of(facts).calls:
        written = (
            call.receiver if call.dotted in _WRITES else call.argument(0, "tensor") if _is_init(call) else None
        )
        if _is_parameter(written, engine):
            yield call
    for store in deeds_of(facts).stores:
        if store.name in ("data", "[]") and _is_parameter(store.target, engine):
            yield store


def _is_init(call: Call) -> bool:
    """Whether a call is one of torch.nn.init's that write."""
    return call.receiver is None and call.dotted.startswith("torch.nn.init.") and call.dotted.endswith("_")


def _is_parameter(value: Value, engine: Thing) -> bool:
    """Whether a value is a parameter of an engine's model (its weight, or an item of its parameters)."""
    if not isinstance(value, Thing) or path_in_model(value, engine) is None:
        return False
    if value.kind == "attribute" and value.name == "data":
        return _is_parameter(value.inputs[0], engine)
    if value.kind == "attribute":
        return value.name in ("weight", "bias")
    return value.kind in ("item", "element") and _goes_through_parameters(value)


def _goes_through_parameters(value: Thing) -> bool:
    return any(thing.name.rpartition(".")[2] in ("parameters", "named_parameters") for thing in _parts(value, 8))


def late_loads(facts: Facts) -> tuple[Item, ...]:
    """The one load_state_dict on an engine's model after initialize, before further steps."""
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        made = initialize_of(engine).spot
        loads = [
            call
            for call in deeds.calls
            if call.dotted == "load_state_dict"
            and call.receiver is not engine
            and call.spot.order > made.order
            and path_in_model(call.receiver, engine) is not None
        ]
        steps = calls_on(facts, engine, "step")
        for call in loads if len(loads) == 1 else ():
            if is_reached(call.spot, made) and any(comes_after(step.spot, call.spot) for step in steps):
                found.append(item(deeds.script, call, {}))
    return tuple(found)

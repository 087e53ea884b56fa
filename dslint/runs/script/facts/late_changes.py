"""Changes to a model after it has become an engine's, which the optimizer's own copies don't see."""

from __future__ import annotations

from collections.abc import Iterator

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.events import Call, Spot, Store
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.engine_use import (
    calls_on,
    comes_after,
    engines,
    initialize_of,
    is_reached,
    path_in_model,
)
from dslint.runs.script.items import item
from dslint.runs.script.values import Thing, Value

Path = tuple[str, ...]
"""The attributes that lead from a model to a part of it."""

Switch = tuple[Call | Store, Path, bool | None]
"""A place that sets requires_grad of a part: to what, None where that can't be told."""

# --- frozen and unfrozen ---


def late_unfreezing(facts: Facts) -> tuple[Item, ...]:
    """Parameters that were frozen when initialize saw them and are unfrozen after it."""
    found = []
    for engine in engines(facts):
        made = initialize_of(engine).spot
        switches = [one for one in _switches(facts, engine) if one[2] is not None]
        steps = calls_on(facts, engine, "step")
        for event, path, is_on in switches:
            if not is_on or event.spot.order < made.order or not is_reached(event.spot, made):
                continue
            before = _frozen_before(event, path, switches, made)
            if before is not None and any(comes_after(step.spot, event.spot) for step in steps):
                related = ((before.node, "frozen here, before initialize"),)
                found.append(item(deeds_of(facts).script, event, {}, related))
    return tuple({one.span: one for one in found}.values())


def _switches(facts: Facts, engine: Thing) -> Iterator[Switch]:
    """The places that set requires_grad of parts of an engine's model."""
    for store in deeds_of(facts).stores:
        path = path_in_model(store.target, engine) if store.name == "requires_grad" else None
        if path is not None:
            yield store, path, store.value if isinstance(store.value, bool) else None
    for call in deeds_of(facts).calls:
        path = path_in_model(call.receiver, engine) if call.dotted == "requires_grad_" else None
        if path is not None:
            value = call.argument(0, "requires_grad") if call.has(0, "requires_grad") else True
            yield call, path, value if isinstance(value, bool) else None


def _frozen_before(event: Call | Store, path: Path, switches: list[Switch], made: Spot) -> Call | Store | None:
    """The place before initialize that froze something which an event surely unfreezes."""
    early = [one for one in switches if one[0].spot.order < made.order]
    frozen = next((one for one in early if one[2] is False and _covers(event, path, one, made)), None)
    if frozen is None:
        return None
    later = [one for one in early if one[2] and one[0].spot.order > frozen[0].spot.order]
    return None if any(_overlap(one[1], path) for one in later) else frozen[0]


def _covers(event: Call | Store, path: Path, frozen: Switch, made: Spot) -> bool:
    """Whether what is unfrozen surely has something that was frozen."""
    freezing, other, _ = frozen
    own = [guard for guard in event.spot.guards if guard not in made.guards]
    is_whole = not [guard for guard in freezing.spot.guards if guard not in made.guards]
    if other[: len(path)] == path:
        return not any(_chooses(guard.test) for guard in own)
    return path[: len(other)] == other and is_whole


def _chooses(test: Value) -> bool:
    """Whether a condition chooses among parameters, by their names say."""
    return any(thing.kind in ("item", "element") for thing in _parts(test))


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
    """The one place after initialize that writes to parameters directly, before further steps.

    Two places may belong together: weights swapped in for an evaluation, and back.
    """
    found = []
    for engine in engines(facts):
        made = initialize_of(engine).spot
        writes = [one for one in _writes(facts, engine) if one.spot.order > made.order]
        if any(is_on is False for _, _, is_on in _switches(facts, engine)):
            continue  # frozen parameters have no copies in the optimizer
        steps = calls_on(facts, engine, "step")
        for event in writes if len(writes) == 1 else ():
            if is_reached(event.spot, made) and any(comes_after(step.spot, event.spot) for step in steps):
                found.append(item(deeds_of(facts).script, event, {}))
    return tuple(found)


def _writes(facts: Facts, engine: Thing) -> Iterator[Call | Store]:
    for call in deeds_of(facts).calls:
        if _is_parameter(_written_by(call), engine):
            yield call
    for store in deeds_of(facts).stores:
        if store.name in ("data", "[]") and _is_parameter(store.target, engine):
            yield store


def _written_by(call: Call) -> Value:
    """What a call writes to."""
    if call.dotted in _WRITES:
        return call.receiver
    is_init = call.receiver is None and call.dotted.startswith("torch.nn.init.") and call.dotted.endswith("_")
    return call.argument(0, "tensor") if is_init else None


def _is_parameter(value: Value, engine: Thing) -> bool:
    """Whether a value is a parameter of an engine's model (its weight, or an item of its parameters)."""
    if not isinstance(value, Thing) or path_in_model(value, engine) is None:
        return False
    if value.kind == "attribute" and value.name == "data":
        return _is_parameter(value.inputs[0], engine)
    if value.kind == "attribute":
        return value.name in ("weight", "bias")
    names = (thing.name.rpartition(".")[2] for thing in _parts(value, 8))
    return value.kind in ("item", "element") and any(name in ("parameters", "named_parameters") for name in names)


def late_loads(facts: Facts) -> tuple[Item, ...]:
    """The one load_state_dict on an engine's model after initialize, before further steps."""
    found = []
    for engine in engines(facts):
        made = initialize_of(engine).spot
        loads = [call for call in _loads(facts, engine) if call.spot.order > made.order]
        frozen = [path for _, path, is_on in _switches(facts, engine) if is_on is not True]
        steps = calls_on(facts, engine, "step")
        for call in loads if len(loads) == 1 else ():
            path = path_in_model(call.receiver, engine) or ()
            if any(path[: len(other)] == other for other in frozen):
                continue  # frozen parameters have no copies in the optimizer
            if is_reached(call.spot, made) and any(comes_after(step.spot, call.spot) for step in steps):
                found.append(item(deeds_of(facts).script, call, {}))
    return tuple(found)


def _loads(facts: Facts, engine: Thing) -> Iterator[Call]:
    for call in deeds_of(facts).calls:
        is_load = call.dotted == "load_state_dict" and call.receiver is not engine
        if is_load and path_in_model(call.receiver, engine) is not None:
            yield call

"""Whether an engine trains on in evaluation mode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.events import Call, Loop, Spot
from dslint.runs.script.facts.process_group import is_foreign
from dslint.runs.script.items import item
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Thing, Value


def left_on(facts: Facts) -> tuple[Item, ...]:
    """Calls of eval() after which the loop's next pass trains, and nothing in the loop calls train()."""
    deeds = facts.run.script
    assert deeds is not None
    return tuple(_items(deeds))


def _items(deeds: Deeds) -> Iterator[Item]:
    for call in deeds.calls:
        engine = _engine_of(call.receiver) if call.dotted == "eval" else None
        step = None if engine is None else _step_in_the_same_loop(deeds, call, engine)
        if engine is not None and step is not None:
            yield item(deeds.script, call, {}, ((step.node, "trains in evaluation mode from the next pass on"),))


def _engine_of(receiver: Value) -> Thing | None:
    """The engine on which `engine.eval()` is called."""
    return (
        receiver
        if isinstance(receiver, Thing) and receiver.kind == "engine" and "module" in receiver.attributes
        else None
    )


def _step_in_the_same_loop(deeds: Deeds, evaluation: Call, engine: Thing) -> Call | None:
    steps = [call for call in deeds.calls if call.dotted == "backward" and call.receiver is engine]
    for loop in evaluation.spot.loops:
        step = next((one for one in steps if _is_in(one.spot, loop)), None)
        if step is not None:
            return None if _may_end(deeds, evaluation, loop) or _may_train(deeds, loop, engine) else step
    return None


def _is_in(spot: Spot, loop: Loop) -> bool:
    return any(around.node is loop.node for around in spot.loops)


def _may_train(deeds: Deeds, loop: Loop, engine: Thing) -> bool:
    """Whether something in a loop may switch to training mode."""
    inside = (call for call in deeds.calls if _is_in(call.spot, loop))
    return any(
        call.dotted.rpartition(".")[2] in ("train", "train_batch") or _hands_over(call, engine) for call in inside
    )


def _hands_over(call: Call, engine: Thing) -> bool:
    """Whether a call gives the engine, or its model, to code that this file doesn't show."""
    if call.receiver is engine:
        return False
    given: Iterable[Value] = (*call.positional, *call.keywords.values())
    things = (engine, engine.attributes["module"])
    return any(value is thing for value in given for thing in things) and is_foreign(call)


def _may_end(deeds: Deeds, evaluation: Call, loop: Loop) -> bool:
    """Whether the loop may end after the evaluation, so that nothing trains after it."""
    inside = [call for call in deeds.calls if _is_in(call.spot, loop)]
    if any(call.name in ("sys.exit", "exit", "quit", "os._exit") for call in inside):
        return True
    depth = _shared_depth([call.spot.functions for call in inside])
    after = (jump for jump in deeds.jumps if _is_in(jump.spot, loop) and jump.spot.order > evaluation.spot.order)
    return any(jump.kind != "continue" and len(jump.spot.functions) <= depth for jump in after)


def _shared_depth(stacks: Sequence[tuple[str, ...]]) -> int:
    """Depth of the function that all of these are called from: the one that has the loop."""
    levels = zip(*stacks, strict=False)
    return len(list(takewhile(lambda names: len(set(names)) == 1, levels)))

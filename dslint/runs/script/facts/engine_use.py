"""Which engines a script trains with, and which of its steps surely belong to that training."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from dslint.runs.facts import Facts
from dslint.runs.script.config_use import config_uses
from dslint.runs.script.events import Call, Guard, Spot
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.guards import is_rank
from dslint.runs.script.known_apis import kind_of
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import NOTHING, Thing, Value, is_known, origins

INITIALIZE = "deepspeed.initialize"

_SAME_OBJECT = frozenset(
    ["to", "cuda", "cpu", "half", "bfloat16", "float", "train", "eval", "requires_grad_", "double", "xpu", "apply"]
)
"""Methods of a module that give the module itself."""

_OF_A_RUN = frozenset(["index", "item", "output"])
"""Kinds of things that take many values in one run."""

_COUNTS = frozenset(
    ["is_gradient_accumulation_boundary", "global_steps", "micro_steps", "global_samples", "counted"]
)
"""Names of things that do so too: what an engine counts, and counters of loops."""


def engines(facts: Facts) -> tuple[Thing, ...]:
    """The engines that train by a raw loop with the run's config, which they all share."""
    if facts.framework != "raw":
        return ()
    deeds = deeds_of(facts)
    made = [call for call in deeds.calls if call.name == INITIALIZE]
    if len(made) > 1 and not _share_a_config(deeds, len(made)):
        return ()
    return tuple(thing for call in made if (thing := engine_of(call)) is not None)


def _share_a_config(deeds: Deeds, number: int) -> bool:
    """Whether as many calls of initialize take one and the same config."""
    configs = [use.value for use in config_uses(deeds) if use.taker == "initialize"]
    return len(configs) == number and len({identity(value) for value in configs}) == 1


def engine_of(call: Call) -> Thing | None:
    """The engine that a call of deepspeed.initialize makes."""
    first = call.result[0] if isinstance(call.result, tuple) and call.result else None
    if not isinstance(first, Thing) or first.kind != "engine" or first.attributes.get("initialize") is not call:
        return None
    return first


def initialize_of(engine: Thing) -> Call:
    """The call that made an engine."""
    made: Call = engine.attributes["initialize"]
    return made


def identity(value: Value, depth: int = 8) -> Hashable:
    """What is equal for two values that the same expression gives at different places."""
    if is_known(value):
        return (type(value).__name__, repr(value))
    if (
        isinstance(value, Thing)
        and depth
        and value.kind in ("attribute", "argument", "environment", "element", "json")
    ):
        return (value.kind, value.name, *(identity(part, depth - 1) for part in value.inputs))
    if isinstance(value, Thing) and depth and value.kind in ("not", "comparison", "operation", "logic"):
        return (value.kind, value.name, *(identity(part, depth - 1) for part in value.inputs))
    return id(value)


# --- what surely happens ---


def is_reached(spot: Spot, since: Spot) -> bool:
    """Whether a run that has come to `since` surely comes to this place too, at some time or other."""
    known = {(identity(guard.test), guard.holds) for guard in since.guards}
    rest = [guard for guard in spot.guards if (identity(guard.test), guard.holds) not in known]
    return _is_one_flow(spot, since) and all(map(_comes_true, rest))


def _is_one_flow(spot: Spot, since: Spot) -> bool:
    """Whether two places are passed in one go: both by what this file calls, or by one call from another file.

    What an object's `__init__` does comes before all that its other methods do.
    """
    if spot.is_called or since.is_called:
        return spot.is_called and since.is_called
    return spot.functions[:1] == since.functions[:1] or since.functions[:1] == ("__init__",)


def _comes_true(guard: Guard) -> bool:
    """Whether a condition changes in the course of a run, as one over a counter or a batch does."""
    return _varies(guard.test)


def _varies(test: Value) -> bool:
    if not isinstance(test, Thing):
        return False
    if test.kind in ("logic", "not"):
        return all(map(_varies, test.inputs))
    if is_rank(test) or any(is_rank(part) for part in test.inputs):
        return True
    if test.kind == "comparison" and None in test.inputs:
        return any(isinstance(part, Thing) and part.kind.startswith("engine") for part in test.inputs)
    return any(thing.kind in _OF_A_RUN or thing.name.rpartition(".")[2] in _COUNTS for thing in origins(test, 40))


def comes_after(later: Spot, earlier: Spot) -> bool:
    """Whether one place is passed after another, be it in the next turn of a loop around both."""
    return later.order > earlier.order or bool(shared_loops(later, earlier))


def shared_loops(one: Spot, other: Spot) -> int:
    """How many loops are around both places."""
    count = 0
    for left, right in zip(one.loops, other.loops, strict=False):
        if left.node is not right.node:
            break
        count += 1
    return count


def in_same_loop(one: Spot, other: Spot) -> bool:
    """Whether two places are passed equally often, as far as loops go."""
    return bool(one.loops) and len(one.loops) == len(other.loops) == shared_loops(one, other)


def each_once(calls: Iterable[Call]) -> Iterator[Call]:
    """Calls without those of a place that was read before (a function that is called twice)."""
    seen: set[int] = set()
    for call in calls:
        if id(call.node) not in seen:
            seen.add(id(call.node))
            yield call


def calls_on(facts: Facts, engine: Thing, *names: str) -> list[Call]:
    """The calls of some of an engine's methods."""
    return [call for call in deeds_of(facts).calls if call.receiver is engine and call.dotted in names]


def has_unknown_calls(facts: Facts, *names: str) -> bool:
    """Whether methods of these names are called on something that may be anything, an engine too."""
    vague = ("result", "parameter", "either", "element", "item", "attribute", "engine", "starred")
    known = {id(engine) for engine in engines(facts)}
    return any(
        call.dotted in names
        and isinstance(call.receiver, Thing)
        and call.receiver.kind in vague
        and id(call.receiver) not in known
        for call in deeds_of(facts).calls
    )


def is_optimizer(value: Value) -> bool:
    """Whether a value is surely an optimizer: one of a known class, or of a class of this file."""
    if not isinstance(value, Thing) or value.kind != "optimizer" or not isinstance(value.call, Call):
        return False
    return value.call.result is value and (
        "__class__" in value.attributes or kind_of(value.call.dotted) == "optimizer"
    )


# --- models and their parameters ---


def module_of(value: Value) -> Value:
    """The module behind `.to(device)` and the like, which give the module itself."""
    while isinstance(value, Thing) and value.name.rpartition(".")[2] in _SAME_OBJECT and value.inputs:
        value = value.inputs[0]
    return value


def is_module(value: Value, engine: Thing) -> bool:
    """Whether a value is the model that an engine was made of."""
    return module_of(value) is module_of(engine.attributes["module"])


_ITERATORS = frozenset(
    ["parameters", "named_parameters", "filter", "list", "tuple", "modules", "named_modules", "children"]
)


def path_in_model(value: Value, engine: Thing, depth: int = 12) -> tuple[str, ...] | None:
    """The attributes that lead from an engine's model to one of its parts or parameters; None for anything else.

    What goes through all parameters of a part has the part's own path.
    """
    if value is engine or is_module(value, engine):
        return ()
    if not isinstance(value, Thing) or not depth or not value.inputs:
        return None
    last = value.name.rpartition(".")[2]
    if value.kind in ("attribute", "element", "item") or last in _ITERATORS:
        found = path_in_model(_inner(value, last), engine, depth - 1)
        is_step = value.kind == "attribute" and last not in ("module", "data", "grad")
        return found if found is None or not is_step else (*found, last)
    if value.kind == "comprehension":
        parts = [path_in_model(part, engine, depth - 1) for part in value.inputs]
        return next((part for part in parts if part is not None), None)
    return None


def _inner(value: Thing, last: str) -> Value:
    if last == "filter" and len(value.inputs) > 1:
        return value.inputs[1]
    return value.inputs[0]


# --- what carries a gradient ---

_STOPS = frozenset(
    ["detach", "item", "tolist", "argmax", "numpy", "size", "dim", "eq", "ne", "ge", "gt", "le", "lt"]
)


def forwards(value: Value, made: frozenset[int], depth: int = 60) -> frozenset[Call]:
    """The forward passes (calls of the things with these ids) through which a value's gradient surely goes."""
    if isinstance(value, (tuple, list)):
        return frozenset().union(*(forwards(part, made, depth) for part in value))
    if not isinstance(value, Thing) or depth <= 0 or _stops(value):
        return frozenset()
    call = value.call
    if isinstance(call, Call) and call.dotted == "__call__" and id(call.receiver) in made:
        return frozenset([call])
    if value.kind == "either":
        branches = [forwards(part, made, depth - 1) for part in value.inputs if isinstance(part, Thing)]
        return frozenset().union(*branches) if branches and all(branches) else frozenset()
    return frozenset().union(*(forwards(part, made, depth - 1) for part in value.inputs))


def _stops(value: Thing) -> bool:
    """Whether no gradient goes through a thing."""
    last = value.name.rpartition(".")[2]
    if value.kind == "attribute":
        return last in ("data", "shape", "dtype", "device", "grad", "ndim")
    return value.kind in ("comparison", "not", "logic", "text") or last in _STOPS


def passes_through(value: Value, name: str, depth: int = 60) -> bool:
    """Whether a value was made, with its gradient, by a call of this name."""
    if not isinstance(value, Thing) or depth <= 0 or _stops(value):
        return False
    if value.name == name:
        return True
    return any(passes_through(part, name, depth - 1) for part in value.inputs)


def is_absent(value: Value) -> bool:
    """Whether an argument is not given, or None."""
    return value is None or value is NOTHING

"""Facts about weights that are spread over the ranks: what a script does with them, gathered or not."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.events import Call, Read, Spot
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.here import Here
from dslint.runs.script.facts.partitioned import (
    LONGEST_PATH,
    Spread,
    asks,
    gathered_at,
    is_adapter,
    is_switched_on,
    largest,
    listed_in,
    may_be_gathered,
    spread_models,
)
from dslint.runs.script.guards import one_rank_guard
from dslint.runs.script.items import item
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Class, Thing, Value, origins
from dslint.runs.unknown import UNDECIDABLE, Unknown

CHANGES = frozenset(
    [
        "add_",
        "clamp_",
        "clip_",
        "copy_",
        "div_",
        "fill_",
        "lerp_",
        "mul_",
        "normal_",
        "sub_",
        "trunc_normal_",
        "uniform_",
        "zero_",
    ]
)
"""Methods that change a tensor in place, of any shape."""

SUMMARIES = frozenset(["norm", "mean", "std", "sum", "abs", "max", "min", "clone", "numpy", "tolist"])
"""Methods that look at a tensor's values."""

_ANY_SHAPE = frozenset(["normal_", "constant_", "uniform_", "zeros_", "ones_", "trunc_normal_"])
"""Initializers that take a tensor of any shape (torch/nn/init.py)."""

_USES = frozenset(["__call__", "forward", "generate", "state_dict", "save_pretrained"])
"""Methods of a model by which changed weights are used at once."""

_LOADERS = ("torch.load", "safetensors.torch.load_file", "torch.hub.load_state_dict_from_url")


def loads_into_partitions(facts: Facts) -> tuple[Item, ...]:
    """`load_state_dict` with whole weights on a model whose weights are spread."""
    deeds = deeds_of(facts)
    spread = spread_models(facts)
    found = []
    for call in deeds.calls:
        if call.dotted != "load_state_dict" or may_be_gathered(call.spot) or asks(deeds, call.spot):
            continue
        model = spread.owner(call.receiver, call.spot)
        if model is None or is_adapter(model) or _is_of_engine(call.receiver):
            continue
        if _is_loaded(call.argument(0, "state_dict"), spread):
            found.append(item(deeds.script, call, {"largest": largest(model)}))
    return tuple(found)


def _is_of_engine(value: Value) -> bool:
    """Whether a value is an engine, or something that it has beside its module."""
    for _ in range(LONGEST_PATH):
        if not isinstance(value, Thing) or value.kind != "attribute" or not value.inputs:
            break
        value = value.inputs[0]
    return isinstance(value, Thing) and value.kind == "engine"


def _is_loaded(value: Value, spread: Spread) -> bool:
    """Whether weights come from a file, or from another model, rather than from a model that is spread."""
    made = list(origins(value, 60))
    if any(id(thing) in spread.since for thing in made):
        return False
    return any(thing.name in _LOADERS or thing.name == "model.state_dict" for thing in made)


def copies_of_partitions(facts: Facts) -> tuple[Item, ...]:
    """copy.deepcopy of a model whose weights are spread, or of its state dict."""
    deeds = deeds_of(facts)
    spread = spread_models(facts)
    found = []
    for call in deeds.calls:
        if call.name != "copy.deepcopy" or may_be_gathered(call.spot) or asks(deeds, call.spot):
            continue
        value = call.argument(0, "x")
        if not isinstance(value, Thing):
            continue
        model = spread.owner(value, call.spot) if value.kind in ("model", "either") else None
        if value.call is not None and value.call.dotted == "state_dict":
            model = spread.owner(value.call.receiver, value.call.spot)
        if model is not None and not is_adapter(model):
            found.append(item(deeds.script, call, {"largest": largest(model)}))
    return tuple(found)


def sizes_of_partitions(facts: Facts) -> tuple[Item, ...]:
    """Looks at the size of a parameter that is spread: `p.numel()`, `p.size()`, `p.shape`."""
    deeds = deeds_of(facts)
    if b"ds_numel" in deeds.script.source.data or b"ds_shape" in deeds.script.source.data:
        return ()
    spread = spread_models(facts)
    steps: list[tuple[Call | Read, Value]] = [
        (call, call.receiver) for call in deeds.calls if call.dotted in ("numel", "nelement", "size")
    ]
    steps += [(read, read.target) for read in deeds.reads if read.name == "shape"]
    early = {id(step.node) for step, parameter in steps if _owner(spread, parameter, step.spot) is None}
    nodes = {id(step.node): step.node for step, _ in steps}
    found = []
    for one in _items_of(deeds, spread, steps):
        node = next(node for node in nodes.values() if deeds.script.place(node) == (one.source, one.span))
        whole = UNDECIDABLE if id(node) in early else _whole_size(Here(deeds, node))
        found.append(replace(one, fields={**one.fields, "whole": whole}))
    return tuple(found)


def _whole_size(here: Here) -> str | Unknown:
    """The size of the whole parameter, as DeepSpeed keeps it."""
    node = here.node
    if isinstance(node, ast.Attribute):
        return f"{here.code(node.value)}.ds_shape"
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.keywords:
        return UNDECIDABLE
    owner, dimensions = here.code(node.func.value), node.args
    if node.func.attr != "size":
        return UNDECIDABLE if dimensions else f"{owner}.ds_numel"
    return f"{owner}.ds_shape" + "".join(f"[{here.code(one)}]" for one in dimensions)


def _items_of(deeds: Deeds, spread: Spread, steps: list[tuple[Call | Read, Value]]) -> Iterator[Item]:
    """The steps, in order and once a place, that are done to a spread parameter."""
    seen: set[int] = set()
    for step, parameter in sorted(steps, key=lambda pair: pair[0].spot.order):
        if not step.spot.is_called or may_be_gathered(step.spot) or asks(deeds, step.spot):
            continue
        model = _owner(spread, parameter, step.spot)
        if model is not None and not is_adapter(model) and id(step.node) not in seen:
            seen.add(id(step.node))
            yield item(deeds.script, step, {"largest": largest(model)})


def _owner(spread: Spread, parameter: Value, spot: Spot) -> Thing | None:
    """The model of a parameter, outside of the methods of models: those run while their weights are whole."""
    if isinstance(parameter, Thing) and parameter.kind == "attribute" and parameter.name == "data":
        parameter = parameter.inputs[0] if parameter.inputs else None
    model = spread.parameter_owner(parameter, spot)
    return None if model is None or _is_in_method(model, spot) else model


def _is_in_method(model: Thing, spot: Spot) -> bool:
    made_by = model.attributes.get("__class__")
    methods = made_by.members if isinstance(made_by, Class) else {}
    return "forward" in spot.functions or any(name in methods for name in spot.functions)


def uses_of_partitions(facts: Facts) -> tuple[Item, ...]:
    """Values of a parameter that is spread, looked at or changed in place."""
    deeds = deeds_of(facts)
    spread = spread_models(facts)
    changes = [(call, _changed(call)) for call in deeds.calls]
    steps: list[tuple[Call | Read, Value]] = [(call, value) for call, value in changes if value is not None]
    steps += [(call, call.receiver) for call in deeds.calls if call.dotted in SUMMARIES]
    return tuple(_items_of(deeds, spread, steps))


def _changed(call: Call) -> Value:
    """What a call changes in place; None where it doesn't."""
    if call.receiver is not None:
        return call.receiver if call.dotted in CHANGES else None
    package, _, last = call.dotted.rpartition(".")
    return call.argument(0, "tensor") if package == "torch.nn.init" and last in _ANY_SHAPE else None


def lost_writes(facts: Facts) -> tuple[Item, ...]:
    """Changes of a parameter inside of GatheredParameters without modifier_rank, which are thrown away."""
    deeds = deeds_of(facts)
    spread = spread_models(facts)
    found = []
    seen: set[int] = set()
    for call in deeds.calls:
        around = gathered_at(call.spot)
        if not around or len(around) != len(call.spot.contexts) - _plain_contexts(call.spot):
            continue
        parameter = _changed(call)
        if parameter is None or any(map(_may_write, around)) or asks(deeds, call.spot):
            continue
        if _is_used_inside(deeds, call, around[-1]):
            continue
        if _owner(spread, parameter, call.spot) is not None and id(call.node) not in seen:
            seen.add(id(call.node))
            place = around[-1].node
            related = ((place, "without modifier_rank this throws changes away"),) if place is not None else ()
            fields = _with_rank(Here(deeds, call.node), call, around)
            found.append(item(deeds.script, call, fields, related))
    return tuple(found)


def _with_rank(here: Here, write: Call, around: Sequence[Thing]) -> dict[str, Any]:
    """GatheredParameters, and the same with a modifier_rank; Unknown where another rank may write."""
    node = around[0].node
    guard = one_rank_guard(write.spot)
    is_plain = (
        isinstance(node, ast.Call)
        and len(node.args) <= 1
        and "modifier_rank" not in here.code(node)
        and not here.has_comments(node)
    )
    if len(around) != 1 or guard is not None or not is_plain or not isinstance(node, ast.Call):
        return {"gathering": UNDECIDABLE, "with_rank": UNDECIDABLE}
    given = [*map(here.code, node.args), *map(here.code, node.keywords), "modifier_rank=0"]
    return {"gathering": here.span(node), "with_rank": f"{here.code(node.func)}({', '.join(given)})"}


def _is_used_inside(deeds: Deeds, write: Call, gathered: Thing) -> bool:
    """Whether what was written is used before the block ends, so that it may well be thrown away."""
    return any(
        call.spot.order > write.spot.order
        and any(context is gathered for context in call.spot.contexts)
        and (call.dotted in _USES or call.name == "torch.save")
        for call in deeds.calls
    )


def _plain_contexts(spot: Spot) -> int:
    """How many of the contexts around a place have nothing to do with gathering."""
    return sum(
        1
        for context in spot.contexts
        if not (isinstance(context, Thing) and context.kind == "gathered")
        and isinstance(context, Thing)
        and (context.kind == "file" or context.name.startswith("torch."))
    )


def _may_write(gathered: Thing) -> bool:
    """Whether changes inside of a GatheredParameters may be kept."""
    call = gathered.call
    if not isinstance(call, Call) or not is_switched_on(gathered):
        return True
    return call.argument(1, "modifier_rank") is not None


def nested_gathers(facts: Facts) -> tuple[Item, ...]:
    """GatheredParameters inside of another one for the same parameters."""
    deeds = deeds_of(facts)
    spread = spread_models(facts)
    found = []
    for call in deeds.calls:
        made = call.result
        if not isinstance(made, Thing) or made.kind != "gathered" or not is_switched_on(made):
            continue
        if asks(deeds, call.spot):
            continue
        for outer in gathered_at(call.spot):
            if is_switched_on(outer) and _overlap(outer, made, spread, call.spot):
                related = ((outer.node, "these parameters are gathered here already"),) if outer.node else ()
                found.append(item(deeds.script, call, {}, related))
                break
    return tuple(found)


def _overlap(outer: Thing, inner: Thing, spread: Spread, spot: Spot) -> bool:
    """Whether two GatheredParameters surely name one parameter twice."""
    wider = list(_named(outer.call.argument(0, "params")))
    for one in _named(inner.call.argument(0, "params")):
        for other in wider:
            if one is other and spread.parameter_owner(one, spot) is not None:
                return True
            if _holds(other, one, spread, spot):
                return True
    return False


def _named(value: Value, depth: int = 0) -> Iterator[Thing]:
    """The parameters, or calls of `parameters()`, that a list of parameters names."""
    if depth > 8:
        return
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _named(part, depth + 1)
    elif isinstance(value, Thing):
        is_list = value.name in ("list", "tuple") and value.inputs
        yield from _named(value.inputs[0], depth + 1) if is_list else (value,)


def _holds(outer: Thing, inner: Thing, spread: Spread, spot: Spot) -> bool:
    """Whether `outer` is all parameters of a spread model, and `inner` one of them or all of them."""
    if outer.call is None or outer.call.dotted != "parameters" or outer.call.positional or outer.call.keywords:
        return False
    whole = outer.call.receiver
    if spread.owner(whole, spot) is None:
        return False
    if inner.call is not None and inner.call.dotted == "parameters":
        return belongs_to(inner.call.receiver, whole)
    listed = listed_in(inner)
    if listed is not None:
        return belongs_to(listed.receiver, whole)
    is_parameter = spread.parameter_owner(inner, spot) is not None
    return is_parameter and bool(inner.inputs) and belongs_to(inner.inputs[0], whole)


def belongs_to(part: Value, model: Value, depth: int = 0) -> bool:
    """Whether a value surely is a model or one of its parts."""
    if part is model:
        return True
    if not isinstance(part, Thing) or not isinstance(model, Thing) or depth > LONGEST_PATH:
        return False
    module = model.attributes.get("module") if model.kind == "engine" else None
    if module is not None and belongs_to(part, module, depth + 1):
        return True
    if part.kind in ("model", "attribute") and any(part is one for one in model.attributes.values()):
        return True
    is_path = part.kind in ("attribute", "element") and part.inputs
    return bool(is_path) and belongs_to(part.inputs[0], model, depth + 1)

"""What a script hands to deepspeed.initialize, and what it does with what comes back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.config_use import node_of
from dslint.runs.script.events import Call
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.engine_use import (
    INITIALIZE,
    calls_on,
    each_once,
    engine_of,
    engines,
    initialize_of,
    is_absent,
    is_optimizer,
    module_of,
)
from dslint.runs.script.facts.here import Here, is_path
from dslint.runs.script.items import item
from dslint.runs.script.values import Thing
from dslint.runs.unknown import UNDECIDABLE, Unknown

# --- the four results ---

RESULTS = 4
"""Engine, optimizer, data loader, scheduler."""


def wrong_unpackings(facts: Facts) -> tuple[Item, ...]:
    """deepspeed.initialize unpacked into another number of names than it gives."""
    deeds = deeds_of(facts)
    made = [call for call in deeds.calls if call.name == INITIALIZE]
    wrong = [call for call in each_once(made) if call.unpacked is not None and call.unpacked != RESULTS]
    return tuple(
        item(deeds.script, call, {"names": call.unpacked, **_as_four(Here(deeds, call.node))}) for call in wrong
    )


_PARTS = (("optim", "opt"), ("load", "data"), ("sched",))
"""How optimizer, data loader and scheduler are called, in the order in which they are returned."""


def _as_four(here: Here) -> dict[str, Any]:
    """The assignment, and one to four names; Unknown where a name doesn't say what it is for."""
    nothing = {"assignment": UNDECIDABLE, "four": UNDECIDABLE}
    target = here.target(here.node)
    if not isinstance(target, ast.Tuple) or not 1 <= len(target.elts) < RESULTS:
        return nothing
    names = [here.code(one) for one in target.elts]
    four = [names[0], "_", "_", "_"]
    for name in names[1:]:
        place = next((i for i, parts in enumerate(_PARTS, 1) if any(part in name.lower() for part in parts)), 0)
        if name != "_" and (not place or four[place] != "_"):
            return nothing
        if name != "_":
            four[place] = name
    return {"assignment": here.span(here.statement()), "four": f"{', '.join(four)} = {here.code(here.node)}"}


def uses_as_engine(facts: Facts) -> tuple[Item, ...]:
    """The first place that calls the tuple which deepspeed.initialize gives, or a method of an engine on it."""
    deeds = deeds_of(facts)
    made = [call for call in deeds.calls if call.name == INITIALIZE]
    found = []
    for call in each_once(deeds.calls):
        first = next((one for one in made if call.receiver is one.result), None)
        if first is not None and call.dotted not in ("index", "count", "__len__"):
            error = "TypeError" if call.dotted == "__call__" else "AttributeError"
            found.append(item(deeds.script, call, {"error": error, **_unpacked(Here(deeds, call.node), first)}))
    return tuple(found[:1])


def _unpacked(here: Here, made: Call) -> dict[str, Any]:
    """The call that gives the tuple, and its first element instead; nothing may want another one of it."""
    target = here.target(made.node)
    if target is None or not is_path(target) or here.script.tree is None:
        return {"making": UNDECIDABLE, "first": UNDECIDABLE}
    name = here.code(target)
    for node in ast.walk(here.script.tree):
        is_part = isinstance(node, ast.Subscript) and here.code(node.value) == name
        is_spread = isinstance(node, (ast.Assign, ast.Starred)) and here.code(node.value) == name
        if is_part or is_spread:
            return {"making": UNDECIDABLE, "first": UNDECIDABLE}
    return {"making": here.span(made.node), "first": f"{here.code(made.node)}[0]"}


# --- the model ---


def wrapped_models(facts: Facts) -> tuple[Item, ...]:
    """Models in DistributedDataParallel, DataParallel or FSDP that are given to initialize."""
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        model = module_of(engine.attributes["module"])
        made = initialize_of(engine)
        if isinstance(model, Thing) and model.kind == "parallel_model" and isinstance(model.call, Call):
            name = model.name.rpartition(".")[2]
            fields = {
                "wrapper": "FSDP" if name == "FullyShardedDataParallel" else name,
                **_bare(Here(deeds, model.call.node), model.call),
            }
            found.append(item(deeds.script, model.call, fields, ((made.node, "given to DeepSpeed here"),)))
    return tuple({one.span: one for one in found}.values())


def _bare(here: Here, wrapping: Call) -> dict[str, Any]:
    """The wrapping call and the model instead of it, or the statement that does nothing but wrap."""
    given, target = node_of(wrapping, 0, "module"), here.target(wrapping.node)
    nothing = {"wrapping": UNDECIDABLE, "bare": UNDECIDABLE, "statement": UNDECIDABLE}
    is_plain = given is not wrapping.node and not here.has_comments(wrapping.node)
    if not is_plain or (target is not None and _asks_for_module(here, target)):
        return nothing
    if target is not None and here.code(target) == here.code(given):
        return {"wrapping": None, "bare": None, "statement": here.span(here.statement())}
    return {"wrapping": here.span(wrapping.node), "bare": here.code(given), "statement": None}


def _asks_for_module(here: Here, target: ast.expr) -> bool:
    """Whether the file takes the model out of the wrapper somewhere."""
    name = here.code(target)
    nodes = ast.walk(here.script.tree) if here.script.tree is not None else ()
    return any(
        isinstance(node, ast.Attribute) and node.attr == "module" and here.code(node.value) == name
        for node in nodes
    )


# --- the optimizer ---

TESTED = frozenset(
    [
        "torch.optim.Adam",
        "torch.optim.AdamW",
        "torch.optim.Adagrad",
        "torch.optim.adam.Adam",
        "torch.optim.adamw.AdamW",
        "torch.optim.adagrad.Adagrad",
        "apex.optimizers.FusedAdam",
    ]
)
"""Optimizers that ZeRO takes as they are, beside DeepSpeed's own (deepspeed/runtime/zero/utils.py)."""

_NOT_TESTED_OF_DEEPSPEED = frozenset(["FusedLamb"])
_ON_CPU = ("DeepSpeedCPUAdam", "DeepSpeedCPULion")


def client_optimizers(facts: Facts) -> tuple[Item, ...]:
    """Optimizers of known classes that are given to initialize; the item stands at the argument's call."""
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        made = initialize_of(engine)
        optimizer = made.argument(2, "optimizer")
        if not is_optimizer(optimizer) or _is_unclear(optimizer):
            continue
        call = optimizer.call
        is_own_class = "__class__" in optimizer.attributes
        name = optimizer.name if is_own_class else call.dotted
        fields = {
            "type": name.rpartition(".")[2],
            "is_tested": False if is_own_class else _is_tested(name),
            "is_for_cpu": call.dotted.rpartition(".")[2] in _ON_CPU,
            "by_cpu": UNDECIDABLE if is_own_class else _by_cpu(Here(deeds, call.node), call),
        }
        given = (node_of(made, 2, "optimizer"), "given to DeepSpeed here")
        found.append(item(deeds.script, call, fields, (given,)))
    return tuple({one.span: one for one in found}.values())


_OWN_DEFAULTS = {"torch.optim.Adam": "adamw_mode=False", "torch.optim.AdamW": "weight_decay=0.01"}
"""Optimizers of torch, with what DeepSpeedCPUAdam has to be told in order to do the same (deepspeed/ops/adam)."""


def _by_cpu(here: Here, call: Call) -> str | Unknown:
    """The same optimizer for states in the memory of the CPU."""
    node, own, deepspeed = call.node, _OWN_DEFAULTS.get(call.dotted), here.module("deepspeed")
    names = {keyword.arg for keyword in node.keywords}
    is_plain = len(node.args) in (1, 2) and names <= {"lr", "betas", "eps", "weight_decay"}
    if own is None or isinstance(deepspeed, Unknown) or not is_plain or here.has_comments(node):
        return UNDECIDABLE
    given = [here.code(one) for one in (*node.args, *node.keywords)]
    given += [] if own.partition("=")[0] in names else [own]
    return f"{deepspeed}.ops.adam.DeepSpeedCPUAdam({', '.join(given)})"


def _is_unclear(optimizer: Thing) -> bool:
    """Whether a class is known by its last name only (apex and others may be patched or absent)."""
    return (
        not optimizer.name.startswith(
            ("torch.optim.", "deepspeed.ops.", "bitsandbytes.optim.", "transformers.", "apex.optimizers.")
        )
        and "__class__" not in optimizer.attributes
    )


def _is_tested(name: str) -> bool:
    if name.startswith("deepspeed.ops."):
        return name.rpartition(".")[2] not in _NOT_TESTED_OF_DEEPSPEED
    return name in TESTED


def optimizers_given(facts: Facts) -> tuple[Item, ...]:
    """Calls of initialize that are given an optimizer, of whatever class; the item stands at the argument."""
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        made = initialize_of(engine)
        if is_optimizer(made.argument(2, "optimizer")):
            node = node_of(made, 2, "optimizer")
            is_keyword = any(keyword.value is node for keyword in made.node.keywords)
            is_alone = is_keyword and not made.has(6, "lr_scheduler")  # which may be built on this optimizer
            argument: Any = Here(deeds, made.node).span(node) if is_alone else UNDECIDABLE
            one = item(deeds.script, made, {"argument": argument})
            found.append(Item(one.fields, one.source, deeds.script.span(node), one.related))
    return tuple({one.span: one for one in found}.values())


def bare_initializations(facts: Facts) -> tuple[Item, ...]:
    """Calls of initialize without an optimizer; `trains` whether the engine then runs a backward pass."""
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        made = initialize_of(engine)
        if made.is_complete and is_absent(made.argument(2, "optimizer")) and engine_of(made) is engine:
            fields = {"trains": bool(calls_on(facts, engine, "backward"))}
            found.append(item(deeds.script, made, fields))
    return tuple({one.span: one for one in found}.values())


# --- its parameters ---

_CONSUMERS = frozenset(["sum", "list", "tuple", "set", "sorted", "dict", "any", "all", "max", "min"])
_GENERATORS = frozenset(["parameters", "named_parameters", "filter", "map"])


def exhausted_parameters(facts: Facts) -> tuple[Item, ...]:
    """Generators of parameters that something has gone through before initialize gets them."""
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        made = initialize_of(engine)
        value = made.argument(3, "model_parameters")
        if (
            not isinstance(value, Thing)
            or not _is_generator(value)
            or not is_absent(made.argument(2, "optimizer"))
        ):
            continue
        used = next(_uses_before(facts, value, made), None)
        if used is not None and made.is_complete:
            node = node_of(made, 3, "model_parameters")
            one = item(deeds.script, made, {}, ((used, "gone through here"),))
            made_by = value.node if isinstance(value.node, (ast.Call, ast.GeneratorExp)) else None
            place, code = _generator(Here(deeds, made.node), made_by)
            fields = {**one.fields, "text": ast.unparse(node), "generator": place, "code": code}
            found.append(Item(fields, one.source, deeds.script.whole_span(node), one.related))
    return tuple({one.span: one for one in found}.values())


def _generator(here: Here, made_by: ast.AST | None) -> tuple[Any, str | Unknown]:
    """Where a generator is made, and its text, without brackets that a call has anyway."""
    place = here.span(made_by)
    if made_by is None or isinstance(place, Unknown):
        return UNDECIDABLE, UNDECIDABLE
    code = here.code(made_by)
    return place, code[1:-1] if isinstance(made_by, ast.GeneratorExp) and code.startswith("(") else code


def _is_generator(value: Thing) -> bool:
    """Whether a value can be gone through only once."""
    if value.kind == "comprehension":
        return isinstance(value.node, ast.GeneratorExp)
    is_method = value.name.rpartition(".")[2] in ("parameters", "named_parameters")
    is_model = is_method and value.kind == "result" and bool(value.inputs)
    return is_model or (value.name in ("filter", "map") and value.kind == "result")


def _uses_before(facts: Facts, value: Thing, made: Call) -> Iterator[ast.AST]:
    deeds = deeds_of(facts)
    broken = {
        id(loop.node) for jump in deeds.jumps if jump.kind in ("break", "return") for loop in jump.spot.loops
    }
    for call in deeds.calls:
        if call.spot.order >= made.spot.order or call.spot.guards != made.spot.guards:
            continue
        is_taken = call.receiver is None and (call.dotted in _CONSUMERS or call.dotted.startswith("torch.optim."))
        if is_taken and call.positional and call.positional[0] is value:
            yield call.node
        for loop in call.spot.loops:
            if loop.over is value and id(loop.node) not in broken and loop not in made.spot.loops:
                yield call.node

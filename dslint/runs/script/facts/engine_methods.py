"""Methods of an engine that differ from what their names suggest: train, eval, accessors, client_state."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.events import Call
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.engine_use import calls_on, each_once, engines, initialize_of, is_reached
from dslint.runs.script.facts.here import Here
from dslint.runs.script.items import code_at, item
from dslint.runs.script.values import Table, Thing
from dslint.runs.unknown import UNDECIDABLE

# --- modes ---


def uses_of_mode_results(facts: Facts) -> tuple[Item, ...]:
    """Calls on what engine.train() or engine.eval() gave back, which is None."""
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        modes = [call for call in calls_on(facts, engine, "train", "eval") if isinstance(call.result, Thing)]
        for call in each_once(deeds.calls):
            mode = next((one for one in modes if call.receiver is one.result), None)
            if mode is not None and is_reached(call.spot, mode.spot):
                fields = {
                    "mode": mode.dotted,
                    "is_called_itself": call.dotted == "__call__",
                    **_by_itself(Here(deeds, call.node), mode, call),
                }
                found.append(item(deeds.script, call, fields, ((mode.node, "gives None"),)))
    return tuple(found)


def _by_itself(here: Here, mode: Call, call: Call) -> dict[str, Any]:
    """The assignment of what train() or eval() gives, the call alone, and whom to call instead of its name."""
    nothing = {"assignment": UNDECIDABLE, "alone": UNDECIDABLE, "callee": UNDECIDABLE, "engine": UNDECIDABLE}
    target, asked, called = here.target(mode.node), mode.node.func, call.node.func
    if (
        not isinstance(target, ast.Name)
        or not isinstance(asked, ast.Attribute)
        or not isinstance(called, ast.Name)
    ):
        return nothing
    engine = here.code(asked.value)
    is_new = target.id != engine
    is_near = here.function(mode.node) is here.function()
    if called.id != target.id or not is_near or (is_new and here.uses(target.id) != 1):
        return nothing
    assignment = here.span(here.statement(mode.node))
    callee = here.span(called) if is_new else None
    return {"assignment": assignment, "alone": here.code(mode.node), "callee": callee, "engine": engine}


# --- accessors ---

ACCESSORS = frozenset(["train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"])
"""Methods of an engine that tell a number."""


def uncalled_accessors(facts: Facts) -> tuple[Item, ...]:
    """Accessors in arithmetic or range() without the brackets that call them."""
    deeds = deeds_of(facts)
    made = {id(engine) for engine in engines(facts)}
    reads = {id(read.node): read for read in deeds.reads if read.name in ACCESSORS and id(read.target) in made}
    if not reads or deeds.script.tree is None:
        return ()
    found = []
    for node in _operands(deeds.script.tree):
        read = reads.get(id(node))
        if read is not None and not read.spot.guards:
            found.append(item(deeds.script, read, {"name": read.name, "code": code_at(deeds.script, node)}))
    return tuple(found)


def _operands(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp):
            yield node.left
            yield node.right
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
            yield from node.args


# --- client_state ---

OWN_KEYS = frozenset(
    [
        "module",
        "optimizer",
        "lr_scheduler",
        "data_sampler",
        "random_ltd",
        "skipped_steps",
        "global_steps",
        "dp_world_size",
        "mp_world_size",
    ]
)
"""What an engine keeps in a checkpoint for itself: load_checkpoint doesn't give it back as client_state."""


def reserved_client_state(facts: Facts) -> tuple[Item, ...]:
    """Keys of save_checkpoint's client_state that the engine keeps its own values under."""
    found: list[Item] = []
    for engine in engines(facts):
        for call in each_once(calls_on(facts, engine, "save_checkpoint")):
            if is_reached(call.spot, initialize_of(engine).spot):
                found += [_reserved(facts, call, key, node) for key, node in _own_keys(call)]
    return tuple(found)


def _own_keys(call: Call) -> Iterator[tuple[str, ast.AST]]:
    state = call.argument(2, "client_state")
    if isinstance(state, Table):
        for key, entry in state.entries.items():
            if key in OWN_KEYS:
                yield key, entry.key_node or call.node


def _reserved(facts: Facts, call: Call, key: str, node: ast.AST) -> Item:
    deeds = deeds_of(facts)
    one = item(deeds.script, call, {"key": key}, ((call.node, "saved here"),))
    return Item(one.fields, one.source, deeds.script.span(node), one.related)

"""Facts about uses of torch.distributed before there is a process group."""

from __future__ import annotations

import ast

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.events import Call
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.here import Here
from dslint.runs.script.facts.process_group import is_surely_down
from dslint.runs.script.items import item, text_at
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Thing
from dslint.runs.unknown import Unknown

_NEEDS_GROUP = frozenset(
    [
        "torch.distributed.all_gather",
        "torch.distributed.all_reduce",
        "torch.distributed.barrier",
        "torch.distributed.broadcast",
        "torch.distributed.broadcast_object_list",
        "torch.distributed.get_rank",
        "torch.distributed.get_world_size",
    ]
)


def uses_before_group(facts: Facts) -> tuple[Item, ...]:
    """The first call that asks torch for a process group when there surely is none (one item or none)."""
    deeds = deeds_of(facts)
    for call in deeds.calls:
        if _starts_group(call):
            return ()
        if _needs_group(call) and not call.spot.guards:
            is_early = is_surely_down(deeds, call) and not _is_in_try(deeds, call)
            fields = {"what": text_at(deeds.script, call.node), "start": start_at(Here(deeds, call.node))}
            return (item(deeds.script, call, fields),) if is_early else ()
    return ()


def start_at(here: Here) -> str | Unknown:
    """The call that starts the process group, by the name that deepspeed has at a place."""
    name = here.module("deepspeed")
    return name if isinstance(name, Unknown) else f"{name}.init_distributed()"


def _starts_group(call: Call) -> bool:
    last = call.dotted.rpartition(".")[2]
    return last in ("init_process_group", "init_distributed", "Init", "init_device_mesh") or (
        call.name == "deepspeed.initialize"
    )


def _needs_group(call: Call) -> bool:
    if call.receiver is None and call.dotted in _NEEDS_GROUP:
        return True
    is_sampler = isinstance(call.result, Thing) and call.result.kind == "sampler" and call.result.call is call
    return is_sampler and call.is_complete and not (call.has(1, "num_replicas") and call.has(2, "rank"))


def _is_in_try(deeds: Deeds, call: Call) -> bool:
    """Whether an exception of a call, or of a function around it, may be caught."""
    tree = deeds.script.owner(call.node).tree
    tries = [] if tree is None else [node for node in ast.walk(tree) if isinstance(node, ast.Try)]
    return any(
        one is call.node or (isinstance(one, ast.Call) and _last_name(one.func) in call.spot.functions)
        for node in tries
        for statement in node.body
        for one in ast.walk(statement)
    )


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""

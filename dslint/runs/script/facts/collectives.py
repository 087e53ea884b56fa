"""Calls that every rank has to make, since the ranks wait for one another inside of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.events import Call, Guard
from dslint.runs.script.facts.accelerator import trains_with_deepspeed
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.engine_use import engines
from dslint.runs.script.facts.here import Here
from dslint.runs.script.facts.partitioned import Spread, spread_models
from dslint.runs.script.guards import is_of_one_rank, one_rank_guard
from dslint.runs.script.items import item
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Thing

COLLECTIVES: Mapping[str, int] = {
    "accelerator.backward": 0,
    "accelerator.get_state_dict": 3,
    "accelerator.load_state": 0,
    "accelerator.save_model": 3,
    "accelerator.save_state": 0,
    "accelerator.wait_for_everyone": 0,
    "deepspeed.init_distributed": 0,
    "deepspeed.initialize": 0,
    "deepspeed.runtime.zero.GatheredParameters": 3,
    "deepspeed.utils.safe_get_full_fp32_param": 1,
    "deepspeed.utils.safe_get_full_grad": 1,
    "deepspeed.utils.safe_get_full_optimizer_state": 1,
    "deepspeed.zero.GatheredParameters": 3,
    "engine.__call__": 3,
    "engine._zero3_consolidated_16bit_state_dict": 3,
    "engine.backward": 0,
    "engine.forward": 3,
    "engine.generate": 3,
    "engine.load_checkpoint": 3,
    "engine.save_16bit_model": 3,
    "engine.save_checkpoint": 0,
    "engine.save_fp16_model": 3,
    "engine.step": 0,
    "pipeline_engine.eval_batch": 0,
    "pipeline_engine.save_checkpoint": 0,
    "pipeline_engine.train_batch": 0,
}
"""By name, from which ZeRO stage on the ranks wait for one another."""

_OF_TORCH = frozenset(
    [
        "all_gather",
        "all_gather_into_tensor",
        "all_gather_object",
        "all_reduce",
        "barrier",
        "broadcast",
        "broadcast_object_list",
        "gather",
        "gather_object",
        "monitored_barrier",
        "reduce",
        "reduce_scatter",
        "scatter",
        "scatter_object_list",
    ]
)
"""Functions of torch.distributed and deepspeed.comm in which the ranks meet."""

_OF_MODELS = frozenset(["__call__", "forward", "generate"])
"""Methods of a model that gather its weights under stage 3."""

_ALIKE: Mapping[str, str] = {"forward": "__call__", "generate": "__call__", "save_fp16_model": "save_16bit_model"}
"""Methods that meet on other ranks in the same way as another."""

_ASKS_FOR_PEERS = re.compile(r"world_?size|num_processes|n_gpus?\b|nproc|num_gpus|is_distributed|distributed_type")


def one_rank_collectives(facts: Facts) -> tuple[Item, ...]:
    """Collective calls under a condition that only one rank meets, and that the others don't make elsewhere."""
    deeds = deeds_of(facts)
    spread = spread_models(facts)
    has_one_config = facts.framework != "raw" or bool(engines(facts))
    found: list[Item] = []
    seen: set[int] = set()
    for call in deeds.calls:
        guard = one_rank_guard(call.spot)
        if guard is None or id(call.node) in seen:
            continue
        stage = None if _may_be_alone(facts, call) else _stage(call, spread)
        if (
            stage is None
            or (stage and not has_one_config)
            or _asks_for_peers(deeds, call)
            or _has_counterpart(call, deeds.calls)
        ):
            continue
        seen.add(id(call.node))
        name = call.name if call.receiver is None else f"{_kind(call)}.{call.dotted}"
        place = getattr(guard.node, "test", guard.node)
        related = ((place, "only one rank gets past this"),)
        fields = {"api": name, "from_stage": stage, "is_free": is_free(Here(deeds, call.node), guard)}
        found.append(item(deeds.script, call, fields, related))
    return tuple(found)


def is_free(here: Here, guard: Guard) -> bool:
    """Whether a call is a statement, or what one assigns, right in an `if` that asks for the rank only."""
    statement = here.statement()
    is_own = isinstance(statement, (ast.Expr, ast.Assign)) and statement.value is here.node
    is_pure = isinstance(guard.test, Thing) and guard.test.kind != "logic" and guard.holds
    if statement is None or not is_own or not is_pure or not here.is_under(guard.node):
        return False
    parts = [one for one in ast.walk(statement) if isinstance(one, ast.Name)]
    names = {one.id for one in parts} - {one.id for one in parts if isinstance(one.ctx, ast.Store)}
    return not any(here.is_set_only_under(name, guard.node) for name in names)


def _may_be_alone(facts: Facts, call: Call) -> bool:
    """Whether an Accelerator may train without DeepSpeed, so that it loads and saves on one rank."""
    is_about_files = call.dotted in ("get_state_dict", "load_state", "save_model", "save_state")
    return is_about_files and _kind(call) == "accelerator" and not trains_with_deepspeed(facts, call.receiver)


def _kind(call: Call) -> str:
    return call.receiver.kind if isinstance(call.receiver, Thing) else ""


def _stage(call: Call, spread: Spread) -> int | None:
    """From which ZeRO stage on the ranks wait for one another in a call; None where they don't."""
    if call.name in COLLECTIVES:
        return COLLECTIVES[call.name]
    if call.receiver is not None:
        is_of_model = call.dotted in _OF_MODELS and _kind(call) in ("model", "either", "engine")
        return 3 if is_of_model and spread.holds(call.receiver, call.spot) else None
    package, _, last = call.dotted.rpartition(".")
    if last not in _OF_TORCH or package not in ("torch.distributed", "deepspeed.comm"):
        return None
    return 0 if call.is_complete and "group" not in call.keywords and len(call.positional) <= 1 else None


def _asks_for_peers(deeds: Deeds, call: Call) -> bool:
    """Whether a condition around a call may let it happen in a run of one rank only."""
    for guard in call.spot.guards:
        place = getattr(guard.node, "test", None)
        if place is None:
            continue
        owner = deeds.script.owner(place)
        if _ASKS_FOR_PEERS.search(owner.source.slice(owner.whole_span(place)).lower()):
            return True
    return False


def _has_counterpart(call: Call, calls: Sequence[Call]) -> bool:
    """Whether the other ranks make the same call, on their side of the condition or under one of their own."""
    name = _shared_name(call)
    return any(one is not call and _shared_name(one) == name and _is_for_others(one.spot.guards) for one in calls)


def _shared_name(call: Call) -> str:
    last = call.dotted.rpartition(".")[2]
    return _ALIKE.get(last, last)


def _is_for_others(guards: Sequence[Guard]) -> bool:
    """Whether only the ranks beside the main one get past these conditions."""
    return any(is_of_one_rank(guard.test, not guard.holds) for guard in guards)

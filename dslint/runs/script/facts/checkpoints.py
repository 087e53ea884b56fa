"""Facts about the engine's checkpoints."""

from __future__ import annotations

import ast

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.config_use import node_of
from dslint.runs.script.events import Call
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.engine_use import engines
from dslint.runs.script.facts.here import Here, is_path
from dslint.runs.script.guards import is_rank, one_rank_guard
from dslint.runs.script.items import item, text_at
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Thing, Value, origins
from dslint.runs.unknown import UNDECIDABLE, Unknown

_AGREES = frozenset(
    [
        "all_gather",
        "all_gather_object",
        "all_reduce",
        "broadcast",
        "broadcast_object_list",
        "gather",
        "reduce",
        "gather_for_metrics",
    ]
)
_ALIKE = frozenset(
    ["get_global_grad_norm", "get_lr", "get_last_lr", "global_steps", "global_samples", "__len__", "len"]
)
_MAKES_OTHERS = ("uuid.uuid4", "uuid.uuid1")


def tags_of_one_rank(facts: Facts) -> tuple[Item, ...]:
    """save_checkpoint with a tag that differs between ranks: `by` is "rank", "loss" or "uuid"."""
    deeds = deeds_of(facts)
    found = []
    for call in deeds.calls:
        if call.name not in ("engine.save_checkpoint", "pipeline_engine.save_checkpoint"):
            continue
        tag = call.argument(1, "tag")
        by = _difference(tag, deeds)
        if by is not None and one_rank_guard(call.spot) is None:
            node = node_of(call, 1, "tag")
            same = _same_tag(Here(deeds, call.node), call)
            place = Here(deeds, call.node).span(node) if node is not call.node else UNDECIDABLE
            fields = {"by": by, "tag": text_at(deeds.script, node), "place": place, "same": same}
            found.append(item(deeds.script, call, fields))
    return tuple(found)


def _same_tag(here: Here, call: Call) -> str | Unknown:
    """A tag that is the same on all ranks: the engine's count of steps."""
    func = call.node.func
    if not isinstance(func, ast.Attribute) or not is_path(func.value):
        return UNDECIDABLE
    return f'f"step{{{here.code(func.value)}.global_steps}}"'


def _difference(tag: Value, deeds: Deeds) -> str | None:
    """Why a tag surely differs between ranks."""
    parts = _shown(tag)
    if any(map(is_rank, parts)):
        return "rank"
    if any(part.name in _MAKES_OTHERS for part in parts):
        return "uuid"
    if any(_is_loss(part) for part in parts) and not _ranks_agree(parts, deeds):
        return "loss"
    return None


def _shown(tag: Value, depth: int = 0) -> list[Thing]:
    """What stands in a tag: through texts, conversions and sums of texts."""
    if not isinstance(tag, Thing) or depth > 5:
        return []
    found = [tag]
    is_text = tag.kind in ("text", "operation") or tag.name in ("str", "int", "float", "round", "hex")
    is_text = is_text or tag.name.rpartition(".")[2] in ("item", "format", "hex")
    if is_text and tag.name != "%":
        for part in tag.inputs:
            found += _shown(part, depth + 1)
    return found


def _is_loss(part: Thing) -> bool:
    """Whether this is a number that the engine's output gave: `loss.item()`."""
    is_number = part.call is not None and part.call.dotted == "item" and part.call.receiver is not None
    made = list(origins(part, 60))
    return (
        is_number
        and any(one.kind == "output" for one in made)
        and not any(one.name.rpartition(".")[2] in _ALIKE for one in made)
    )


def _ranks_agree(parts: list[Thing], deeds: Deeds) -> bool:
    """Whether something that a tag is made of is brought together over the ranks."""
    made = {id(thing) for part in parts for thing in origins(part)}
    return any(
        call.dotted.rpartition(".")[2] in _AGREES
        and any(id(thing) in made for value in call.positional for thing in origins(value, 60))
        for call in deeds.calls
    )


def offloads_of_states(facts: Facts) -> tuple[Item, ...]:
    """engine.offload_states(): `client` names the optimizer that the script gave, None for the config's own."""
    deeds = deeds_of(facts)
    found = []
    for call in deeds.calls:
        if not any(call.receiver is engine for engine in engines(facts)) or call.dotted != "offload_states":
            continue
        if call.positional or call.keywords or not call.is_complete:
            continue
        made = call.receiver.attributes.get("initialize") if isinstance(call.receiver, Thing) else None
        if isinstance(made, Call) and made.is_complete and not call.spot.guards:
            optimizer = made.argument(2, "optimizer")
            name = optimizer.name if isinstance(optimizer, Thing) and optimizer.kind == "optimizer" else None
            if optimizer is None or (name is not None and name.startswith("torch.optim.")):
                found.append(item(deeds.script, call, {"client": name}))
    return tuple(found)

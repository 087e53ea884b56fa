"""Gradient clipping by hand, on parameters of an engine's model."""

from __future__ import annotations

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.engine_use import (
    calls_on,
    each_once,
    engines,
    initialize_of,
    is_reached,
    path_in_model,
)
from dslint.runs.script.items import item, plain

CLIPPERS = {
    "torch.nn.utils.clip_grad_norm_": "max_norm",
    "torch.nn.utils.clip_grad.clip_grad_norm_": "max_norm",
    "torch.nn.utils.clip_grad_value_": "clip_value",
    "torch.nn.utils.clip_grad.clip_grad_value_": "clip_value",
}
"""By name, what the second argument is called."""


def clipped_by_hand(facts: Facts) -> tuple[Item, ...]:
    """Calls of torch's clipping functions on the parameters of a model that an engine trains."""
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        made = initialize_of(engine).spot
        if not calls_on(facts, engine, "step"):
            continue
        for call in each_once(deeds.calls):
            if call.receiver is not None or call.dotted not in CLIPPERS or call.spot.order < made.order:
                continue
            limit = plain(call.argument(1, CLIPPERS[call.dotted]))
            if _is_of_engine(call.argument(0, "parameters"), engine) and is_reached(call.spot, made):
                found.append(
                    item(deeds.script, call, {"limit": limit, "function": call.dotted.rpartition(".")[2]})
                )
    return tuple(found)


def _is_of_engine(value: object, engine: object) -> bool:
    return path_in_model(value, engine) is not None  # type: ignore[arg-type]

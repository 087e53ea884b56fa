"""Gradient clipping by hand, on parameters of an engine's model."""

from __future__ import annotations

from typing import Any

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.events import Call
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.engine_use import (
    calls_on,
    each_once,
    engines,
    initialize_of,
    is_reached,
    path_in_model,
)
from dslint.runs.script.facts.here import Here
from dslint.runs.script.items import item, plain
from dslint.runs.unknown import UNDECIDABLE

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
                function = call.dotted.rpartition(".")[2]
                fields = {"limit": limit, "function": function, **_dropped(Here(deeds, call.node), call, limit)}
                found.append(item(deeds.script, call, fields))
    return tuple(found)


def _is_of_engine(value: object, engine: object) -> bool:
    return path_in_model(value, engine) is not None  # type: ignore[arg-type]


def _dropped(here: Here, call: Call, limit: Any) -> dict[str, Any]:
    """The statement that clips, and the norm that DeepSpeed can clip by instead: the whole one, of order 2."""
    is_norm = call.dotted.endswith("clip_grad_norm_") and isinstance(limit, (int, float)) and limit > 0
    is_plain = len(call.node.args) <= 2 and {one.arg for one in call.node.keywords} <= {"parameters", "max_norm"}
    return {
        "statement": here.span(call.node) if here.is_statement() else UNDECIDABLE,
        "max_norm": limit if is_norm and is_plain else UNDECIDABLE,
    }

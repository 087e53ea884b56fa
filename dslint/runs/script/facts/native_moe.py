"""Facts about DeepSpeed's own mixture-of-experts layer."""

from __future__ import annotations

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.items import item

MOE = frozenset(["deepspeed.moe.layer.MoE", "deepspeed.moe.MoE"])


def native_moe_layers(facts: Facts) -> tuple[Item, ...]:
    """The layers that surely are made before an engine is (the first one)."""
    deeds = deeds_of(facts)
    engines = [call.spot.order for call in deeds.calls if call.name == "deepspeed.initialize"]
    found = [
        item(deeds.script, call, {})
        for call in deeds.calls
        if call.name in MOE and call.spot.is_called and not call.spot.guards
        if len(engines) == 1 and call.spot.order < engines[0]
    ]
    return tuple(found[:1])

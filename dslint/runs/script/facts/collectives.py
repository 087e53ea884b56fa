"""Calls that every rank has to make, since the ranks wait for one another inside of them."""

from __future__ import annotations

from collections.abc import Mapping

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.guards import one_rank_guard
from dslint.runs.script.items import item

COLLECTIVES: Mapping[str, bool] = {
    "accelerator.get_state_dict": True,
    "accelerator.save_state": False,
    "deepspeed.initialize": False,
    "deepspeed.zero.GatheredParameters": True,
    "engine.__call__": True,
    "engine.backward": False,
    "engine.load_checkpoint": False,
    "engine.save_16bit_model": True,
    "engine.save_checkpoint": False,
    "engine.save_fp16_model": True,
    "pipeline_engine.save_checkpoint": False,
    "pipeline_engine.train_batch": False,
}
"""By name, whether the ranks wait for one another under ZeRO stage 3 only."""


def one_rank_collectives(facts: Facts) -> tuple[Item, ...]:
    """Collective calls under a condition that only one rank meets."""
    assert facts.run.script is not None
    found = []
    for call in facts.run.script.calls:
        only_stage_3 = COLLECTIVES.get(call.name)
        guard = one_rank_guard(call.spot)
        if only_stage_3 is None or guard is None:
            continue
        fields = {"api": call.name, "only_stage_3": only_stage_3}
        place = getattr(guard.node, "test", guard.node)
        found.append(item(facts.run.script.script, call, fields, ((place, "only one rank gets past this"),)))
    return tuple(found)

"""Facts about how a script with an Accelerator saves the model that DeepSpeed trains."""

from __future__ import annotations

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.events import Call
from dslint.runs.script.facts.accelerator import asks, calls_of_accelerator, changes_config, preparations
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.items import item
from dslint.runs.script.values import Thing, origins


def gathered_saves(facts: Facts) -> tuple[Item, ...]:
    """Calls that ask the engine for all weights: `accelerator.get_state_dict(model)` and `save_model`."""
    deeds = deeds_of(facts)
    if changes_config(deeds):
        return ()
    models = [model for one in preparations(facts) for model in one.of("model")]
    return tuple(
        item(deeds.script, call, {})
        for call in calls_of_accelerator(facts, "get_state_dict", "save_model")
        if any(call.argument(0, "model") is model for model in models)
    )


def partitioned_saves(facts: Facts) -> tuple[Item, ...]:
    """`save_pretrained` of a prepared model that is given no state dict, outside of GatheredParameters."""
    deeds = deeds_of(facts)
    prepared = {id(model): one.call for one in preparations(facts) for model in one.of("model")}
    return tuple(
        item(deeds.script, call, {})
        for call in deeds.calls
        if call.dotted == "save_pretrained" and id(call.receiver) in prepared and not asks(deeds, call.spot)
        if _saves_partitions(call) and prepared[id(call.receiver)].spot.order < call.spot.order
    )


def _saves_partitions(call: Call) -> bool:
    """Adapters are left out: their small weights may be whole on every rank."""
    is_whole_model = not any(thing.name.startswith("peft.") for thing in origins(call.receiver, 30))
    is_gathered = any(isinstance(context, Thing) and context.kind == "gathered" for context in call.spot.contexts)
    return call.is_complete and not call.has(2, "state_dict") and is_whole_model and not is_gathered

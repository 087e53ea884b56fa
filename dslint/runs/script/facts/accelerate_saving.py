"""Facts about how a script with an Accelerator saves the model that DeepSpeed trains."""

from __future__ import annotations

import ast
from typing import Any

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.events import Call
from dslint.runs.script.facts.accelerator import asks, calls_of_accelerator, changes_config, preparations
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.here import Here, is_path
from dslint.runs.script.facts.plugin_arguments import plugin_fields
from dslint.runs.script.guards import one_rank_guard
from dslint.runs.script.items import item
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Thing, origins
from dslint.runs.unknown import UNDECIDABLE, Unknown


def gathered_saves(facts: Facts) -> tuple[Item, ...]:
    """Calls that ask the engine for all weights: `accelerator.get_state_dict(model)` and `save_model`."""
    deeds = deeds_of(facts)
    if changes_config(deeds):
        return ()
    models = [model for one in preparations(facts) for model in one.of("model")]
    return tuple(
        item(deeds.script, call, plugin_fields(deeds, call, "zero3_save_16bit_model", True))
        for call in calls_of_accelerator(facts, "get_state_dict", "save_model")
        if any(call.argument(0, "model") is model for model in models)
    )


def partitioned_saves(facts: Facts) -> tuple[Item, ...]:
    """`save_pretrained` of a prepared model that is given no state dict, outside of GatheredParameters."""
    deeds = deeds_of(facts)
    prepared = {id(model): one.call for one in preparations(facts) for model in one.of("model")}
    return tuple(
        item(deeds.script, call, _fields_of_save(deeds, call, prepared[id(call.receiver)]))
        for call in deeds.calls
        if call.dotted == "save_pretrained" and id(call.receiver) in prepared and not asks(deeds, call.spot)
        if _saves_partitions(call) and prepared[id(call.receiver)].spot.order < call.spot.order
    )


def _fields_of_save(deeds: Deeds, call: Call, prepared: Call) -> dict[str, Any]:
    state = _gathered_state(deeds, call, prepared)
    return {"state": state, **plugin_fields(deeds, call, "zero3_save_16bit_model", True)}


def _gathered_state(deeds: Deeds, call: Call, prepared: Call) -> str | Unknown:
    """The call that gathers the weights of the model that is saved, where all ranks come."""
    here = Here(deeds, call.node)
    accelerator = here.name_of(prepared.receiver) if isinstance(prepared.receiver, Thing) else UNDECIDABLE
    model = _wrapped(here, call.node.func)
    if isinstance(accelerator, Unknown) or model is None or one_rank_guard(call.spot) is not None:
        return UNDECIDABLE
    return f"{accelerator}.get_state_dict({model})"


def _wrapped(here: Here, func: ast.expr) -> str | None:
    """The name of the prepared model, of which `unwrap_model(model)` is saved."""
    saved = func.value if isinstance(func, ast.Attribute) else func
    if isinstance(saved, ast.Name):
        values = [
            one.value
            for one in ast.walk(here.function() or saved)
            if isinstance(one, ast.Assign) and [here.code(target) for target in one.targets] == [saved.id]
        ]
        saved = values[0] if len(values) == 1 else saved
    is_unwrapped = isinstance(saved, ast.Call) and here.code(saved.func).endswith(".unwrap_model")
    given = saved.args if isinstance(saved, ast.Call) and is_unwrapped else []
    return here.code(given[0]) if len(given) == 1 and is_path(given[0]) else None


def _saves_partitions(call: Call) -> bool:
    """Adapters are left out: their small weights may be whole on every rank."""
    is_whole_model = not any(thing.name.startswith("peft.") for thing in origins(call.receiver, 30))
    is_gathered = any(isinstance(context, Thing) and context.kind == "gathered" for context in call.spot.contexts)
    return call.is_complete and not call.has(2, "state_dict") and is_whole_model and not is_gathered

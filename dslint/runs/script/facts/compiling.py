"""Facts about torch.compile and engine.compile."""

from __future__ import annotations

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.config_use import node_of
from dslint.runs.script.events import Call
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.engine_use import engines, initialize_of
from dslint.runs.script.items import item
from dslint.runs.script.values import Thing

_SAVES = ("save_checkpoint", "save_16bit_model", "save_fp16_model")


def compiled_before(facts: Facts) -> tuple[Item, ...]:
    """Calls of initialize that get a compiled model: `saves` whether the engine's weights are saved."""
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        call = initialize_of(engine)
        model = call.argument(1, "model")
        if not isinstance(model, Thing) or model.kind != "compiled_model":
            continue
        if model.call is None or model.name != "torch.compile":
            continue
        fields = {"saves": any(one.name in {f"engine.{name}" for name in _SAVES} for one in deeds.calls)}
        place = node_of(model.call, 0, "model")
        related = ((model.call.node, "compiled here"),) if place is not None else ()
        found.append(item(deeds.script, call, fields, related))
    return tuple(found)


def never_compiled(facts: Facts) -> tuple[Item, ...]:
    """The initialize of a script that compiles nothing (one item or none)."""
    deeds = deeds_of(facts)
    made = [call for call in deeds.calls if call.name == "deepspeed.initialize"]
    if len(made) != 1 or not deeds.is_complete or any(map(_may_compile, deeds.calls)):
        return ()
    return (item(deeds.script, made[0], {}),)


def _may_compile(call: Call) -> bool:
    """Whether a call compiles, or hands the engine to code of another file that may do so."""
    if call.dotted.rpartition(".")[2] == "compile":
        return not call.dotted.startswith("re.")
    is_foreign = call.receiver is None and call.dotted.partition(".")[0] not in ("torch", "print", "deepspeed")
    given = (*call.positional, *call.keywords.values())
    return is_foreign and any(isinstance(value, Thing) and value.kind == "engine" for value in given)

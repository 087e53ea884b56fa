"""Mixed precision that a script does by hand around an engine: GradScaler, autocast."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.events import Call
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.engine_use import calls_on, each_once, engines, initialize_of, is_reached
from dslint.runs.script.items import item, plain
from dslint.runs.script.values import Thing, Value
from dslint.runs.unknown import UNDECIDABLE

_SCALED = "grad_scaler.scale"


def scaled_losses(facts: Facts) -> tuple[Item, ...]:
    """engine.backward on a loss that torch's GradScaler has scaled; `enabled` as the scaler was made."""
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        for call in each_once(calls_on(facts, engine, "backward")):
            loss = call.argument(0, "loss")
            scaler = _scaler_of(loss)
            if scaler is not None and is_reached(call.spot, initialize_of(engine).spot):
                related = () if scaler.node is None else ((scaler.node, "the scaler is made here"),)
                found.append(item(deeds.script, call, {"enabled": _enabled(scaler)}, related))
    return tuple(found)


def _scaler_of(loss: Value) -> Thing | None:
    if not isinstance(loss, Thing) or loss.name != _SCALED or not isinstance(loss.inputs[0], Thing):
        return None
    return loss.inputs[0]


def scaler_steps(facts: Facts) -> tuple[Item, ...]:
    """GradScaler.step on the optimizer that initialize returned, or was given."""
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        made = initialize_of(engine)
        optimizers = (engine.attributes["optimizer"], made.argument(2, "optimizer"))
        for call in each_once(deeds.calls):
            optimizer = call.argument(0, "optimizer")
            if call.name != "grad_scaler.step" or not isinstance(optimizer, Thing):
                continue
            if any(optimizer is one for one in optimizers) and is_reached(call.spot, made.spot):
                found.append(item(deeds.script, call, {"enabled": _enabled(call.receiver)}))
    return tuple(found)


def _enabled(made: Thing) -> Any:
    """The `enabled=` of a scaler or an autocast; on where it isn't given."""
    call = made.call
    if not isinstance(call, Call) or not call.is_complete:
        return UNDECIDABLE
    return plain(call.keywords["enabled"]) if "enabled" in call.keywords else True


# --- autocast ---

AUTOCASTS = ("torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast", "torch.amp.autocast_mode.autocast")


def autocast_forwards(facts: Facts) -> tuple[Item, ...]:
    """Forward passes of an engine inside of torch's autocast for CUDA devices."""
    deeds = deeds_of(facts)
    found = []
    for engine in engines(facts):
        for call in each_once(calls_on(facts, engine, "__call__", "forward")):
            for context in _autocasts(call):
                made = context.call
                node = made.node
                fields = {"enabled": _enabled(context), "device": _device(made)}
                if is_reached(call.spot, initialize_of(engine).spot):
                    found.append(item(deeds.script, call, fields, ((node, "autocast is switched on here"),)))
    return tuple(found)


def _autocasts(call: Call) -> Iterator[Thing]:
    for context in call.spot.contexts:
        if isinstance(context, Thing) and context.name in AUTOCASTS and isinstance(context.call, Call):
            yield context


def _device(call: Call) -> Any:
    if call.dotted == "torch.cuda.amp.autocast":
        return "cuda"
    device = plain(call.argument(0, "device_type"))
    return device.partition(":")[0] if isinstance(device, str) else device

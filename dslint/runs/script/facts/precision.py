"""Mixed precision that a script does by hand around an engine: GradScaler, autocast."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, TypeGuard

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.config_use import node_of
from dslint.runs.script.events import Call
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.engine_use import calls_on, each_once, engines, initialize_of, is_reached
from dslint.runs.script.facts.here import Here
from dslint.runs.script.items import item, plain
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Named, Thing, Value
from dslint.runs.unknown import UNDECIDABLE, Unknown

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
                fields = {"enabled": _enabled(scaler), **_unscaled(Here(deeds, call.node), call, scaler)}
                found.append(item(deeds.script, call, fields, related))
    return tuple(found)


def _unscaled(here: Here, backward: Call, scaler: Thing) -> dict[str, Any]:
    """Where the scaled loss is given, and the loss itself; Unknown where the scaler does more."""
    node = node_of(backward, 0, "loss")
    if not _is_scaling(node) or any(name != "scale" for name in _uses(here.deeds, scaler)):
        return {"scaled": UNDECIDABLE, "loss": UNDECIDABLE}
    return {"scaled": here.span(node), "loss": here.code(node.args[0])}


def _is_scaling(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether this is `….scale(loss)`."""
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "scale"
    return is_call and isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords


def _uses(deeds: Deeds, scaler: Value) -> list[str]:
    """The methods of a scaler that the script calls, each place once."""
    return [call.dotted for call in each_once(deeds.calls) if call.receiver is scaler]


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
                fields = {"enabled": _enabled(call.receiver), **_by_engine(Here(deeds, call.node), call, engine)}
                found.append(item(deeds.script, call, fields))
    return tuple(found)


_NOT_BY_ENGINE = {"by_engine": UNDECIDABLE, "scaled": UNDECIDABLE, "backward": UNDECIDABLE, "update": None}


def _by_engine(here: Here, step: Call, engine: Thing) -> dict[str, Any]:
    """The engine's step and backward instead of the scaler's; what the scaler does beside them goes."""
    name = here.name_of(engine)
    calls = [call for call in each_once(here.deeds.calls) if call.receiver is step.receiver]
    others = sorted(call.dotted for call in calls if call is not step)
    if isinstance(name, Unknown) or not here.is_statement() or others not in (["scale"], ["scale", "update"]):
        return _NOT_BY_ENGINE
    scaling = next(call.node for call in calls if call.dotted == "scale")
    update = next((call.node for call in calls if call.dotted == "update"), None)
    around = next((one for one in list(here.above(scaling))[:2] if isinstance(one, ast.Call)), None)
    if around is None or not _is_scaling(scaling) or here.function(scaling) is not here.function():
        return _NOT_BY_ENGINE
    func = around.func
    is_backward = isinstance(func, ast.Attribute) and func.attr == "backward" and not around.keywords
    is_own = is_backward and isinstance(func, ast.Attribute) and func.value is scaling and not around.args
    is_engines = is_backward and around.args == [scaling]
    if not is_own and not is_engines:
        return _NOT_BY_ENGINE
    return {
        "by_engine": f"{name}.step()",
        "scaled": here.span(around),
        "backward": f"{name}.backward({here.code(scaling.args[0])})",
        "update": None if update is None else here.span(update),
    }


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
                fields = {"enabled": _enabled(context), "device": _device(made), "dtype": _dtype(made)}
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


def _dtype(call: Call) -> str | Unknown:
    """The type that autocast calculates in, as torch_autocast calls it."""
    is_old = call.dotted == "torch.cuda.amp.autocast"
    dtype = call.argument(1, "dtype")
    if dtype is None and call.is_complete:
        return "float16"
    is_known = isinstance(dtype, Named) and dtype.name in ("torch.float16", "torch.half", "torch.bfloat16")
    if not is_known or (is_old and "dtype" not in call.keywords):
        return UNDECIDABLE
    return "bfloat16" if dtype.name == "torch.bfloat16" else "float16"

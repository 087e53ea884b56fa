"""Training steps that a script's own Trainers take in their own way."""

from __future__ import annotations

import ast
from typing import Any

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.events import Call
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.divisions import division_fields
from dslint.runs.script.facts.here import Here
from dslint.runs.script.facts.trainer_objects import trainers
from dslint.runs.script.items import item
from dslint.runs.script.values import Thing, Value
from dslint.runs.unknown import UNDECIDABLE, Unknown


def own_backwards(facts: Facts) -> tuple[Item, ...]:
    """`loss.backward()` in a Trainer's own training_step, past the engine."""
    found = []
    for call in _in_training_steps(facts):
        is_of_tensor = isinstance(call.receiver, Thing) and call.receiver.kind in (
            "result",
            "operation",
            "attribute",
        )
        if call.dotted == "backward" and is_of_tensor and not call.positional and _has_no_guard_of_its_own(call):
            found.append(item(deeds_of(facts).script, call, {"accelerated": _accelerated(facts, call)}))
    return tuple(found)


def _accelerated(facts: Facts, call: Call) -> str | Unknown:
    """The call that goes through the Trainer's Accelerator instead."""
    here, func = Here(deeds_of(facts), call.node), call.node.func
    method = here.function()
    names = method.args.args if isinstance(method, ast.FunctionDef) else []
    if not names or not isinstance(func, ast.Attribute) or call.node.args or call.node.keywords:
        return UNDECIDABLE
    return f"{names[0].arg}.accelerator.backward({here.code(func.value)})"


def twice_divided(facts: Facts) -> tuple[Item, ...]:
    """Losses that a Trainer's own training_step divides by the accumulation steps, as the engine does too."""
    found = []
    for call in _in_training_steps(facts):
        if call.dotted != "backward" or not call.is_complete or "scale_wrt_gas" in call.keywords:
            continue
        is_accelerators = isinstance(call.receiver, Thing) and call.receiver.kind == "accelerator"
        division = _division_by_steps(call.argument(0, "loss"), facts.value("accumulation"))
        if (
            is_accelerators
            and division is not None
            and division.node is not None
            and _has_no_guard_of_its_own(call)
        ):
            related = ((division.node, "the loss is divided here"),)
            fields = division_fields(Here(deeds_of(facts), call.node), division)
            found.append(item(deeds_of(facts).script, call, fields, related))
    return tuple(found)


def _in_training_steps(facts: Facts) -> list[Call]:
    """The calls in training_step methods of those Trainers that the script makes."""
    steps = {}
    for made in trainers(facts):
        made_of = made.result.attributes.get("__class__")
        method = None if made_of is None else made_of.members.get("training_step")
        if method is not None and hasattr(method, "node"):
            steps[method.node] = method
    return [
        call
        for call in deeds_of(facts).calls
        if call.spot.functions[-1:] == ("training_step",) and any(_is_inside(call, node) for node in steps)
    ]


def _is_inside(call: Call, definition: object) -> bool:
    first, last = getattr(definition, "lineno", 0), getattr(definition, "end_lineno", 0)
    return first <= call.node.lineno <= last


def _has_no_guard_of_its_own(call: Call) -> bool:
    """Whether nothing in the method decides on the call: `if self.use_apex: … else: …` knows what it does."""
    return not call.spot.guards


def _division_by_steps(loss: Value, steps: Any) -> Thing | None:
    """The division by gradient_accumulation_steps, or by just that number, that a loss was made by."""
    if not isinstance(loss, Thing) or loss.kind != "operation" or loss.name not in ("/", "*"):
        return None
    if loss.name == "/" and _is_steps(loss.inputs[1], steps):
        return loss
    return next((found for part in loss.inputs if (found := _division_by_steps(part, steps)) is not None), None)


def _is_steps(value: Value, steps: Any) -> bool:
    if not isinstance(value, Thing):
        return isinstance(value, int) and value > 1 and value == steps
    return value.name.rpartition(".")[2] in ("gradient_accumulation_steps", "current_gradient_accumulation_steps")

"""Facts about training loops with an Accelerator under DeepSpeed: backward, clipping, accumulation."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from typing import Any

from dslint.documents.source import Span
from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.events import Call
from dslint.runs.script.facts.accelerator import (
    Preparation,
    asks,
    calls_of_accelerator,
    changes_config,
    only_accelerator,
    preparations,
    prepared_models_called,
    trains_with_deepspeed,
)
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.divisions import division_fields
from dslint.runs.script.facts.here import Here
from dslint.runs.script.facts.plugin_arguments import plugin_fields
from dslint.runs.script.items import item, plain, text_at
from dslint.runs.script.known_calls import NOT_KNOWN
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Thing, Value
from dslint.runs.unknown import UNDECIDABLE, Unknown

OTHER_ACCUMULATION = frozenset(
    ["accumulate", "no_sync", "_do_sync", "_set_sync_gradients", "set_gradient_accumulation_boundary"]
)
"""Methods by which a loop may tell Accelerate, or DeepSpeed, which backward pass ends a step."""


def plain_backwards(facts: Facts) -> tuple[Item, ...]:
    """`loss.backward()` on what a prepared model gave, in a script that never calls the Accelerator's backward."""
    deeds = deeds_of(facts)
    found = [call for call in deeds.calls if call.dotted == "backward"]
    if facts.framework != "accelerate" or any(_is_of_trainer(call.receiver) for call in found):
        return ()
    prepared = preparations(facts)
    return tuple(
        item(deeds.script, call, {"accelerated": _accelerated(deeds, call) if len(found) == 1 else UNDECIDABLE})
        for call in found
        if not asks(deeds, call.spot) and _trains_nothing(deeds, prepared, call)
    )


def _accelerated(deeds: Deeds, call: Call) -> str | Unknown:
    """The call that goes through the Accelerator instead."""
    made, here, func = only_accelerator(deeds), Here(deeds, call.node), call.node.func
    is_bare = isinstance(func, ast.Attribute) and not call.node.args and not call.node.keywords
    name = here.name_of(made.result) if made is not None and is_bare else UNDECIDABLE
    if isinstance(name, Unknown) or not isinstance(func, ast.Attribute):
        return UNDECIDABLE
    return f"{name}.backward({here.code(func.value)})"


def _is_of_trainer(receiver: Value) -> bool:
    """Whether a backward is the Accelerator's, or an engine's."""
    if not isinstance(receiver, Thing):
        return False
    return receiver.kind in ("accelerator", "parameter", "engine") or "prepared_by" in receiver.attributes


def _trains_nothing(deeds: Deeds, prepared: Sequence[Preparation], call: Call) -> bool:
    """Whether the model was prepared with its optimizer, and nobody steps its engine."""
    models = prepared_models_called(prepared, call.receiver)
    together = [one for one in prepared if any(_is_among(value, models) for value in one.call.positional)]
    if not any(one.of("optimizer", "dummy_optimizer") for one in together):
        return False
    return not any(one.dotted == "step" and _is_among(one.receiver, models) for one in deeds.calls)


def _is_among(value: Value, models: Sequence[Thing]) -> bool:
    return any(value is model for model in models)


def clippings(facts: Facts) -> tuple[Item, ...]:
    """Calls of clip_grad_norm_: `asked` is the largest norm they ask for (Unknown where it can't be told)."""
    if changes_config(deeds_of(facts)):
        return ()
    found = []
    for call in calls_of_accelerator(facts, "clip_grad_norm_"):
        asked = plain(call.argument(1, "max_norm"))
        is_limit = isinstance(asked, (int, float)) and not isinstance(asked, bool) and 0 < asked < math.inf
        fields = {
            "asked": asked if is_limit else UNDECIDABLE,
            "asked_span": _value_span(Here(deeds_of(facts), call.node), call, "max_norm", 1),
            **plugin_fields(deeds_of(facts), call, "gradient_clipping", asked),
        }
        found.append(item(deeds_of(facts).script, call, fields))
    return tuple(found)


def value_clippings(facts: Facts) -> tuple[Item, ...]:
    """Calls of clip_grad_value_."""
    return tuple(
        item(deeds_of(facts).script, call, {}) for call in calls_of_accelerator(facts, "clip_grad_value_")
    )


def accumulation(facts: Facts) -> Any:
    """Forward passes an optimizer step, as DeepSpeed counts them under Accelerate: 1 where a config is silent."""
    deeds = deeds_of(facts)
    made = only_accelerator(deeds)
    if made is None or not trains_with_deepspeed(facts, made.result) or changes_config(deeds):
        return UNDECIDABLE
    given = facts.given("config.gradient_accumulation_steps")
    if given is False:
        return 1
    return given if given is not True else facts.value("config.gradient_accumulation_steps")


def asked_accumulations(facts: Facts) -> tuple[Item, ...]:
    """The accumulation that the Accelerator is asked for in so many words (one item or none)."""
    deeds = deeds_of(facts)
    made = only_accelerator(deeds)
    if made is None or not trains_with_deepspeed(facts, made.result):
        return ()
    if not made.has(3, "gradient_accumulation_steps"):
        return ()
    asked = plain(made.argument(3, "gradient_accumulation_steps"))
    fields = {
        "asked": asked if isinstance(asked, int) else UNDECIDABLE,
        "asked_span": _value_span(Here(deeds, made.node), made, "gradient_accumulation_steps", 3),
    }
    return (item(deeds.script, made, fields),)


def _value_span(here: Here, call: Call, name: str, position: int) -> Span | Unknown:
    """Where the value of an argument is written, as a number and not as something that brings one."""
    given = [keyword.value for keyword in call.node.keywords if keyword.arg == name]
    if not given and len(call.node.args) > position and not any(map(_is_starred, call.node.args)):
        given = [call.node.args[position]]
    return here.span(given[0]) if len(given) == 1 and isinstance(given[0], ast.Constant) else UNDECIDABLE


def _is_starred(node: ast.expr) -> bool:
    return isinstance(node, ast.Starred)


def uncounted_backwards(facts: Facts) -> tuple[Item, ...]:
    """The Accelerator's backward in a loop that nothing tells where a step ends."""
    deeds = deeds_of(facts)
    if _tells_accumulation(deeds):
        return ()
    return tuple(
        item(deeds.script, call, {}) for call in calls_of_accelerator(facts, "backward") if call.spot.loops
    )


def _tells_accumulation(deeds: Deeds) -> bool:
    if any(call.dotted.rpartition(".")[2] in OTHER_ACCUMULATION for call in deeds.calls):
        return True
    return any(store.name in ("sync_gradients", "gradient_state") for store in deeds.stores)


def divided_losses(facts: Facts) -> tuple[Item, ...]:
    """Losses that are divided by the accumulation before the Accelerator's backward divides them again."""
    deeds = deeds_of(facts)
    found = []
    for call in calls_of_accelerator(facts, "backward"):
        division = next(_divisions(call.argument(0, "loss")), None)
        if division is None or "scale_wrt_gas" in call.keywords:
            continue
        by = _divisor(deeds, division)
        if by is not NOT_KNOWN:
            place = division.node
            related = ((place, "divided here"),) if place is not None and place is not call.node else ()
            fields = {"divisor": by, "by": text_at(deeds.script, _right(division))}
            fields |= division_fields(Here(deeds, call.node), division)
            found.append(item(deeds.script, call, fields, related))
    return tuple(found)


def _divisions(value: Value) -> Iterator[Thing]:
    """The divisions that a loss went through last: sums and products with other things may mean anything."""
    while isinstance(value, Thing) and value.kind == "operation":
        if value.name == "/":
            yield value
        value = value.inputs[0]


def _right(division: Thing) -> ast.AST:
    node = division.node
    if isinstance(node, ast.BinOp):
        return node.right
    return node.value if isinstance(node, ast.AugAssign) else node or ast.Constant(None)


def _divisor(deeds: Deeds, division: Thing) -> Any:
    """The number of passes that a loss is divided by: None where it is the Accelerator's own number."""
    by = division.inputs[1]
    if isinstance(by, Thing) and by.kind == "attribute" and by.name == "gradient_accumulation_steps":
        owner = by.inputs[0] if by.inputs else None
        return None if isinstance(owner, Thing) and owner.kind == "accelerator" else NOT_KNOWN
    if (
        isinstance(by, bool)
        or not isinstance(by, int)
        or "accum" not in text_at(deeds.script, _right(division)).lower()
    ):
        return NOT_KNOWN
    return by

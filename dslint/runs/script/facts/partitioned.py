"""Models whose weights are spread over the ranks under ZeRO stage 3, and what belongs to them.

Whether the stage is 3 is for the rules to ask; here it is told which models would be spread, and from when on.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from dslint.runs.facts import Facts
from dslint.runs.script.events import Call, Spot
from dslint.runs.script.facts.accelerator import preparations
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.engine_use import engines, initialize_of
from dslint.runs.script.facts.layers import largest_parameter
from dslint.runs.script.guards import parts_of
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import NOTHING, Thing, Value, origins

LONGEST_PATH = 14
"""Attributes after one another that are followed: `model.base.layers[0].weight` has four."""

_PARAMETER_NAMES = frozenset(["weight", "bias", "lm_head_weight", "class_embedding", "pos_embed", "cls_token"])
_HARMLESS_CONTEXTS = frozenset(
    [
        "contextlib.nullcontext",
        "open",
        "torch.amp.autocast",
        "torch.autocast",
        "torch.cuda.amp.autocast",
        "torch.cuda.stream",
        "torch.enable_grad",
        "torch.inference_mode",
        "torch.no_grad",
        "torch.profiler.profile",
        "torch.profiler.record_function",
        "torch.set_grad_enabled",
        "tqdm.auto.tqdm",
        "tqdm.tqdm",
        "warnings.catch_warnings",
    ]
)
_ASKS = re.compile(
    r"stage|zero_?(3|three|opt|dp|init)|z3|ds_(id|status|tensor|numel|shape|config)|deepspeed(?!\.)|fsdp|partition"
    r"|shard|gather|numel|plugin|distributed_type|world_?size|num_processes|n_gpus?\b",
    re.IGNORECASE,
)
"""Words of conditions that may ask whether the weights are spread, or whether there are other ranks at all."""


def asks(deeds: Deeds, spot: Spot) -> bool:
    """Whether a condition around a place may ask for the stage, so that it may never be reached under stage 3."""
    return any(_may_ask(deeds, guard.node, guard.test) for guard in spot.guards)


def _may_ask(deeds: Deeds, node: ast.AST, test: Value) -> bool:
    place = getattr(node, "test", None)
    if place is not None:
        owner = deeds.script.owner(place)
        if _ASKS.search(owner.source.slice(owner.whole_span(place))):
            return True
    return any(_ASKS.search(thing.name) for thing in parts_of(test))


def gathered_at(spot: Spot) -> list[Thing]:
    """The GatheredParameters around a place, the outermost first."""
    return [context for context in spot.contexts if isinstance(context, Thing) and context.kind == "gathered"]


def may_be_gathered(spot: Spot) -> bool:
    """Whether weights may be whole at a place: inside of GatheredParameters, or of a context nobody knows."""
    return not all(_is_harmless(context) for context in spot.contexts)


def _is_harmless(context: Value) -> bool:
    if not isinstance(context, Thing):
        return False
    if context.kind == "file" or context.name in _HARMLESS_CONTEXTS:
        return True
    return context.kind == "zero_init" or context.name in ("accelerator.accumulate", "accelerator.autocast")


@dataclass(frozen=True)
class Spread:
    """The models that a script gives to DeepSpeed.

    Attributes:
        since: by the identity of a model or engine, the step after which its weights are spread.
        models: the same things themselves.
    """

    since: dict[int, int]
    models: tuple[Thing, ...]

    def holds(self, value: Value, spot: Spot) -> bool:
        """Whether a value is, at a place, surely a model whose weights are spread, or a part of one."""
        return self.owner(value, spot) is not None

    def owner(self, value: Value, spot: Spot, depth: int = 0) -> Thing | None:
        """The model, or engine, that a value is or is a part of; None where it isn't surely one by then."""
        if not isinstance(value, Thing) or depth > LONGEST_PATH:
            return None
        if id(value) in self.since:
            return value if self.since[id(value)] < spot.order else None
        if value.kind == "either" or value.name == "either":
            owners = [self.owner(part, spot, depth + 1) for part in value.inputs]
            return None if None in owners or not owners else owners[0]
        if value.kind in ("attribute", "element") and value.inputs:
            return self.owner(value.inputs[0], spot, depth + 1)
        return next((model for model in self.models if self._is_part(value, model, spot)), None)

    def _is_part(self, value: Thing, model: Thing, spot: Spot) -> bool:
        is_attribute = any(value is part for part in model.attributes.values())
        return is_attribute and value.kind == "model" and self.since[id(model)] < spot.order

    def parameter_owner(self, value: Value, spot: Spot) -> Thing | None:
        """The model that a value is surely a parameter of, at a place where its weights are spread."""
        if not isinstance(value, Thing):
            return None
        listed = listed_in(value)
        if listed is not None:
            return self.owner(listed.receiver, spot)
        if value.kind == "attribute" and value.name in _PARAMETER_NAMES and value.inputs:
            return self.owner(value.inputs[0], spot)
        return None


def listed_in(value: Thing) -> Call | None:
    """For an item of `model.parameters()`, or the second part of one of `named_parameters()`: that call."""
    if value.kind == "element" and value.name == "1" and value.inputs:
        inner = value.inputs[0]
        call = (
            inner.inputs[0].call if isinstance(inner, Thing) and inner.kind == "item" and _first(inner) else None
        )
        return call if call is not None and call.dotted == "named_parameters" else None
    if value.kind == "item" and _first(value):
        call = value.inputs[0].call
        return call if call is not None and call.dotted == "parameters" else None
    return None


def _first(value: Thing) -> Thing | None:
    first = value.inputs[0] if value.inputs else None
    return first if isinstance(first, Thing) else None


def spread_models(facts: Facts) -> Spread:
    """The models that a script gives to DeepSpeed, and its engines, where they all have the run's config.

    A PipelineModule is left out: stage 3 doesn't take one.
    """
    deeds = deeds_of(facts)
    since: dict[int, int] = {}
    things: list[Thing] = []

    def add(thing: Value, order: int) -> None:
        if isinstance(thing, Thing):
            if id(thing) not in since:
                things.append(thing)
            since[id(thing)] = min(order, since.get(id(thing), order))

    for engine in engines(facts):
        add(engine, -1)
        add(engine.attributes.get("module"), initialize_of(engine).spot.order)
    if facts.framework == "accelerate":
        for one in preparations(facts):
            for model in one.of("model"):
                add(model, one.call.spot.order)
    for call in deeds.calls:
        if call.name == "trainer.train" and isinstance(call.receiver, Thing):
            add(call.receiver.attributes.get("model"), call.spot.order)
            made = call.receiver.call
            add(None if made is None else made.argument(0, "model"), call.spot.order)
        elif is_made_spread(call):
            add(call.result, call.spot.order)
    return Spread(since, tuple(things))


def is_made_spread(call: Call) -> bool:
    """Whether a call makes a model inside of zero.Init that surely is switched on.

    from_pretrained is left out: it has ways of its own to make weights.
    """
    made = call.result
    return (
        isinstance(made, Thing)
        and made.kind == "model"
        and made.call is call
        and not call.dotted.endswith(("from_pretrained", "from_config"))
        and any(is_switched_on(context) for context in call.spot.contexts)
    )


def is_switched_on(context: Value) -> bool:
    """Whether this is a zero.Init, or a GatheredParameters, that nothing may have switched off."""
    if not isinstance(context, Thing) or context.kind not in ("zero_init", "gathered") or context.call is None:
        return False
    position = 7 if context.kind == "zero_init" else 3
    enabled = context.call.argument(position, "enabled") if context.call.has(position, "enabled") else True
    return context.call.is_complete and enabled is True


def is_adapter(model: Value) -> bool:
    """Whether a model was made by PEFT."""
    return any(thing.name.startswith(("peft.", "unsloth")) for thing in origins(model, 30))


def largest(model: Value) -> int | None:
    """Elements of the largest parameter; None where the file doesn't tell."""
    if isinstance(model, Thing) and model.kind == "engine":
        model = model.attributes.get("module", NOTHING)
    return largest_parameter(model)

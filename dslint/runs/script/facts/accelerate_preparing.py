"""Facts about what `accelerator.prepare` is given under DeepSpeed."""

from __future__ import annotations

from typing import Any

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.facts.accelerator import Preparation, calls_of_accelerator, changes_config, preparations
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.items import item
from dslint.runs.script.values import Thing, Value, origins

REPLACED = frozenset(
    ["ASGD", "Adadelta", "Adamax", "LBFGS", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD", "Adafactor", "Muon"]
)
"""Optimizers of torch that have none."""


def loaderless(facts: Facts) -> tuple[Item, ...]:
    """The first `prepare` that must find a data loader among its arguments and doesn't (one item or none)."""
    deeds, all_of_them = deeds_of(facts), preparations(facts)
    is_seen_whole = len(all_of_them) == sum(call.name == "accelerator.prepare" for call in deeds.calls)
    if changes_config(deeds) or not is_seen_whole:
        return ()
    for one in all_of_them:
        if not one.call.spot.is_called or not one.is_clear or (one.of("model") and one.of("loader")):
            return ()
        if not one.of("loader"):
            return (item(deeds.script, one.call, {"has_model": bool(one.of("model"))}),)
    return ()


def apart(facts: Facts) -> tuple[Item, ...]:
    """Models that are prepared without the optimizer of their parameters, which another `prepare` gets."""
    deeds, all_of_them = deeds_of(facts), preparations(facts)
    found = []
    for one in all_of_them:
        models = one.of("model")
        if not one.is_clear or len(models) != 1 or one.of("optimizer", "dummy_optimizer"):
            continue
        if any(_has(other, models[0]) for other in all_of_them if other is not one):
            continue
        other = next((two for two in all_of_them if two is not one and _has_its_optimizer(two, models[0])), None)
        if other is not None:
            found.append(item(deeds.script, one.call, {}, ((other.call.node, "the optimizer is prepared here"),)))
    return tuple(found)


def _has(one: Preparation, value: Value) -> bool:
    return any(value is argument for argument in one.call.positional)


def _has_its_optimizer(one: Preparation, model: Value) -> bool:
    optimizers = one.of("optimizer")
    return not one.of("model") and any(
        model is thing for optimizer in optimizers for thing in origins(optimizer, 60)
    )


def several_models(facts: Facts) -> tuple[Item, ...]:
    """Calls of `prepare` with more than one model: `models` is their number."""
    return tuple(
        item(deeds_of(facts).script, one.call, {"models": len(one.of("model"))})
        for one in preparations(facts)
        if len({id(model) for model in one.of("model")}) > 1
    )


def second_models(facts: Facts) -> tuple[Item, ...]:
    """Backward passes of one Accelerator through a model that isn't the first it prepared with an optimizer."""
    deeds = deeds_of(facts)
    trained = [one for one in preparations(facts) if _is_for_training(one)]
    found = []
    for call in calls_of_accelerator(facts, "backward"):
        own = [one for one in trained if one.call.receiver is call.receiver]
        if len(own) < 2 or own[0].of("model")[0] is own[1].of("model")[0]:
            continue
        first, later = own[0].of("model")[0], own[1].of("model")[0]
        called = [thing.call.receiver for thing in origins(call.argument(0, "loss")) if _is_forward(thing)]
        if any(model is later for model in called) and not any(model is first for model in called):
            found.append(item(deeds.script, call, {}, ((own[0].call.node, "it steps the model prepared here"),)))
    return tuple(found)


def _is_for_training(one: Preparation) -> bool:
    has_both = len(one.of("model")) == 1 and bool(one.of("optimizer", "dummy_optimizer"))
    return has_both and not one.call.spot.guards and not one.call.spot.loops


def _is_forward(thing: Thing) -> bool:
    return thing.call is not None and thing.call.dotted in ("__call__", "forward")


def optimizers(facts: Facts) -> tuple[Item, ...]:
    """The optimizers that are prepared.

    `kind` is "torch" or "dummy", `name` what makes it, `replaced` whether DeepSpeed's Adam on the CPU takes its
    place under offload.
    """
    return _parts(facts, {"optimizer": "torch", "dummy_optimizer": "dummy"})


def schedulers(facts: Facts) -> tuple[Item, ...]:
    """The schedulers that are prepared.

    `kind` is "torch" or "dummy", `has_callable` whether a dummy brings a function that makes one, `beside_dummy`
    whether a DummyOptim is prepared in the same call.
    """
    return _parts(facts, {"scheduler": "torch", "dummy_scheduler": "dummy"})


def _parts(facts: Facts, kinds: dict[str, str]) -> tuple[Item, ...]:
    deeds = deeds_of(facts)
    if changes_config(deeds):
        return ()
    return tuple(
        item(deeds.script, one.call, _fields(one, value, kinds[role]), ((value.call.node, "made here"),))
        for one in preparations(facts)
        for value, role in zip(one.call.positional, one.roles, strict=True)
        if role in kinds and value.call is not None
    )


def _fields(one: Preparation, value: Thing, kind: str) -> dict[str, Any]:
    made = value.call
    return {
        "kind": kind,
        "name": value.name,
        "replaced": _is_replaced(value),
        "has_callable": not made.is_complete or made.argument(3, "lr_scheduler_callable") is not None,
        "beside_dummy": bool(one.of("dummy_optimizer")),
    }


def _is_replaced(value: Thing) -> bool:
    package, _, name = value.name.rpartition(".")
    return package in ("torch.optim", "transformers", "transformers.optimization") and name in REPLACED


def placements(facts: Facts) -> tuple[Item, ...]:
    """Calls of `prepare` that are given a device_placement."""
    return tuple(
        item(deeds_of(facts).script, call, {})
        for call in calls_of_accelerator(facts, "prepare")
        if call.keywords.get("device_placement") is not None
    )

"""What a script does with models of Transformers that DeepSpeed has taken."""

from __future__ import annotations

import ast

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.events import Call
from dslint.runs.script.facts.accelerator import asks
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.model_loading import awakeners
from dslint.runs.script.facts.trainer_objects import (
    class_of,
    is_adapted,
    model_itself,
    surely_comes_here,
    trainer_of,
    trainers,
)
from dslint.runs.script.items import item
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Class, Thing, origins
from dslint.runs.unknown import UNDECIDABLE

AUTO_SIZES = ("reduce_bucket_size", "stage3_prefetch_bucket_size", "stage3_param_persistence_threshold")
"""Keys of zero_optimization whose "auto" is worked out from the model's hidden size."""


def saved_partitioned(facts: Facts) -> tuple[Item, ...]:
    """`trainer._save` with a state_dict that was taken from the model as it is, after its training."""
    deeds = deeds_of(facts)
    found = []
    for call in deeds.calls:
        taken = _state_dict_of(call) if call.name == "trainer._save" and call.is_complete else None
        trainer = None if taken is None else trainer_of(taken.receiver, facts)
        if taken is None or trainer is None or is_adapted(trainer, facts) or not call.spot.is_called:
            continue
        may_be_whole = asks(deeds, call.spot) or asks(deeds, taken.spot) or bool(taken.spot.contexts)
        if not may_be_whole and _is_trained_before(taken, trainer, deeds):
            found.append(item(deeds.script, call, {}, ((taken.node, "is taken from the model as it is"),)))
    return tuple(found)


def _state_dict_of(call: Call) -> Call | None:
    """The call of `state_dict` that gave what a Trainer shall save."""
    for thing in origins(call.argument(1, "state_dict")):
        if thing.call is not None and thing.call.dotted == "state_dict":
            return thing.call if isinstance(thing.call, Call) else None
    return None


def _is_trained_before(call: Call, trainer: Call, deeds: Deeds) -> bool:
    return any(
        other.dotted == "train" and other.receiver is trainer.result and other.spot.order < call.spot.order
        for other in deeds.calls
    )


def resized_late(facts: Facts) -> tuple[Item, ...]:
    """`resize_token_embeddings` of a model that an engine, or a Trainer's training, has taken already."""
    deeds = deeds_of(facts)
    found = []
    for call in deeds.calls:
        if call.dotted != "resize_token_embeddings" or not surely_comes_here(call.spot):
            continue
        taker = _taker_of(call, facts)
        if taker is not None:
            related = ((taker.node, "the optimizer takes the parameters here"),)
            found.append(item(deeds.script, call, {"taker": taker.name}, related))
    return tuple(found)


def _taker_of(call: Call, facts: Facts) -> Call | None:
    """The earlier call that gave a model's parameters to an optimizer."""
    model = model_itself(call.receiver)
    for other in deeds_of(facts).calls:
        if other.spot.order >= call.spot.order:
            return None
        if other.name == "deepspeed.initialize" and model_itself(other.argument(1, "model")) is model:
            return other
    return None


def generates_alone(facts: Facts) -> tuple[Item, ...]:
    """`generate` on an engine's model, without synced_gpus, where Transformers knows nothing of ZeRO stage 3."""
    deeds = deeds_of(facts)
    engines = [call.result[0] for call in deeds.calls if call.name == "deepspeed.initialize" and _unpacks(call)]
    if awakeners(deeds) or not engines:
        return ()
    modules = {id(model_itself(engine.attributes.get("module"))) for engine in engines}
    found = []
    for call in deeds.calls:
        if call.dotted != "generate" or not call.is_complete or call.keywords.get("synced_gpus") is True:
            continue
        is_unsure = (
            isinstance(call.keywords.get("synced_gpus"), Thing) or call.spot.contexts or asks(deeds, call.spot)
        )
        is_engines = (
            any(call.receiver is engine for engine in engines) or id(model_itself(call.receiver)) in modules
        )
        is_later = any(engine.node is not None and _is_before(engine, call, deeds) for engine in engines)
        if is_engines and is_later and not is_unsure:
            is_spread = "synced_gpus" in call.spread
            found.append(item(deeds.script, call, {"synced": UNDECIDABLE if is_spread else "True"}))
    return tuple(found)


def _unpacks(call: Call) -> bool:
    return isinstance(call.result, tuple) and bool(call.result) and isinstance(call.result[0], Thing)


def _is_before(engine: Thing, call: Call, deeds: Deeds) -> bool:
    initialize = engine.attributes.get("initialize")
    return isinstance(initialize, Call) and initialize.spot.order < call.spot.order


def without_hidden_size(facts: Facts) -> tuple[Item, ...]:
    """Trainers' models of one's own making whose config, if they have one, has no size to work others out from.

    `lacks` says what is missing: "`config`", or "`hidden_size` in its config".
    """
    deeds = deeds_of(facts)
    found = []
    for trainer in trainers(facts):
        model = model_itself(trainer.argument(0, "model"))
        made_of = class_of(model)
        if made_of is None or not isinstance(model, Thing):
            continue
        lacks = _missing_size(made_of, model, deeds)
        if lacks is not None:
            found.append(item(deeds.script, trainer, {"name": made_of.node.name, "lacks": lacks}))
    return tuple(found)


def _missing_size(made_of: Class, model: Thing, deeds: Deeds) -> str | None:
    """What a model lacks that its hidden size could be read from; None where it may lack nothing."""
    config_class = made_of.members.get("config_class")
    if isinstance(config_class, Class) and set(config_class.bases) <= _CONFIGS:
        owner = deeds.script.owner(config_class.node)
        text = owner.source.slice(owner.whole_span(config_class.node))
        has_size = any(word in text for word in ("hidden_size", "attribute_map", "text_config", "__getattr"))
        return None if has_size else f"`hidden_size` in its {config_class.node.name}"
    if made_of.bases and set(made_of.bases) <= {"torch.nn.Module"} and not _may_have_config(model, deeds):
        return "`config`"
    return None


_CONFIGS = {"transformers.PretrainedConfig", "transformers.PreTrainedConfig"}
"""Base classes of configs, which have no size of their own."""


def _may_have_config(model: Thing, deeds: Deeds) -> bool:
    made_of = class_of(model)
    assert made_of is not None
    if {"config", "__getattr__", "__getattribute__", "__setattr__"} & {*made_of.members, *model.attributes}:
        return True
    return any(isinstance(node, ast.Name) and node.id == "setattr" for node in ast.walk(made_of.node))


def auto_sizes(facts: Facts) -> list[str]:
    """The keys whose "auto" needs the model's hidden size."""
    paths = [("zero_optimization", name) for name in AUTO_SIZES]
    return [path[-1] for path in paths if facts.config.written(path) == "auto"]

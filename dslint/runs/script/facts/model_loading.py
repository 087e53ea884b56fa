"""How a script loads, changes and saves the models of Transformers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.events import Call
from dslint.runs.script.facts.accelerator import asks, deeds_of
from dslint.runs.script.facts.trainer_objects import (
    class_of,
    is_adapted,
    keyword_node,
    made,
    model_itself,
    step_at,
    surely_comes_here,
    trainer_of,
    trainers,
)
from dslint.runs.script.items import item
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Table, Thing, origins

LOADERS = frozenset(["from_pretrained", "from_config", "_from_config"])
AWAKENERS = frozenset(["training_args", "hf_deepspeed_config", "accelerator", "deepspeed_plugin"])
"""What tells Transformers of ZeRO stage 3 when it is made, so that models are partitioned as they are loaded."""

AUTO_SIZES = ("reduce_bucket_size", "stage3_prefetch_bucket_size", "stage3_param_persistence_threshold")
"""Keys of zero_optimization whose "auto" is worked out from the model's hidden size."""


def _loads(deeds: Deeds) -> Iterator[Call]:
    """The calls that load, or set up, a model of Transformers."""
    for call in deeds.calls:
        is_loader = call.receiver is None and call.dotted.rpartition(".")[2] in LOADERS
        is_model = isinstance(call.result, Thing) and call.result.kind == "model"
        if is_loader and is_model and call.dotted.startswith("transformers."):
            yield call


def _awakeners(deeds: Deeds) -> list[Call]:
    """The calls after which Transformers may know of ZeRO stage 3."""
    found = []
    for call in deeds.calls:
        results = call.result if isinstance(call.result, tuple) else (call.result,)
        if any(isinstance(one, Thing) and one.kind in AWAKENERS and one.call in (None, call) for one in results):
            found.append(call)
    return found


def loaded_early(facts: Facts) -> tuple[Item, ...]:
    """Models for a Trainer that are loaded before the arguments which tell Transformers of ZeRO stage 3."""
    deeds = deeds_of(facts)
    awakeners = _awakeners(deeds)
    if not awakeners or not all(call.spot.is_called for call in awakeners):
        return ()
    first = awakeners[0]
    found = []
    for load in _loads(deeds):
        is_early = load.spot.order < first.spot.order and surely_comes_here(load.spot)
        is_quantized = load.has(None, "quantization_config") or not load.is_complete
        if is_early and not is_quantized and not first.spot.guards and _is_trained(load.result, facts):
            fields = {"later": first.dotted.rpartition(".")[2]}
            found.append(item(deeds.script, load, fields, ((first.node, "comes too late for it"),)))
    return tuple(found)


def _is_trained(model: Thing, facts: Facts) -> bool:
    """Whether a Trainer gets a model, or something made from it."""
    return any(any(thing is model for thing in origins(call.argument(0, "model"))) for call in trainers(facts))


def device_maps(facts: Facts) -> tuple[Item, ...]:
    """Models that get a device_map while Transformers surely knows of the config."""
    deeds = deeds_of(facts)
    keepers = [
        call
        for call in deeds.calls
        if isinstance(call.result, (Thing, tuple)) and _keeps_config(call, facts) and surely_comes_here(call.spot)
    ]
    found = []
    for load in _loads(deeds):
        value = load.keywords.get("device_map")
        is_map = (isinstance(value, str) and value != "") or isinstance(value, (int, Table))
        if not is_map or isinstance(value, bool) or not surely_comes_here(load.spot):
            continue
        keeper = next((call for call in keepers if call.spot.order < load.spot.order), None)
        if keeper is not None:
            node = keyword_node(load, "device_map")
            related = ((keeper.node, "tells Transformers of ZeRO stage 3"),)
            found.append(item(deeds.script, step_at(load, node), {"loader": load.dotted}, related))
    return tuple(found)


def _keeps_config(call: Call, facts: Facts) -> bool:
    """Whether a call makes the arguments that hold the config, and a name of the module keeps them."""
    arguments = facts.arguments
    if arguments is None or call.is_dropped:
        return False
    results = call.result if isinstance(call.result, tuple) else (call.result,)
    return any(one is arguments.thing for one in results)


def unkept_configs(facts: Facts) -> tuple[Item, ...]:
    """HfDeepSpeedConfigs that are gone before the models are loaded."""
    deeds = deeds_of(facts)
    loads = list(_loads(deeds))
    found = []
    for call in made(deeds, "hf_deepspeed_config"):
        is_gone = call.is_dropped or _is_forgotten(call, deeds)
        later = [load for load in loads if load.spot.order > call.spot.order and not _is_within(load, call)]
        others = [one for one in _awakeners(deeds) if one is not call]
        if is_gone and later and not others and surely_comes_here(call.spot):
            related = ((later[0].node, "is loaded without it"),)
            found.append(item(deeds.script, call, {"dropped": call.is_dropped}, related))
    return tuple(found)


def _is_within(load: Call, call: Call) -> bool:
    """Whether a model is loaded while the function is still running in which a local name keeps the config."""
    around = call.spot.functions
    return not call.is_dropped and load.spot.functions[: len(around)] == around


def _is_forgotten(call: Call, deeds: Deeds) -> bool:
    """Whether only a local name of a function, that is used nowhere else, keeps what a call makes."""
    tree = deeds.script.owner(call.node).tree
    if not call.spot.functions or tree is None:
        return False
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name == call.spot.functions[-1]:
            for statement in ast.walk(function):
                if isinstance(statement, ast.Assign) and statement.value is call.node:
                    return _is_local(statement, function)
    return False


def _is_local(statement: ast.Assign, function: ast.FunctionDef) -> bool:
    if len(statement.targets) != 1 or not isinstance(statement.targets[0], ast.Name):
        return False
    name = statement.targets[0].id
    for node in ast.walk(function):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return False
        if isinstance(node, ast.Name) and node.id == name and node is not statement.targets[0]:
            return False
    return True


# --- models that are partitioned ---


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
    if _awakeners(deeds) or not engines:
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
            found.append(item(deeds.script, call, {}))
    return tuple(found)


def _unpacks(call: Call) -> bool:
    return isinstance(call.result, tuple) and bool(call.result) and isinstance(call.result[0], Thing)


def _is_before(engine: Thing, call: Call, deeds: Deeds) -> bool:
    initialize = engine.attributes.get("initialize")
    return isinstance(initialize, Call) and initialize.spot.order < call.spot.order


def without_hidden_size(facts: Facts) -> tuple[Item, ...]:
    """Trainers' models of the file's own making that have no `config`, from which sizes would be worked out."""
    deeds = deeds_of(facts)
    found = []
    for trainer in trainers(facts):
        model = model_itself(trainer.argument(0, "model"))
        made_of = class_of(model)
        if made_of is None or not isinstance(model, Thing) or _may_have_config(model, deeds):
            continue
        if made_of.bases and set(made_of.bases) <= {"torch.nn.Module"}:
            found.append(item(deeds.script, trainer, {"name": made_of.node.name}))
    return tuple(found)


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

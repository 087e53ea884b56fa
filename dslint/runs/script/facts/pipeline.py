"""Facts about pipeline parallelism: PipelineModule, the engine around it, and its data."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.config_use import node_of
from dslint.runs.script.events import Call
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.early_distributed import start_at
from dslint.runs.script.facts.gradients import off_context
from dslint.runs.script.facts.here import Here
from dslint.runs.script.facts.process_group import is_surely_down
from dslint.runs.script.items import item, item_at, plain, text_at
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Class, Named, Thing, Value
from dslint.runs.unknown import UNDECIDABLE, Unknown

BY_HAND = frozenset(["__call__", "forward", "backward", "step", "save_16bit_model", "save_fp16_model"])
"""Methods that a pipeline's engine inherits, and refuses (deepspeed/runtime/pipe/engine.py)."""

_TOPOLOGIES = {"PipeDataParallelTopology": 2, "PipeModelDataParallelTopology": 3}
"""Topologies of DeepSpeed, with the number of their axes."""


def pipelines(facts: Facts) -> tuple[Item, ...]:
    """PipelineModules that the script makes."""
    deeds = deeds_of(facts)
    return tuple(_pipeline(deeds, call) for call in pipeline_calls(deeds))


def pipeline_calls(deeds: Deeds) -> Iterator[Call]:
    """The calls that make a PipelineModule itself, not one of a subclass that the file defines."""
    for call in deeds.calls:
        made = call.result
        if (
            isinstance(made, Thing)
            and made.kind == "pipeline"
            and made.call is call
            and "__class__" not in made.attributes
        ):
            yield call


def _pipeline(deeds: Deeds, call: Call) -> Item:
    stages, topology = call.argument(1, "num_stages"), call.argument(2, "topology")
    has_neither = stages is None and topology is None
    needed = _ranks_of_topology(topology)
    fields = {
        "stages": plain(stages) if topology is None else None,
        "axes": needed,
        "has_stages": UNDECIDABLE if has_neither and not call.is_complete else not has_neither,
    }
    node = node_of(call, 2, "topology") if needed is not None else node_of(call, 1, "num_stages")
    return item_at(deeds.script, call, node, fields)


def pipelines_too_early(facts: Facts) -> tuple[Item, ...]:
    """PipelineModules that are made when DeepSpeed's process group surely isn't there yet."""
    deeds = deeds_of(facts)
    return tuple(
        item(deeds.script, call, {"start": start_at(Here(deeds, call.node))})
        for call in pipeline_calls(deeds)
        if is_surely_down(deeds, call)
    )


def _ranks_of_topology(topology: Value) -> int | Unknown | None:
    """The ranks that a topology has places for; None without one."""
    if topology is None:
        return None
    if not isinstance(topology, Thing) or topology.call is None:
        return UNDECIDABLE
    axes = _TOPOLOGIES.get(topology.name.rpartition(".")[2])
    sizes = [*topology.call.positional, *topology.call.keywords.values()]
    if len(sizes) != axes or not all(isinstance(size, int) and size > 0 for size in sizes):
        return UNDECIDABLE
    product = 1
    for size in sizes:
        product *= size
    return product


def stages_of(facts: Facts) -> int | Unknown:
    """Stages times model-parallel size: the ranks among which one copy of the model is spread."""
    found = list(pipeline_calls(deeds_of(facts)))
    if len(found) != 1 or found[0].argument(2, "topology") is not None:
        return UNDECIDABLE
    stages = plain(found[0].argument(1, "num_stages"))
    return stages if isinstance(stages, int) and stages > 0 else UNDECIDABLE


def pipeline_engines(facts: Facts) -> tuple[Item, ...]:
    """Engines that deepspeed.initialize makes of a PipelineModule."""
    deeds = deeds_of(facts)
    starts = [call for call in deeds.calls if call.name == "deepspeed.initialize"]
    return tuple(_engine(deeds, call, len(starts) == 1) for call in starts if _is_pipeline(_engine_of(call)))


def _engine(deeds: Deeds, call: Call, is_alone: bool) -> Item:
    mpu = call.argument(7, "mpu")
    node = node_of(call, 7, "mpu") if mpu is not None else call.node
    is_keyword = any(keyword.value is node for keyword in call.node.keywords)
    unit = Here(deeds, call.node).span(node) if is_keyword else UNDECIDABLE
    fields = {"is_alone": is_alone, "has_mpu": _is_unit(deeds, mpu), "unit": unit}
    model = node_of(call, 1, "model")
    return item_at(deeds.script, call, node, fields, ((model, "a PipelineModule"),))


def _is_unit(deeds: Deeds, value: Value) -> bool | Unknown:
    """Whether a value is surely a model-parallel unit: a module by its usual name, or an object of the file's."""
    if value is None:
        return False
    if isinstance(value, Named):
        package, _, last = value.name.rpartition(".")
        is_module = value.name in deeds.imports or (package in deeds.imports and last in ("mpu", "parallel_state"))
        return True if is_module else UNDECIDABLE
    is_object = isinstance(value, Class) or (isinstance(value, Thing) and value.kind == "instance")
    return True if is_object else UNDECIDABLE


def _engine_of(call: Call) -> Value:
    return call.result[0] if isinstance(call.result, tuple) else None


def _is_pipeline(engine: Value) -> bool:
    """Whether it is surely the engine of a PipelineModule, whatever branch was taken."""
    if not isinstance(engine, Thing) or engine.kind != "pipeline_engine":
        return False
    module = engine.attributes.get("module")
    if module is None:
        return bool(engine.inputs) and all(map(_is_pipeline, engine.inputs))
    return isinstance(module, Thing) and module.kind == "pipeline"


def pipeline_steps_by_hand(facts: Facts) -> tuple[Item, ...]:
    """Calls of methods that a pipeline's engine refuses."""
    deeds = deeds_of(facts)
    return tuple(
        item(deeds.script, call, _by_hand(Here(deeds, call.node), call))
        for call in deeds.calls
        if call.dotted in BY_HAND and _is_pipeline(call.receiver)
    )


def _by_hand(here: Here, call: Call) -> dict[str, Any]:
    """What a refused call is, and what to do with it: delete it beside train_batch, or save in another way."""
    func, api = call.node.func, call.dotted
    beside = [
        one
        for one in here.deeds.calls
        if one.dotted == "train_batch" and one.receiver is call.receiver and one.spot.loops == call.spot.loops
    ]
    is_extra = api in ("backward", "step") and bool(beside) and here.is_statement()
    is_one_folder = len(call.node.args) == 1 and not call.node.keywords and isinstance(func, ast.Attribute)
    return {
        "api": api,
        "saves": api.startswith("save_"),
        "extra": here.span(call.node) if is_extra else UNDECIDABLE,
        "method": here.span(func) if is_one_folder else UNDECIDABLE,
        "save": f"{here.code(func.value)}.save_checkpoint" if isinstance(func, ast.Attribute) else UNDECIDABLE,
    }


def train_batches(facts: Facts) -> tuple[Item, ...]:
    """Calls of train_batch."""
    deeds = deeds_of(facts)
    calls = [call for call in deeds.calls if call.dotted == "train_batch" and _is_pipeline(call.receiver)]
    return tuple(_train_batch(deeds, call) for call in calls)


def _train_batch(deeds: Deeds, call: Call) -> Item:
    data = call.argument(0, "data_iter")
    context = off_context(call.spot)
    restarted = _restarted(deeds, call, data)
    fields: dict[str, Any] = {
        "no_grad": None if context is None else context.name,
        "not_iterator": _no_iterator(data),
        "loader": None if restarted is None else text_at(deeds.script, restarted.node.args[0]),
        "has_data": _has_data(deeds, call, data),
        **_evaluated(Here(deeds, call.node), call),
    }
    fields["iterator"] = _iterator(Here(deeds, call.node), call, fields["not_iterator"])
    related: tuple[tuple[ast.AST, str], ...] = ()
    if context is not None and context.node is not None:
        related = ((context.node, "gradients are off in here"),)
    is_about_data = fields["not_iterator"] is not None or restarted is not None
    place = node_of(call, 0, "data_iter") if is_about_data else call.node
    return item_at(deeds.script, call, place, fields, related)


def _evaluated(here: Here, call: Call) -> dict[str, Any]:
    """The method, and the one that evaluates instead."""
    func = call.node.func
    if not isinstance(func, ast.Attribute) or not call.has(0, "data_iter"):
        return {"method": UNDECIDABLE, "evaluate": UNDECIDABLE}
    return {"method": here.span(func), "evaluate": f"{here.code(func.value)}.eval_batch"}


def _iterator(here: Here, call: Call, given: str | None) -> str | Unknown:
    """An iterator over a loader that is given as it is; Unknown in a loop, where each turn would begin anew."""
    if given != "DataLoader" or call.spot.loops:
        return UNDECIDABLE
    return f"iter({here.code(node_of(call, 0, 'data_iter'))})"


def _no_iterator(data: Value) -> str | None:
    """What is given instead of an iterator; None where that can't be told."""
    if isinstance(data, (list, tuple)):
        return "list" if isinstance(data, list) else "tuple"
    if (
        isinstance(data, Thing)
        and data.kind == "loader"
        and "__class__" not in data.attributes
        and data.call is not None
    ):
        return "DataLoader"
    return None


def _restarted(deeds: Deeds, call: Call, data: Value) -> Call | None:
    """The `iter(loader)` that the innermost loop around train_batch repeats, over a loader made outside of it."""
    if not isinstance(data, Thing) or data.name != "iter" or data.call is None or not call.spot.loops:
        return None
    made: Call = data.call
    loop = call.spot.loops[-1]
    loader = made.positional[0] if len(made.positional) == 1 else None
    if not made.spot.loops or made.spot.loops[-1].node is not loop.node or made.spot.order > call.spot.order:
        return None
    if _no_iterator(loader) != "DataLoader" or not made.node.args or not isinstance(loader, Thing):
        return None
    start: Call = loader.call
    is_outside = all(around.node is not loop.node for around in start.spot.loops)
    return made if is_outside and not _may_be_shuffled(deeds, start) else None


def _may_be_shuffled(deeds: Deeds, loader: Call) -> bool:
    """Whether each pass over a loader may have another order."""
    if not loader.is_complete or loader.argument(2, "shuffle") not in (None, False):
        return True
    if loader.argument(4, "batch_sampler") is not None:
        return True
    sampler = loader.argument(3, "sampler")
    if sampler is None:
        return False
    is_distributed = isinstance(sampler, Thing) and sampler.kind == "sampler"
    return not is_distributed or any(call.dotted == "set_epoch" for call in deeds.calls)


def _has_data(deeds: Deeds, call: Call, data: Value) -> bool | Unknown:
    """Whether train_batch has anything to train on."""
    if data is not None:
        return True
    start = call.receiver.attributes.get("initialize") if isinstance(call.receiver, Thing) else None
    if not call.is_complete or call.positional or call.keywords or start is None:
        return UNDECIDABLE
    if not start.is_complete or start.argument(4, "training_data") is not None:
        return UNDECIDABLE
    return UNDECIDABLE if any(_may_give_data(one, call.receiver) for one in deeds.calls) else False


def _may_give_data(call: Call, engine: Thing) -> bool:
    """Whether a call hands data, or the engine, to somebody."""
    if call.dotted in ("set_dataloader", "set_dataiterator", "set_batch_fn"):
        return True
    if call.dotted == "train_batch" and (call.positional or call.keywords):
        return True
    return any(value is engine for value in (*call.positional, *call.keywords.values()))

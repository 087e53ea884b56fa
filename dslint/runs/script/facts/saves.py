"""Facts about what a script writes: weights by itself, optimizer states, 16-bit weights by the engine."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from typing import Any

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.config_use import node_of
from dslint.runs.script.events import Call
from dslint.runs.script.facts.collectives import is_free
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.engine_use import engines, initialize_of, path_in_model
from dslint.runs.script.facts.here import Here, is_path
from dslint.runs.script.facts.partitioned import (
    Spread,
    asks,
    gathered_at,
    is_adapter,
    largest,
    may_be_gathered,
    spread_models,
)
from dslint.runs.script.guards import one_rank_guard
from dslint.runs.script.items import item
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Table, Thing, Value
from dslint.runs.unknown import UNDECIDABLE, Unknown

WRITERS = {
    "torch.save": (0, "obj"),
    "accelerator.save": (0, "obj"),
    "safetensors.torch.save_file": (0, "tensors"),
    "safetensors.torch.save_model": (0, "model"),
    "deepspeed.comm.save": (0, "obj"),
}
"""Functions that write tensors, with the place and the name of what they write."""

_WHOLE = frozenset(
    [
        "_zero3_consolidated_16bit_state_dict",
        "get_state_dict",
        "get_fp32_state_dict_from_zero_checkpoint",
        "load_state_dict_from_zero_checkpoint",
        "convert_zero_checkpoint_to_fp32_state_dict",
        "safe_get_full_fp32_param",
        "get_model_state_dict",
        "get_full_model_state_dict",
    ]
)
"""Calls that give, or write, whole weights."""

_COLLECTS = frozenset(["state_dict", "cpu", "clone", "detach", "to", "copy_", "save_pretrained"])
"""What one does with weights inside of GatheredParameters in order to save them."""

_WITHOUT_WEIGHTS = ("config", "tokenizer", "processor", "processing_class", "feature_extractor")
"""Ends of the names of what a model carries beside its weights, and what has a save_pretrained of its own."""

_SAVES_16_BIT = ("save_16bit_model", "save_fp16_model")
_PASSED_ON = frozenset(["items", "copy", "cpu", "detach", "clone", "to", "half", "float", "bfloat16"])
_SAME_CONTENT = frozenset(
    [
        "dict",
        "collections.OrderedDict",
        "copy.deepcopy",
        "deepspeed.checkpoint.utils.clone_tensors_for_torch_save",
    ]
)


def written_partitions(facts: Facts) -> tuple[Item, ...]:
    """Weights of a model that DeepSpeed trains, written outside of GatheredParameters."""
    deeds = deeds_of(facts)
    if gathers_elsewhere(deeds):
        return ()
    spread = spread_models(facts)
    found = []
    for call in deeds.calls:
        model = _written_model(call, spread)
        if model is None or may_be_gathered(call.spot) or asks(deeds, call.spot) or is_adapter(model):
            continue
        fields = {"largest": largest(model), **_mended(facts, Here(deeds, call.node), call)}
        found.append(item(deeds.script, call, fields))
    return tuple(found)


def _mended(facts: Facts, here: Here, call: Call) -> dict[str, Any]:
    """How to save whole weights instead: by the engine, or what an Accelerator gathers."""
    state = node_of(call, 0, "obj")
    fields = {
        "is_free": _is_free(here, call),
        "by_engine": UNDECIDABLE,
        "state": UNDECIDABLE,
        "whole": UNDECIDABLE,
    }
    if (
        not isinstance(state, ast.Call)
        or not isinstance(state.func, ast.Attribute)
        or state.args
        or state.keywords
    ):
        return fields
    if state.func.attr == "state_dict" and call.name == "torch.save" and here.is_statement():
        fields["by_engine"] = _save_by_engine(facts, here, call)
    owner = state.func.value
    if state.func.attr == "state_dict" and call.name == "accelerator.save" and isinstance(owner, ast.Call):
        fields |= _state_of_accelerator(here, owner, state)
    return fields


def _is_free(here: Here, call: Call) -> bool:
    guard = one_rank_guard(call.spot)
    return guard is not None and is_free(here, guard)


def _save_by_engine(facts: Facts, here: Here, call: Call) -> str | Unknown:
    """engine.save_16bit_model for the same file, whose folder and name it takes apart."""
    made = engines(facts)
    name = here.name_of(made[0]) if len(made) == 1 else UNDECIDABLE
    path, written = call.argument(1, "f"), call.argument(0, "obj")
    model = written.call.receiver if isinstance(written, Thing) and isinstance(written.call, Call) else None
    if not made or model is made[0] or path_in_model(model, made[0]) != ():
        return UNDECIDABLE
    if isinstance(name, Unknown) or len(call.node.args) != 2 or call.node.keywords or type(path) is not str:
        return UNDECIDABLE
    folder, _, file = path.rpartition("/")
    is_plain = isinstance(call.node.args[1], ast.Constant) and file and (folder or not path.startswith("/"))
    return f"{name}.save_16bit_model({_quoted(folder or '.')}, {_quoted(file)})" if is_plain else UNDECIDABLE


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _state_of_accelerator(here: Here, owner: ast.Call, state: ast.Call) -> dict[str, Any]:
    """`accelerator.unwrap_model(model).state_dict()`, and `accelerator.get_state_dict(model)` instead."""
    func = owner.func
    is_unwrapped = isinstance(func, ast.Attribute) and func.attr == "unwrap_model" and is_path(func)
    is_one = len(owner.args) == 1 and isinstance(owner.args[0], ast.Name) and not owner.keywords
    if not is_unwrapped or not isinstance(func, ast.Attribute) or not is_one:
        return {}
    whole = f"{here.code(func.value)}.get_state_dict({here.code(owner.args[0])})"
    return {"state": here.span(state), "whole": whole}


def _written_model(call: Call, spread: Spread) -> Thing | None:
    """The model whose weights a call surely writes as they are on this rank."""
    writer = WRITERS.get(call.name)
    if writer is None:
        return None
    value = call.argument(*writer)
    if isinstance(value, Thing) and value.kind in ("model", "either"):
        return spread.owner(value, call.spot)
    for made in _contents(value):
        if made.call is not None and made.call.dotted == "state_dict":
            owner = spread.owner(made.call.receiver, made.call.spot)
            if owner is not None and not may_be_gathered(made.call.spot) and not asks_by_call(made.call):
                return owner
    return None


def asks_by_call(call: Call) -> bool:
    """Whether a call stands in a function that may gather by itself."""
    return any("gather" in name.lower() or "consolidat" in name.lower() for name in call.spot.functions)


def _contents(value: Value, depth: int = 0) -> Iterator[Thing]:
    """What is written along with a value: through dicts, comprehensions and copies only."""
    if depth > 6:
        return
    if isinstance(value, Table):
        for entry in value.entries.values():
            yield from _contents(entry.value, depth + 1)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _contents(part, depth + 1)
    elif isinstance(value, Thing):
        yield value
        method = value.name.rpartition(".")[2]
        is_all = value.kind == "comprehension" and not _is_choosy(value.node)
        passes = is_all or value.kind in ("item", "element") or value.name in _SAME_CONTENT
        is_method = value.call is not None and value.call.receiver is not None and method in _PASSED_ON
        if passes or is_method:
            for part in value.inputs:
                yield from _contents(part, depth + 1)


def _is_choosy(node: ast.AST | None) -> bool:
    """Whether a comprehension leaves something out: what it takes may be small, and whole on each rank."""
    return any(each.ifs for each in getattr(node, "generators", ()))


def gathers_elsewhere(deeds: Deeds) -> bool:
    """Whether the script also knows a way to whole weights, which may mend what it writes else."""
    return any(_is_whole_save(call) for call in deeds.calls)


def _is_whole_save(call: Call) -> bool:
    last = call.dotted.rpartition(".")[2]
    if last in _WHOLE or last in _SAVES_16_BIT:
        return True
    return bool(gathered_at(call.spot)) and (last in _COLLECTS or call.name in WRITERS)


def partitioned_pretrained_saves(facts: Facts) -> tuple[Item, ...]:
    """`save_pretrained` of a model that DeepSpeed or the Trainer trains, without a state dict."""
    deeds = deeds_of(facts)
    if facts.framework not in ("raw", "trainer") or gathers_elsewhere(deeds):
        return ()
    spread = spread_models(facts)
    found = []
    for call in deeds.calls:
        if call.dotted != "save_pretrained" or not call.is_complete or call.has(2, "state_dict"):
            continue
        model = spread.owner(call.receiver, call.spot)
        if model is None or is_adapter(model) or may_be_gathered(call.spot) or asks(deeds, call.spot):
            continue
        if _has_no_weights(call.receiver):
            continue
        fields = {"largest": largest(model), **_saved_by_trainer(Here(deeds, call.node), call)}
        found.append(item(deeds.script, call, fields))
    return tuple(found)


def _saved_by_trainer(here: Here, call: Call) -> dict[str, Any]:
    """The method, and the Trainer's own for the same folder, where the model is asked of the Trainer."""
    func = call.node.func
    model = func.value if isinstance(func, ast.Attribute) else None
    fields: dict[str, Any] = {
        "is_free": _is_free(here, call),
        "method": here.span(func),
        "by_trainer": UNDECIDABLE,
    }
    is_one_folder = len(call.node.args) == 1 and not call.node.keywords
    if isinstance(model, ast.Attribute) and model.attr == "model" and is_one_folder:
        trainer = here.code(model.value)
        if trainer in _trainers(here):
            fields["by_trainer"] = f"{trainer}.save_model"
    return fields


def _trainers(here: Here) -> set[str]:
    """The names on which methods of a Trainer are called, in the function at hand."""
    found = set()
    for call in here.deeds.calls:
        is_trainers = isinstance(call.receiver, Thing) and call.receiver.kind == "trainer"
        func = call.node.func
        if is_trainers and isinstance(func, ast.Attribute) and here.function(func) is here.function():
            found.add(here.code(func.value))
    return found


def _has_no_weights(part: Value) -> bool:
    """Whether a part of a model is one that saves settings or a vocabulary: `model.generation_config`."""
    return isinstance(part, Thing) and part.kind == "attribute" and part.name.endswith(_WITHOUT_WEIGHTS)


def dropped_weight_saves(facts: Facts) -> tuple[Item, ...]:
    """save_16bit_model calls whose answer nobody looks at."""
    deeds = deeds_of(facts)
    return tuple(
        item(deeds.script, call, {})
        for call in deeds.calls
        if call.name in ("engine.save_16bit_model", "engine.save_fp16_model")
        if any(call.receiver is engine for engine in engines(facts))
        if call.is_dropped and not asks(deeds, call.spot)
    )


def one_rank_optimizer_states(facts: Facts) -> tuple[Item, ...]:
    """States of DeepSpeed's optimizer that one rank alone writes."""
    deeds = deeds_of(facts)
    since = _optimizers(facts)
    found = []
    for call in deeds.calls:
        writer = WRITERS.get(call.name)
        if writer is None or one_rank_guard(call.spot) is None or asks(deeds, call.spot):
            continue
        made = (one.call for one in _contents(call.argument(*writer)) if one.call is not None)
        if any(_is_state_of(one, since) for one in made):
            found.append(item(deeds.script, call, {}))
    return tuple(found)


def _optimizers(facts: Facts) -> dict[int, int]:
    """The optimizers that DeepSpeed works with, each with the step after which it does."""
    since: dict[int, int] = {}
    for engine in engines(facts):
        call = initialize_of(engine)
        since[id(call.argument(2, "optimizer"))] = call.spot.order
        since[id(call.result[1])] = -1
    return since


def _is_state_of(call: Call, since: dict[int, int]) -> bool:
    return call.dotted == "state_dict" and since.get(id(call.receiver), call.spot.order) < call.spot.order


def saves_without_16_bit(facts: Facts) -> bool:
    """Whether no call of the script needs the weights gathered on saving, or another rule speaks of it."""
    if facts.run.script is None or not facts.run.script.is_complete:
        return False
    if facts.framework in ("raw", "pipeline", "lightning"):
        return True
    if facts.framework == "trainer":
        return not any(_may_save_under_trainer(call) for call in facts.run.script.calls)
    if facts.framework != "accelerate":
        return False
    return not any(call.dotted in ("get_state_dict", "save_model") for call in facts.run.script.calls)


def _may_save_under_trainer(call: Call) -> bool:
    """Whether a call makes a trainer, or trains or saves with one that came from elsewhere."""
    last = call.dotted.rpartition(".")[2]
    is_trainer = isinstance(call.result, Thing) and call.result.kind == "trainer"
    return is_trainer or "trainer" in last.lower() or last in ("train", "save_model", *_SAVES_16_BIT)

"""How a script loads, changes and saves the models of Transformers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.events import Call
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.here import Here
from dslint.runs.script.facts.trainer_objects import (
    argument_span,
    keyword_node,
    made,
    step_at,
    surely_comes_here,
    trainers,
)
from dslint.runs.script.items import item
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Table, Thing, origins
from dslint.runs.unknown import UNDECIDABLE

LOADERS = frozenset(["from_pretrained", "from_config", "_from_config"])
AWAKENERS = frozenset(["training_args", "hf_deepspeed_config", "accelerator", "deepspeed_plugin"])
"""What tells Transformers of ZeRO stage 3 when it is made, so that models are partitioned as they are loaded."""


def _loads(deeds: Deeds) -> Iterator[Call]:
    """The calls that load, or set up, a model of Transformers."""
    for call in deeds.calls:
        is_loader = call.receiver is None and call.dotted.rpartition(".")[2] in LOADERS
        is_model = isinstance(call.result, Thing) and call.result.kind == "model"
        if is_loader and is_model and call.dotted.startswith("transformers."):
            yield call


def awakeners(deeds: Deeds) -> list[Call]:
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
    wakers = awakeners(deeds)
    if not wakers or not all(call.spot.is_called for call in wakers):
        return ()
    first = wakers[0]
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
            place = argument_span(Here(deeds, load.node), load, "device_map")
            fields = {"loader": load.dotted, "argument": place}
            found.append(item(deeds.script, step_at(load, node), fields, related))
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
        others = [one for one in awakeners(deeds) if one is not call]
        if is_gone and later and not others and surely_comes_here(call.spot):
            related = ((later[0].node, "is loaded without it"),)
            fields = {"dropped": call.is_dropped, **_keeping(Here(deeds, call.node), call, later)}
            found.append(item(deeds.script, call, fields, related))
    return tuple(found)


def _keeping(here: Here, call: Call, loads: list[Call]) -> dict[str, Any]:
    """A statement that keeps a config (`kept`), and what it comes instead of (`whole`)."""
    place, data = here.function(), here.script.source.data
    lives = place is here.script.tree or all(here.function(load.node) is place for load in loads)
    can_be_kept = call.is_dropped and here.is_statement() and lives
    name = next((one for one in KEEPERS if one.encode() not in data), None)
    code = here.code(call.node)
    is_known = can_be_kept and name is not None and "\n" not in code
    return {"kept": f"{name} = {code}" if is_known else UNDECIDABLE, "whole": here.span(call.node)}


KEEPERS = ("hf_deepspeed_config", "kept_deepspeed_config", "kept_hf_deepspeed_config")
"""Names for a config that has to be kept."""


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

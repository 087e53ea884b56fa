"""Facts about zero.Init: with which config it is given, and who trains what is made inside of it."""

from __future__ import annotations

import ast
import os
from typing import Any

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.config_use import node_of, reference_of
from dslint.runs.script.events import Call
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.engine_use import engines, initialize_of
from dslint.runs.script.facts.here import Here
from dslint.runs.script.facts.partitioned import asks, is_made_spread, is_switched_on
from dslint.runs.script.items import item
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Table, Thing, Value
from dslint.runs.unknown import UNDECIDABLE, Unknown

BATCH_KEYS = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
_MAKES_MODELS = ("from_pretrained", "from_config", "_from_config")


def configs_with_auto(facts: Facts) -> tuple[Item, ...]:
    """Models made with a config that still says "auto" for a batch size: `key` names it."""
    deeds = deeds_of(facts)
    found = []
    for call in deeds.calls:
        made = call.result
        if not isinstance(made, Thing) or made.call is not call or asks(deeds, call.spot):
            continue
        if made.kind == "zero_init":
            value = call.argument(5, "config_dict_or_path") or call.argument(6, "config")
        elif made.kind == "hf_deepspeed_config" and call.dotted.endswith("HfDeepSpeedConfig"):
            value = call.argument(0, "config_file_or_dict") if _is_used(deeds, call) else None
        else:
            continue
        key = _auto_key(value, facts)
        if key is not None:
            found.append(item(deeds.script, call, {"key": key, "is_init": made.kind == "zero_init"}))
    return tuple(found)


def _is_used(deeds: Deeds, call: Call) -> bool:
    """Whether a model is loaded after an HfDeepSpeedConfig was made."""
    return any(
        one.dotted.rpartition(".")[2] in _MAKES_MODELS
        and one.spot.order > call.spot.order
        and isinstance(one.result, Thing)
        and one.result.kind == "model"
        for one in deeds.calls
    ) and not any(isinstance(one.result, Thing) and one.result.kind == "training_args" for one in deeds.calls)


def _auto_key(value: Value, facts: Facts) -> str | None:
    """The first batch size of a config that is "auto"."""
    if isinstance(value, Table) and value.file is None:
        written: Any = {key: entry.value for key, entry in value.entries.items()}
    elif _is_config_of_run(value, facts):
        written = facts.run.config.value
    else:
        return None
    return next((key for key in BATCH_KEYS if isinstance(written, dict) and written.get(key) == "auto"), None)


def _is_config_of_run(value: Value, facts: Facts) -> bool:
    reference = reference_of(value)
    return reference is not None and os.path.basename(reference) == os.path.basename(facts.run.config.source.path)


def models_spread_too_early(facts: Facts) -> tuple[Item, ...]:
    """zero.Init around the model that an engine trains."""
    deeds = deeds_of(facts)
    made = [initialize_of(engine) for engine in engines(facts)]
    trained = {id(call.argument(1, "model")): call for call in made}
    found: list[Item] = []
    seen: set[int] = set()
    for call in deeds.calls:
        engine = trained.get(id(call.result))
        if engine is None or not is_made_spread(call) or call.spot.guards or asks(deeds, engine.spot):
            continue
        init = next(context for context in call.spot.contexts if is_switched_on(context))
        if id(init) not in seen and isinstance(init, Thing) and isinstance(init.call, Call):
            seen.add(id(init))
            related = ((engine.node, "trained here"),)
            has_config = any(init.call.has(*place) for place in ((5, "config_dict_or_path"), (6, "config")))
            fields = {
                "has_config": has_config,
                "has_type": has_config or init.call.has(8, "dtype"),
                "config": _config_of(Here(deeds, init.call.node), engine),
            }
            found.append(item(deeds.script, init.call, fields, related))
    return tuple(found)


def _config_of(here: Here, engine: Call) -> str | Unknown:
    """What initialize gets as its config, where it can be given earlier too: a path, or a name set by then."""
    node = node_of(engine, 10, "config")
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return here.code(node)
    is_near = isinstance(node, ast.Name) and here.function(node) is here.function()
    return here.code(node) if is_near and here.is_set(here.code(node)) else UNDECIDABLE

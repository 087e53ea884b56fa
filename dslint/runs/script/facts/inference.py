"""Facts about deepspeed.init_inference and the engine that it makes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from dslint.documents.source import Span
from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.near_names import advice, near_name
from dslint.runs.script.config_use import node_of
from dslint.runs.script.events import Call
from dslint.runs.script.facts.here import Here
from dslint.runs.script.items import item, item_at, plain, text_at
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Entry, Named, Table, Thing, Value, is_known
from dslint.runs.unknown import UNDECIDABLE, Unknown

ONLY_IN_TRAINING = frozenset(
    ["backward", "step", "save_checkpoint", "load_checkpoint", "save_16bit_model", "train_batch", "eval_batch"]
)
"""Methods of the training engine that an inference engine lacks."""

SETTINGS = frozenset(
    [
        "args",
        "base_dir",
        "checkpoint",
        "checkpoint_config",
        "ckpt_config",
        "config",
        "dtype",
        "enable_cuda_graph",
        "ep_group",
        "ep_mp_group",
        "ep_size",
        "expert_group",
        "expert_mp_group",
        "injection_dict",
        "injection_policy",
        "injection_policy_tuple",
        "keep_module_on_host",
        "kernel_inject",
        "max_out_tokens",
        "max_tokens",
        "min_out_tokens",
        "min_tokens",
        "moe",
        "moe_experts",
        "moe_type",
        "mp_size",
        "mpu",
        "quant",
        "replace_method",
        "replace_with_kernel_inject",
        "return_tuple",
        "save_mp_checkpoint_path",
        "set_empty_params",
        "tensor_parallel",
        "tm",
        "tp",
        "training_mp_size",
        "transposed_mode",
        "triangular_masking",
        "triton_autotune",
        "use_triton",
        "zero",
    ]
)
"""Names that DeepSpeedInferenceConfig knows (deepspeed/inference/config.py), aliases included."""

_TYPES = {"torch.half": "torch.float16", "torch.float": "torch.float32", "torch.double": "torch.float64"}


def _starts(facts: Facts) -> Iterator[tuple[Deeds, Call]]:
    deeds = facts.run.script
    assert deeds is not None
    for call in deeds.calls:
        if call.name == "deepspeed.init_inference":
            yield deeds, call


def conflicts(facts: Facts) -> tuple[Item, ...]:
    """Settings that a call of init_inference gives by keyword, and its config another way."""
    return tuple(found for deeds, call in _starts(facts) for found in _conflicts(deeds, call))


def _conflicts(deeds: Deeds, call: Call) -> Iterator[Item]:
    for key, entry in _entries(call):
        if key not in call.keywords or not _differ(entry.value, call.keywords[key]):
            continue
        place = node_of(call, None, key)
        nodes = ((entry.key_node, "the same in the config"),) if entry.key_node is not None else ()
        fields = {
            "key": key,
            "by_keyword": text_at(deeds.script, place),
            "in_config": _text(deeds, entry),
            "entry": Here(deeds, place).span(entry.key_node),
        }
        yield item_at(deeds.script, call, place, fields, nodes)


def _text(deeds: Deeds, entry: Entry) -> str:
    return repr(entry.value) if entry.value_node is None else text_at(deeds.script, entry.value_node)


def _entries(call: Call) -> Iterator[tuple[str, Entry]]:
    """The entries of the config that a call surely gets as a dict."""
    config = call.argument(1, "config")
    if not isinstance(config, Table):
        return
    for key, entry in config.entries.items():
        is_sure = not (isinstance(entry.value, Thing) and entry.value.kind == "either")
        if isinstance(key, str) and is_sure:
            yield key, entry


def _differ(left: Value, right: Value) -> bool:
    """Whether two values are surely unequal."""
    if is_known(left) and is_known(right):
        return bool(left != right)
    named = [value for value in (left, right) if isinstance(value, Named)]
    if not named or not all(_is_type(value) for value in named):
        return False
    if len(named) == 2:
        names = [_TYPES.get(value.name, value.name) for value in named]
        return names[0] != names[1]
    return is_known(left) or is_known(right)


def _is_type(value: Named) -> bool:
    return value.name.startswith("torch.") and value.name.count(".") == 1


def unknown_settings(facts: Facts) -> tuple[Item, ...]:
    """Keywords, or config keys, that init_inference doesn't know."""
    return tuple(found for deeds, call in _starts(facts) for found in _unknown_settings(deeds, call))


def _unknown_settings(deeds: Deeds, call: Call) -> Iterator[Item]:
    places: dict[str, ast.AST] = {}
    for key, entry in _entries(call):
        places[key] = entry.key_node or call.node
    for keyword in call.node.keywords:
        if keyword.arg in call.keywords and keyword.arg is not None:
            places[keyword.arg] = keyword
    for key in call.keywords:
        places.setdefault(key, call.node)
    for key, place in places.items():
        if key not in SETTINGS and key != "model":
            near = near_name(key, SETTINGS)
            fields = {
                "key": key,
                "advice": advice(near),
                "near": _renamed(deeds, place, None if near is None else near.key),
            }
            yield item_at(deeds.script, call, place, fields)


def _renamed(deeds: Deeds, place: ast.AST, near: str | None) -> str | Unknown:
    """A keyword, or a key of the config, under the name that was probably meant."""
    here = Here(deeds, place)
    if near is not None and isinstance(place, ast.keyword):
        return f"{near}={here.code(place.value)}"
    is_key = isinstance(place, ast.Constant) and isinstance(place.value, str)
    return f'"{near}"' if near is not None and is_key else UNDECIDABLE


def setups(facts: Facts) -> tuple[Item, ...]:
    """Calls of init_inference, with what they ask for."""
    return tuple(_setup(deeds, call) for deeds, call in _starts(facts))


def _setup(deeds: Deeds, call: Call) -> Item:
    settings: dict[str, Any] = {key: entry.value for key, entry in _entries(call)} | dict(call.keywords)
    kernels = settings.get("replace_with_kernel_inject", settings.get("kernel_inject", False))
    policy = settings.get("injection_policy", settings.get("injection_dict"))
    sizes = _sizes(settings)
    fields = {
        "kernels": plain(kernels),
        "has_policy": policy is not None and _is_table(policy),
        "tp_size": sizes[0] if len(sizes) == 1 else UNDECIDABLE,
        "sizes": len(sizes),
        "size_place": _size_place(Here(deeds, call.node), settings, call),
        "graph": plain(settings.get("enable_cuda_graph", False)),
        "parts": call.unpacked or 0,
        "policy": _setting(deeds, call, ("injection_policy", "injection_dict")),
        "injection": _setting(deeds, call, ("replace_with_kernel_inject", "kernel_inject")),
        **_only(Here(deeds, call.node)),
    }
    place = next((key for key in ("tensor_parallel", "tp", "mp_size") if key in settings), "")
    return item_at(deeds.script, call, _at(call, place) if place else call.node, fields)


def _setting(deeds: Deeds, call: Call, names: tuple[str, ...]) -> Any:
    """Where a setting stands, by keyword or in the config; Unknown unless there is one such place."""
    here = Here(deeds, call.node)
    places: list[ast.AST] = [keyword.value for keyword in call.node.keywords if keyword.arg in names]
    places += [entry.key_node for key, entry in _entries(call) if key in names and entry.key_node is not None]
    return here.span(places[0]) if len(places) == 1 else UNDECIDABLE


def _only(here: Here) -> dict[str, Any]:
    """The names to unpack into, and the first one; Unknown where another of them is used."""
    target = here.target(here.node)
    if not isinstance(target, ast.Tuple) or not target.elts:
        return {"targets": UNDECIDABLE, "engine": UNDECIDABLE}
    rest = [one.id if isinstance(one, ast.Name) else "" for one in target.elts[1:]]
    if any(not name or here.uses(name) for name in rest):
        return {"targets": UNDECIDABLE, "engine": UNDECIDABLE}
    return {"targets": here.span(target), "engine": here.code(target.elts[0])}


def _at(call: Call, key: str) -> ast.AST:
    place = next((entry.value_node for name, entry in _entries(call) if name == key), None)
    return place if place is not None and key not in call.keywords else node_of(call, None, key)


def _is_table(value: Value) -> bool:
    return isinstance(value, Table) and (bool(value.entries) or value.open)


def _sizes(settings: dict[str, Any]) -> list[Any]:
    """The tensor-parallel sizes that are asked for, by their new and by their old name."""
    found: list[Any] = []
    if "mp_size" in settings:
        found.append(plain(settings["mp_size"]))
    for name in ("tensor_parallel", "tp"):
        if name in settings:
            found += _size_in(settings[name])
    return found


def _size_place(here: Here, settings: dict[str, Any], call: Call) -> Span | Unknown:
    """Where the one tensor-parallel size stands."""
    if len(_sizes(settings)) != 1:
        return UNDECIDABLE
    tables = [settings[name] for name in ("tensor_parallel", "tp") if isinstance(settings.get(name), Table)]
    entries = [table.entries["tp_size"] for table in tables if "tp_size" in table.entries]
    place = entries[0].value_node if entries else _at(call, "mp_size")
    return here.span(place) if isinstance(place, ast.Constant) else UNDECIDABLE


def _size_in(section: Value) -> list[Any]:
    if not isinstance(section, Table):
        return [UNDECIDABLE]
    if "tp_size" in section.entries:
        return [plain(section.entries["tp_size"].value)]
    return [UNDECIDABLE] if section.open else []


def training_calls(facts: Facts) -> tuple[Item, ...]:
    """Calls on an inference engine that only a training engine has."""
    deeds = facts.run.script
    assert deeds is not None
    return tuple(
        item(deeds.script, call, {"api": call.dotted}, _made_at(call.receiver))
        for call in deeds.calls
        if call.dotted in ONLY_IN_TRAINING and _is_inference(call.receiver)
    )


def _is_inference(value: Value) -> bool:
    return isinstance(value, Thing) and value.kind == "inference_engine" and value.call is not None


def _made_at(engine: Thing) -> tuple[tuple[ast.AST, str], ...]:
    return () if engine.node is None else ((engine.node, "an engine for inference"),)


def generations(facts: Facts) -> tuple[Item, ...]:
    """Calls of an inference engine's generate."""
    deeds = facts.run.script
    assert deeds is not None
    found = [call for call in deeds.calls if call.dotted == "generate" and _is_inference(call.receiver)]
    return tuple(_generation(deeds, call) for call in found)


def _generation(deeds: Deeds, call: Call) -> Item:
    beams: int | Unknown | None = plain(call.keywords["num_beams"]) if "num_beams" in call.keywords else None
    place = node_of(call, None, "num_beams")
    func, here = call.node.func, Here(deeds, call.node)
    own = f"{here.code(func.value)}.module.generate" if isinstance(func, ast.Attribute) else UNDECIDABLE
    return item_at(deeds.script, call, place, {"beams": beams, "method": here.span(func), "of_model": own})

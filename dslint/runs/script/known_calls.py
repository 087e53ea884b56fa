"""What well-known calls give: those whose result, or whose effect on their arguments, a reading has to follow."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dslint.runs.script import arguments
from dslint.runs.script.events import Call
from dslint.runs.script.expressions import merge
from dslint.runs.script.values import (
    NOTHING,
    Class,
    Entry,
    Function,
    Named,
    PathText,
    Table,
    Thing,
    Value,
    is_known,
    origins,
)

if TYPE_CHECKING:
    from dslint.runs.script.calls import Calls

NOT_KNOWN = object()
"""Stands for a result that this module knows nothing of."""


def result(reading: Calls, call: Call) -> Value:
    """What a call gives; NOT_KNOWN where it needs no special treatment."""
    if call.receiver is None:
        made = arguments.parser_made_by(call)
        if made is not None:
            return made
        function = FUNCTIONS.get(call.dotted) or FUNCTIONS.get(_with_star(call.dotted))
        return NOT_KNOWN if function is None else function(reading, call)
    if isinstance(call.receiver, (arguments.Parser, arguments.HfParser)):
        return arguments.parser_method(reading, call)
    if isinstance(call.receiver, Table):
        return _table_method(reading, call)
    if isinstance(call.receiver, str):
        return _text_method(call)
    if isinstance(call.receiver, list):
        return _list_method(call)
    method = METHODS.get(call.name) or METHODS.get(f"*.{call.dotted}")
    return NOT_KNOWN if method is None else method(reading, call)


def _with_star(name: str) -> str:
    """`*.initialize` for names that an alias or another module re-exports."""
    return "deepspeed." + name.rpartition(".")[2] if name.startswith("deepspeed.runtime") else name


def method_kind(call: Call) -> str:
    """What a method that nothing else is known of gives."""
    receiver = call.receiver
    kind = receiver.kind if isinstance(receiver, Thing) else "result"
    if call.dotted == "__call__":
        return {"engine": "output", "model": "output", "inference_engine": "output"}.get(kind, "result")
    if call.dotted in _SAME and kind in ("model", "parallel_model", "compiled_model", "result", "parameter"):
        return kind
    return {"get_accelerator": "result"}.get(call.dotted, "result")


_SAME = frozenset(
    ["to", "cuda", "cpu", "half", "bfloat16", "float", "train", "eval", "requires_grad_", "double", "xpu"]
)
"""Methods of a module that give the module."""


# --- DeepSpeed ---

OTHER_ENGINE = "deepspeed.initialize of another run"
"""The name of a call that makes an engine with another config than the run at hand."""


def _initialize(reading: Calls, call: Call) -> Value:
    """Four things: engine, optimizer, data loader, learning-rate scheduler (deepspeed/__init__.py, initialize)."""
    if reading.chosen is not None and call.node not in reading.chosen:
        call.dotted = OTHER_ENGINE
        return tuple(Thing("other_engine", OTHER_ENGINE, call.node) for _ in range(4))
    model = call.argument(1, "model")
    if isinstance(model, Thing) and model.kind in ("result", "parameter", "either", "attribute", "element"):
        model.kind = "model"
    optimizer = call.argument(2, "optimizer")
    if isinstance(optimizer, Thing) and optimizer.kind in ("result", "parameter", "either", "attribute"):
        optimizer.kind = "optimizer"
    is_pipeline = any(thing.kind == "pipeline" for thing in origins(model, 3))
    engine = Thing("pipeline_engine" if is_pipeline else "engine", "deepspeed.initialize", call.node)
    engine.attributes["module"] = model if isinstance(model, Thing) else Thing("model", "module", call.node)
    engine.attributes["initialize"] = call
    returned = Thing("engine_optimizer", "deepspeed.initialize", call.node)
    engine.attributes["optimizer"] = returned
    loader = Thing("engine_loader", "deepspeed.initialize", call.node, (call.argument(4, "training_data"),))
    scheduler = Thing("engine_scheduler", "deepspeed.initialize", call.node)
    engine.attributes["lr_scheduler"] = scheduler
    return (engine, returned, loader, scheduler)


def _add_config_arguments(reading: Calls, call: Call) -> Value:
    parser = call.argument(0, "parser")
    if isinstance(parser, arguments.Parser):
        parser.add_deepspeed_options(call)
        return parser
    return NOT_KNOWN


# --- Accelerate and Transformers ---


def _prepare(reading: Calls, call: Call) -> Value:
    """Gives back what it was given, prepared (accelerate/accelerator.py, Accelerator.prepare)."""
    for value in call.positional:
        if isinstance(value, Thing):
            value.attributes.setdefault("prepared_by", call)
    if not call.is_complete:
        return NOT_KNOWN
    return call.positional[0] if len(call.positional) == 1 else tuple(call.positional)


def _prepare_one(reading: Calls, call: Call) -> Value:
    value = call.argument(0, "model")
    if isinstance(value, Thing):
        value.attributes.setdefault("prepared_by", call)
    return value


def _unwrapped(reading: Calls, call: Call) -> Value:
    return call.argument(0, "model")


def _training_arguments(reading: Calls, call: Call) -> Value:
    return NOT_KNOWN


# --- files and paths ---


def _open(reading: Calls, call: Call) -> Value:
    return Thing("file", "open", call.node, (call.argument(0, "file"),))


def _load_json(reading: Calls, call: Call) -> Value:
    file = call.argument(0, "fp")
    if isinstance(file, Thing) and file.kind == "file" and file.inputs:
        return reading.load_table(file.inputs[0], call)
    return NOT_KNOWN


def _loads_json(reading: Calls, call: Call) -> Value:
    text = call.argument(0, "s")
    if isinstance(text, Thing) and text.name == "file.read" and isinstance(text.inputs[0], Thing):
        return reading.load_table(text.inputs[0].inputs[0], call)
    if isinstance(text, Thing) and text.name.endswith(".read_text"):
        return reading.load_table(text.inputs[0], call)
    return NOT_KNOWN


def _path(reading: Calls, call: Call) -> Value:
    parts = call.positional
    if parts and all(isinstance(part, str) for part in parts):
        return PathText(os.path.join(*parts))
    return NOT_KNOWN


def _path_function(work_out: Callable[..., str]) -> Callable[[Calls, Call], Value]:
    def apply(reading: Calls, call: Call) -> Value:
        if call.positional and all(isinstance(part, str) for part in call.positional):
            return work_out(*call.positional)
        return NOT_KNOWN

    return apply


def _same_text(path: str) -> str:
    return path


# --- plain Python ---


def _convert(to: Callable[[Any], Any]) -> Callable[[Calls, Call], Value]:
    def apply(reading: Calls, call: Call) -> Value:
        value = call.argument(0, "x")
        if call.positional and is_known(value) and not isinstance(value, (tuple, list)):
            try:
                return to(value)
            except (TypeError, ValueError, ArithmeticError):
                return NOT_KNOWN
        return NOT_KNOWN

    return apply


def _text(reading: Calls, call: Call) -> Value:
    value = call.argument(0, "object")
    return str(value) if call.positional and isinstance(value, (str, int, float, bool)) else NOT_KNOWN


def _dict(reading: Calls, call: Call) -> Value:
    table = Table(call.node, {}, open=not call.is_complete, depth=len(reading.guards))
    if call.positional:
        merge(table, call.positional[0])
    nodes = {keyword.arg: keyword for keyword in call.node.keywords}
    for key, value in call.keywords.items():
        node = nodes.get(key)
        table.entries[key] = Entry(value, node, node.value if node else None)
    return table


def _list(reading: Calls, call: Call) -> Value:
    value = call.argument(0, "iterable")
    if not call.positional:
        return []
    return list(value) if isinstance(value, (tuple, list)) else NOT_KNOWN


def _len(reading: Calls, call: Call) -> Value:
    value = call.argument(0, "obj")
    return len(value) if isinstance(value, (str, list, tuple)) else NOT_KNOWN


def _getattr(reading: Calls, call: Call) -> Value:
    name = call.argument(1, "name")
    if len(call.positional) == 2 and isinstance(name, str):
        return reading.attribute(call.positional[0], name, call.node)
    return NOT_KNOWN


def _copy(reading: Calls, call: Call) -> Value:
    value = call.argument(0, "x")
    return copied(value, len(reading.guards)) if isinstance(value, (Table, list)) else NOT_KNOWN


def copied(value: Value, depth: int) -> Value:
    """A table, or list, that changes by itself."""
    if isinstance(value, list):
        return [copied(part, depth) for part in value]
    if not isinstance(value, Table):
        return value
    entries = {
        key: Entry(copied(entry.value, depth), entry.key_node, entry.value_node)
        for key, entry in value.entries.items()
    }
    return Table(value.node, entries, value.open, value.file, depth)


def _partial(reading: Calls, call: Call) -> Value:
    return call.positional[0] if call.positional and isinstance(call.positional[0], Function) else NOT_KNOWN


def _environment(reading: Calls, call: Call) -> Value:
    name = call.argument(0, "key")
    default = call.argument(1, "default")
    if isinstance(name, str):
        return Thing("environment", name, call.node, (default,))
    return NOT_KNOWN


def _is_main(reading: Calls, call: Call) -> Value:
    return NOT_KNOWN


# --- methods of texts, lists and tables ---


def _text_method(call: Call) -> Value:
    receiver = call.receiver
    if isinstance(receiver, PathText) and call.dotted in (
        "open",
        "read_text",
        "absolute",
        "resolve",
        "expanduser",
    ):
        if call.dotted == "open":
            return Thing("file", "open", call.node, (receiver,))
        if call.dotted == "read_text":
            return Thing("result", "path.read_text", call.node, (receiver,))
        return receiver
    if (
        isinstance(receiver, PathText)
        and call.dotted == "joinpath"
        and all(isinstance(one, str) for one in call.positional)
    ):
        return PathText(os.path.join(receiver, *call.positional))
    is_plain = all(isinstance(value, (str, int)) for value in (*call.positional, *call.keywords.values()))
    if (
        call.dotted in ("format", "lower", "upper", "strip", "replace", "startswith", "endswith", "split")
        and is_plain
    ):
        try:
            return getattr(receiver, call.dotted)(*call.positional, **call.keywords)
        except (TypeError, ValueError, LookupError, AttributeError):
            return NOT_KNOWN
    return NOT_KNOWN


def _list_method(call: Call) -> Value:
    if call.dotted == "append" and call.positional:
        call.receiver.append(call.positional[0])
        return None
    if call.dotted == "extend" and call.positional:
        more = call.positional[0]
        call.receiver.extend(
            more if isinstance(more, (tuple, list)) else [Thing("starred", "*", call.node, (more,))]
        )
        return None
    return NOT_KNOWN


def _table_method(reading: Calls, call: Call) -> Value:
    table: Table = call.receiver
    key = call.positional[0] if call.positional else None
    is_key = isinstance(key, (str, int)) and not isinstance(key, bool)
    if call.dotted == "update":
        if call.positional:
            _update(reading, table, call.positional[0])
        for name, value in call.keywords.items():
            reading.put(table, name, Entry(value, call.node, call.node))
        return None
    if call.dotted in ("get", "setdefault", "pop") and is_key:
        return _look_up(reading, table, key, call)
    if call.dotted == "copy":
        return copied(table, len(reading.guards))
    return NOT_KNOWN


def _update(reading: Calls, table: Table, other: Value) -> None:
    if not isinstance(other, Table):
        table.open = True
        return
    table.open = table.open or other.open
    for key, entry in other.entries.items():
        reading.put(table, key, entry)


def _look_up(reading: Calls, table: Table, key: Value, call: Call) -> Value:
    found = table.entries.get(key)
    default = call.positional[1] if len(call.positional) > 1 else None
    if call.dotted == "pop":
        reading.remove(table, key)
    elif call.dotted == "setdefault" and found is None:
        reading.put(table, key, Entry(default, call.node, call.node))
        return default
    if found is not None:
        return found.value
    return NOT_KNOWN if table.open else default


FUNCTIONS: Mapping[str, Callable[[Any, Call], Value]] = {
    "deepspeed.initialize": _initialize,
    "deepspeed.add_config_arguments": _add_config_arguments,
    "open": _open,
    "io.open": _open,
    "json.load": _load_json,
    "hjson.load": _load_json,
    "json.loads": _loads_json,
    "hjson.loads": _loads_json,
    "pathlib.Path": _path,
    "os.path.join": _path_function(os.path.join),
    "os.path.dirname": _path_function(os.path.dirname),
    "os.path.abspath": _path_function(_same_text),
    "os.path.realpath": _path_function(_same_text),
    "os.path.expanduser": _path_function(_same_text),
    "os.environ.get": _environment,
    "os.getenv": _environment,
    "int": _convert(int),
    "float": _convert(float),
    "bool": _convert(bool),
    "str": _text,
    "dict": _dict,
    "list": _list,
    "tuple": _list,
    "getattr": _getattr,
    "len": _len,
    "copy.deepcopy": _copy,
    "copy.copy": _copy,
    "functools.partial": _partial,
}
METHODS: Mapping[str, Callable[[Any, Call], Value]] = {
    "accelerator.prepare": _prepare,
    "accelerator.prepare_model": _prepare_one,
    "accelerator.unwrap_model": _unwrapped,
}


SETTINGS = frozenset(
    ["training_args", "deepspeed_plugin", "accelerator", "lightning_trainer", "lightning_strategy"]
)
"""Kinds of things whose keyword arguments become attributes."""


def give_settings(made: Thing, call: Call) -> None:
    """Give a thing the attributes that its constructor sets from the arguments."""
    if made.kind in SETTINGS:
        made.attributes.update(call.keywords)
    elif made.kind == "trainer":
        for position, name in ((0, "model"), (1, "args")):
            value = call.argument(position, name)
            if isinstance(value, Thing):
                made.attributes[name] = value


def fill_fields(made: Thing, made_of: Class, positional: Sequence[Value], keywords: Mapping[str, Value]) -> None:
    """Give an object of a dataclass of the file its fields."""
    names = list(made_of.fields)
    given = {**dict(zip(names, positional, strict=False)), **keywords}
    for name, default in made_of.fields.items():
        value = given.get(name, arguments.field_default(default))
        if value is not NOTHING:
            made.attributes[name] = value
    if made.kind == "training_args":
        made.attributes.update(keywords)


__all__ = ["Named", "fill_fields", "method_kind", "result"]

"""Where a script takes its DeepSpeed config from."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dslint.documents.document import Document, NodePath, Placeholder
from dslint.documents.python_reader import Script
from dslint.documents.source import Span
from dslint.runs.script.events import Call
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Entry, Named, PathText, Table, Thing, Value, is_known


@dataclass(frozen=True)
class ConfigUse:
    """A config that a script hands to somebody.

    Attributes:
        taker: "initialize", "trainer", "accelerate", "lightning", "hf_config" or "zero_init".
        value: what it hands over: a path, a Table, or a Thing.
        node: where.
        call: the call that takes it.
    """

    taker: str
    value: Value
    node: ast.AST
    call: Call


def config_uses(deeds: Deeds) -> list[ConfigUse]:
    """The configs that a script hands over; those that train come first."""
    uses = [use for call in deeds.calls for use in _uses(call)]
    order = ("initialize", "trainer", "accelerate", "lightning", "hf_config", "zero_init")
    return sorted(uses, key=lambda use: order.index(use.taker))


def _uses(call: Call) -> Iterator[ConfigUse]:
    if call.name == "deepspeed.initialize":
        yield from _of_initialize(call)
    elif call.name in ("deepspeed.zero.Init", "deepspeed.runtime.zero.Init"):
        yield from _argument("zero_init", call, 5, "config_dict_or_path")
    result = call.result
    kind = result.kind if isinstance(result, Thing) and result.call is call else ""
    if kind == "training_args":
        yield from _argument("trainer", call, None, "deepspeed")
    elif kind == "deepspeed_plugin":
        yield from _argument("accelerate", call, 0, "hf_ds_config")
    elif kind == "lightning_strategy":
        yield from _argument("lightning", call, None, "config")
    elif kind == "hf_deepspeed_config":
        yield from _argument("hf_config", call, 0, "config_file_or_dict")
    if call.name.startswith("hf_parser.parse"):
        for thing in call.result if isinstance(call.result, tuple) else (call.result,):
            if isinstance(thing, Thing) and thing.kind == "training_args":
                value = thing.attributes.get("deepspeed", Thing("argument", "deepspeed", call.node))
                yield ConfigUse("trainer", value, call.node, call)


def _argument(taker: str, call: Call, position: int | None, name: str) -> Iterator[ConfigUse]:
    value = call.argument(position, name)
    if value is not None:
        yield ConfigUse(taker, value, node_of(call, position, name), call)


def _of_initialize(call: Call) -> Iterator[ConfigUse]:
    """`config`, or `config_params`, or `args.deepspeed_config` (deepspeed/__init__.py, initialize)."""
    for position, name in ((10, "config"), (12, "config_params")):
        value = call.argument(position, name)
        if value is not None:
            yield ConfigUse("initialize", value, node_of(call, position, name), call)
            return
    args = call.argument(0, "args")
    if isinstance(args, Thing) and args.attributes.get("deepspeed_config") is not None:
        yield ConfigUse("initialize", args.attributes["deepspeed_config"], node_of(call, 0, "args"), call)


def node_of(call: Call, position: int | None, name: str) -> ast.AST:
    """Where an argument stands; the call itself where it isn't given by itself."""
    for keyword in call.node.keywords:
        if keyword.arg == name:
            return keyword.value
    if position is not None and position < len(call.node.args):
        return call.node.args[position]
    return call.spread.get(name, call.node)


def reference_of(value: Value) -> str | None:
    """The path that a value names, also by the default of an argument that nobody gives."""
    if isinstance(value, str) and value.strip():
        return str(value) if isinstance(value, PathText) or "{" not in value else None
    if isinstance(value, Thing):
        if value.kind == "json" and value.inputs:
            return reference_of(value.inputs[0])
        default = value.attributes.get("default")
        return reference_of(default) if isinstance(default, str) else None
    if isinstance(value, Table) and isinstance(value.file, str) and not _is_changed(value):
        return value.file
    return None


def _is_changed(table: Table) -> bool:
    """Whether a script changed a table after it was loaded from a file."""
    return any(
        entry.value_node is not None or (isinstance(entry.value, Table) and _is_changed(entry.value))
        for entry in table.entries.values()
    )


def as_document(table: Table, script: Script, file: Document | None = None) -> Document:
    """The config that a script writes as a dict, or loads from a file and changes.

    Args:
        table: the dict.
        script: the script that holds it.
        file: the file that it was loaded from, where it was: its entries then stand there, and what the script
            changes stands at the entry that it replaces, or at the section around it.
    """
    if file is not None:
        return _TableReader(script, file).document(table)
    return _TableReader(script, _empty(script.owner(table.node), table)).document(table)


def _empty(script: Script, table: Table) -> Document:
    """A document for a dict that begins in a script."""
    return Document(script.source, {}, {}, {(): script.span(table.node)}, language="python")


class _TableReader:
    """Makes plain data of a table, with a place for each of its entries."""

    def __init__(self, script: Script, base: Document) -> None:
        self.script = script
        self.base = base
        self.keys: dict[NodePath, Span] = {}
        self.values: dict[NodePath, Span] = {(): base.values[()]}
        self.placeholders: list[Placeholder] = []
        self.open: set[NodePath] = set()

    def document(self, table: Table) -> Document:
        """The table as a document."""
        value = self._read(table, ())
        return Document(
            self.base.source,
            value,
            self.keys,
            self.values,
            placeholders=tuple(self.placeholders),
            open=frozenset(self.open),
            language="python",
        )

    def _read(self, table: Table, path: NodePath) -> dict[str, object]:
        data: dict[str, object] = {}
        if table.open:
            self.open.add(path)
        for key, entry in table.entries.items():
            if isinstance(key, str):
                here = (*path, key)
                self._place(here, entry)
                data[key] = self._value(entry.value, here)
        return data

    def _place(self, path: NodePath, entry: Entry) -> None:
        """Where an entry stands: in its file, in the script if that holds the dict, or where its section does."""
        node = entry.key_node
        if node is not None and self.script.owner(node).source is self.base.source:
            owner = self.script.owner(node)
            self.keys[path], self.values[path] = owner.span(node), owner.whole_span(entry.value_node or node)
        elif path in self.base.keys:
            self.keys[path], self.values[path] = self.base.keys[path], self.base.values[path]
        else:
            above = self.keys.get(path[:-1], self.values[()])
            self.keys[path] = self.values[path] = above

    def _value(self, value: Value, path: NodePath) -> object:
        if isinstance(value, Table):
            return self._read(value, path)
        if isinstance(value, (list, tuple)) and is_known(value):
            return list(value)
        if is_known(value):
            return value
        text = value.name if isinstance(value, (Thing, Named)) else "?"
        self.placeholders.append(Placeholder(text, self.values[path], path))
        return None

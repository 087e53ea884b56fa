"""The value "auto", which other programs replace before DeepSpeed reads a config, or should."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dslint.documents.document import Document
from dslint.runs.keys import KeyTable, NamePath, Schema


def has_auto_to_fill(document: Document, keys: KeyTable) -> bool:
    """Whether a key that Hugging Face fills has the value "auto"."""
    return any(node.get("x-auto") == "filled" for _, node in autos(document.value, keys))


def autos(value: Any, keys: KeyTable) -> Iterator[tuple[NamePath, Schema]]:
    """Paths of the value "auto" on keys that the schema knows, with the schema there."""
    if isinstance(value, dict):
        yield from _autos_below(value, (), keys.schema, keys)


def _autos_below(
    value: Mapping[str, Any], above: NamePath, node: Schema, keys: KeyTable
) -> Iterator[tuple[NamePath, Schema]]:
    known = keys.section(node).get("properties", {})
    for name, child in value.items():
        if name not in known:
            continue
        if child == "auto" and isinstance(child, str):
            yield (*above, name), known[name]
        elif isinstance(child, dict):
            yield from _autos_below(child, (*above, name), known[name], keys)


def autos_on_unknown_keys(value: Any, keys: KeyTable) -> Iterator[NamePath]:
    """Paths of the value "auto" on keys that the schema doesn't know, at any depth of the sections."""
    known = {path for path, _ in autos(value, keys)}
    yield from (path for path in _all_autos(value, ()) if path not in known and keys.node(path) is None)


def _all_autos(value: Any, path: NamePath) -> Iterator[NamePath]:
    if isinstance(value, dict):
        for name, child in value.items():
            yield from _all_autos(child, (*path, name))
    elif value == "auto" and isinstance(value, str):
        yield path

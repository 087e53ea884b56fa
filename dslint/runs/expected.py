"""What a key takes, in words."""

from __future__ import annotations

from typing import Any

from dslint.runs.keys import KeyTable, Schema

_TYPES = {
    "object": "a section in braces",
    "array": "a list",
    "string": "a text",
    "boolean": "true or false",
    "null": "null",
    "number": "a number",
    "integer": "a whole number",
}
_BOUNDS = {
    "minimum": "of at least",
    "exclusiveMinimum": "greater than",
    "maximum": "of at most",
    "exclusiveMaximum": "less than",
}


def expected(node: Schema, keys: KeyTable) -> str:
    """The values that a key takes, in a few words: `a whole number of at least 0`."""
    choices = list(dict.fromkeys(_choices(node, keys)))
    if len(choices) < 2:
        return choices[0] if choices else "another value"
    return f"{', '.join(choices[:-1])} or {choices[-1]}"


def _choices(node: Schema, keys: KeyTable) -> list[str]:
    if "anyOf" in node:
        return [word for choice in node["anyOf"] for word in _choices(choice, keys)]
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        if name == "auto":
            return []
        target = keys.schema["$defs"][name]
        return [target["title"]] if "title" in target else _choices(target, keys)
    if "enum" in node:
        return [_quoted(choice) for choice in node["enum"] if choice != "auto"]
    kinds = [node["type"]] if isinstance(node.get("type"), str) else node.get("type", [])
    if "object" in kinds:
        kinds = ["object"]
    if "number" in kinds:
        kinds = [kind for kind in kinds if kind != "boolean"]
    words = [_TYPES[kind] for kind in kinds if kind != "null"]
    bounds = [f"{text} {node[name]}" for name, text in _BOUNDS.items() if name in node]
    return [" ".join([word, *bounds]) if "number" in word else word for word in words]


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def kind_of(value: Any) -> str:
    """The type of a value in a reader's words."""
    if isinstance(value, bool):
        return "true or false"
    if value is None:
        return "null"
    kinds = {dict: "a section", list: "a list", str: "a text", int: "a number", float: "a number"}
    return next(word for kind, word in kinds.items() if isinstance(value, kind))

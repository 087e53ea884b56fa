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
    return _or(list(dict.fromkeys(_choices(node, keys))) or [_TYPES["null"]])


def _or(choices: list[str]) -> str:
    return choices[0] if len(choices) == 1 else f"{', '.join(choices[:-1])} or {choices[-1]}"


def _choices(node: Schema, keys: KeyTable) -> list[str]:
    if "anyOf" in node:
        has_names = any("enum" in choice for choice in node["anyOf"])
        choices = [choice for choice in node["anyOf"] if not (has_names and "pattern" in choice)]
        return [word for choice in choices for word in _choices(choice, keys)]
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
    if kinds == ["array"] and "enum" in node.get("items", {}):
        return [f"a list of {_or(_choices(node['items'], keys))}"]
    if kinds == ["array"] and node.get("maxItems", 0) == node.get("minItems"):
        return [f"a list of {node['minItems']}"]
    bounds = [f"{text} {node[name]}" for name, text in _BOUNDS.items() if name in node]
    if node.get("not", {}).get("const", False) is not False:
        bounds.append(f"other than {_quoted(node['not']['const'])}")
    return [" ".join([word, *bounds]) if "number" in word else word for word in words]


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def shown(text: str, value: Any) -> str:
    """A value as the file has it, with its kind where the text alone could mislead: `"16" (a text)`."""
    kinds = {bool: "", dict: "a section", list: "a list", str: "a text", int: "", float: ""}
    kind = next((word for kind, word in kinds.items() if isinstance(value, kind)), "")
    short = text if len(text) <= 40 and "\n" not in text else text[:30].split("\n")[0] + "…"
    return f"{short} ({kind})" if kind else short

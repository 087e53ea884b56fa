"""Holds a config against the schema.

`jsonschema` is the validator of record, but importing it costs more than all the rest of a check; so a small
check comes first that knows the keywords of our own schema. It says yes only where it understood everything;
in all other cases `jsonschema` decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dslint.documents.document import NodePath
from dslint.runs.keys import Schema

_NOTES = {"title", "description", "default", "examples", "deprecated", "$defs", "$schema"}
_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: _is_number(value),
    "integer": lambda value: _is_number(value) and value == value // 1,
}
_BOUNDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "minimum": lambda value, bound: value >= bound,
    "exclusiveMinimum": lambda value, bound: value > bound,
    "maximum": lambda value, bound: value <= bound,
    "exclusiveMaximum": lambda value, bound: value < bound,
}


def fits(value: Any, node: Schema, schema: Schema) -> bool:
    """Whether a value surely obeys a schema; False also where this check doesn't know a keyword.

    Keys that the schema doesn't list are no business of this check (see config_keys).
    """
    return all(
        keyword in _NOTES or keyword.startswith("x-") or _obeys(value, keyword, node, schema) for keyword in node
    )


def _obeys(value: Any, keyword: str, node: Schema, schema: Schema) -> bool:
    rule = node[keyword]
    if keyword == "type":
        kinds = [rule] if isinstance(rule, str) else rule
        return any(_TYPES[kind](value) for kind in kinds)
    if keyword == "$ref":
        return fits(value, schema["$defs"][rule.rpartition("/")[2]], schema)
    if keyword == "anyOf":
        return any(fits(value, choice, schema) for choice in rule)
    if keyword == "enum":
        return any(value == choice and type(value) is type(choice) for choice in rule)
    if keyword == "const":
        return bool(value == rule) and type(value) is type(rule)
    if keyword == "not":
        return bool(rule) and set(rule) <= {"const"} and value != rule["const"]
    if keyword == "multipleOf":
        return not _is_number(value) or value % rule == 0
    if keyword in ("minItems", "maxItems"):
        return not isinstance(value, list) or (len(value) >= rule if keyword == "minItems" else len(value) <= rule)
    if keyword == "minLength":
        return not isinstance(value, str) or len(value) >= rule
    if keyword in _BOUNDS:
        return not _is_number(value) or _BOUNDS[keyword](value, rule)
    if keyword == "properties":
        return not isinstance(value, dict) or all(
            fits(value[name], child, schema) for name, child in rule.items() if name in value
        )
    if keyword in ("additionalProperties", "patternProperties"):
        return True
    if keyword == "items":
        return not isinstance(value, list) or all(fits(item, rule, schema) for item in value)
    if keyword == "pattern":
        return not isinstance(value, str) or re.search(rule, value) is not None
    return False


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def wrong_values(value: Any, schema: Schema) -> Iterator[tuple[NodePath, Any]]:
    """Paths of values that break the schema, each once, with the value."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    def silent(*_: Any) -> Iterator[Any]:
        return iter(())

    validator = extend(  # type: ignore[no-untyped-call]
        Draft202012Validator, {"additionalProperties": silent, "patternProperties": silent}
    )
    seen: set[NodePath] = set()
    for error in validator(schema).iter_errors(value):
        path: NodePath = tuple(error.absolute_path)
        if path not in seen:
            seen.add(path)
            yield path, error.instance

"""Changes of plain data, to know beforehand what a file has to say after its text was edited."""

from __future__ import annotations

from typing import Any

from dslint.documents.document import NodePath
from dslint.fixes.edit import CannotEditError


def with_value(data: Any, path: NodePath, value: Any) -> Any:
    """The data with another value at a path; what stands in the way gives way to objects.

    Raises:
        CannotEditError: the path goes through an item that no list has.
    """
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        if not isinstance(data, list) or not 0 <= step < len(data):
            raise CannotEditError("there is no such item in the list")
        return [*data[:step], with_value(data[step], rest, value), *data[step + 1 :]]
    members = dict(data) if isinstance(data, dict) else {}
    members[step] = with_value(members.get(step), rest, value)
    return members


def without(data: Any, path: NodePath) -> Any:
    """The data without what is at a path that is there."""
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        return [*data[:step], *([without(data[step], rest)] if rest else []), *data[step + 1 :]]
    if rest:
        return {**data, step: without(data[step], rest)}
    return {key: child for key, child in data.items() if key != step}


def with_name(data: Any, path: NodePath, name: str) -> Any:
    """The data with another name for the key at a path that is there."""
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        return [*data[:step], with_name(data[step], rest, name), *data[step + 1 :]]
    if rest:
        return {**data, step: with_name(data[step], rest, name)}
    return {name if key == step else key: child for key, child in data.items()}


def nested(path: NodePath, value: Any) -> Any:
    """The value with an object around it for each step of a path."""
    for step in reversed(path):
        value = {step: value}
    return value


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, the order of keys and the kinds of plain values included.

    An integer and a float of the same value are one: Hjson itself turns 1.0 into 1.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other) or (one != one and other != other)  # not a number is not equal to itself

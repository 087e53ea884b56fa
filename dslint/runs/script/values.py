"""The values that reading a script knows: constants, tables, and things that only running it would make.

A constant is a plain Python value. What a run alone can tell is a Thing: nobody knows its value, but what made it,
and from what.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Value = Any
"""A constant (None, bool, number, str, tuple, list), Table, Thing, Named, Function or Class."""


@dataclass(eq=False)
class Thing:
    """Something that the script makes and that exists only while it runs.

    Attributes:
        kind: what it is, in the words of known_apis ("engine", "optimizer"), or how it came about ("result" of an
            unknown call, "item" of a loop, "parameter" of a function that nobody calls).
        name: what made it: the dotted name of the call, the attribute, the operator.
        node: where it was made.
        inputs: the values it was made from, the receiver of a method first.
        attributes: what was assigned to its attributes, or is known of them.
        call: the call that made it, where one did.
    """

    kind: str
    name: str
    node: ast.AST | None = None
    inputs: tuple[Value, ...] = ()
    attributes: dict[str, Value] = field(default_factory=dict)
    call: Any = None

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}>"


@dataclass(frozen=True)
class Named:
    """Something imported, by its dotted name: `torch.optim.AdamW`."""

    name: str


@dataclass(eq=False)
class Function:
    """A function of this file, or a method bound to its object.

    Attributes:
        node: its definition.
        scope: the names around it.
        bound: the object whose method it is; None for a plain function.
    """

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Any
    bound: Value = None


@dataclass(eq=False)
class Class:
    """A class of this file.

    Attributes:
        node: its definition.
        bases: dotted names of all bases, those of bases in this file included.
        members: its methods and class attributes by name.
        fields: annotated class attributes in order, with their defaults (for dataclasses).
        instance: stands for an object of it, where methods are read without a call.
    """

    node: ast.ClassDef
    bases: tuple[str, ...]
    members: dict[str, Value]
    fields: dict[str, Value]
    instance: Thing


NOTHING = Thing("nothing", "")
"""Stands for a default that isn't there."""


@dataclass(eq=False)
class Entry:
    """A value in a table, and where key and value stand (None: it was not written in this file)."""

    value: Value
    key_node: ast.AST | None
    value_node: ast.AST | None


@dataclass(eq=False)
class Table:
    """A dict as far as it is known.

    Attributes:
        node: where it was made.
        entries: by key.
        open: whether it may hold more than that (`**other`, an update nobody can follow).
        file: the path of the file it was loaded from, whose entries stand below these; None for a literal.
        depth: the number of undecided branches around the place where it was made.
    """

    node: ast.AST
    entries: dict[Any, Entry]
    open: bool = False
    file: Value = None
    depth: int = 0


class PathText(str):
    """A path made by pathlib: a text that `/` joins."""

    __slots__ = ()


def is_known(value: Value) -> bool:
    """Whether a value is a constant, through and through."""
    if isinstance(value, (tuple, list)):
        return all(map(is_known, value))
    return value is None or isinstance(value, (bool, int, float, str, bytes))


def same(left: Value, right: Value) -> bool:
    """Whether two values are surely one and the same."""
    if left is right:
        return True
    return is_known(left) and is_known(right) and type(left) is type(right) and bool(left == right)


def origins(value: Value, limit: int = 400) -> Iterator[Thing]:
    """The thing itself and all things that it was made from, nearest first."""
    seen: set[int] = set()
    waiting = [value]
    while waiting and len(seen) < limit:
        current = waiting.pop(0)
        if isinstance(current, (tuple, list)):
            waiting += current
        elif isinstance(current, Thing) and id(current) not in seen:
            seen.add(id(current))
            yield current
            waiting += current.inputs


def comes_from(value: Value, kind: str) -> bool:
    """Whether a value is, or was made from, a thing of this kind."""
    return any(thing.kind == kind for thing in origins(value))

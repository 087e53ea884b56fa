"""What a script does, step by step: calls, stores, reads and jumps, each with what surrounds it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from dslint.runs.script.values import Thing, Value


@dataclass(frozen=True)
class Guard:
    """A condition under which the script comes here.

    Attributes:
        test: the condition's value (a Thing, since a known one takes its branch at once).
        holds: whether the condition has to be true, or false (`else`, or after `if …: return`).
        node: the statement that asks.
    """

    test: Value
    holds: bool
    node: ast.AST


@dataclass(frozen=True)
class Loop:
    """A loop around a place.

    Attributes:
        node: the statement.
        over: what a `for` goes through; for `while`, the condition.
    """

    node: ast.AST
    over: Value


@dataclass(frozen=True)
class Spot:
    """What surrounds a step of the script.

    Attributes:
        order: counts the steps in the order in which a run takes them, as far as the text tells.
        guards: the undecided conditions, the outermost first, those around calling functions included.
        loops: the loops, likewise.
        contexts: what the `with` statements around it entered.
        functions: the functions of this file that are being executed, by name.
        is_called: False in a function that nothing in the file calls, so that its order says nothing.
        is_tried: whether an `except` stands ready for its failure, here or around a calling function.
    """

    order: int
    guards: tuple[Guard, ...]
    loops: tuple[Loop, ...]
    contexts: tuple[Value, ...]
    functions: tuple[str, ...]
    is_called: bool
    is_tried: bool = False


@dataclass(eq=False)
class Call:
    """One call.

    Attributes:
        dotted: for something imported, its dotted name; for a method, the method's name.
        receiver: the object whose method is called; None for a plain function.
        positional: its positional arguments.
        keywords: its keyword arguments.
        is_complete: whether these are all (no `*rest` or `**rest` that nobody can follow).
        node: the expression.
        spot: what surrounds it.
        result: what it gives.
        is_dropped: whether nothing is done with the result.
        spread: where the keyword arguments stand that `**` spreads, by name.
        unpacked: into how many names the result is unpacked; None where it isn't, or into a starred one.
    """

    dotted: str
    receiver: Value
    positional: tuple[Value, ...]
    keywords: Mapping[str, Value]
    is_complete: bool
    node: ast.Call
    spot: Spot
    result: Value = None
    is_dropped: bool = False
    unpacked: int | None = None
    spread: Mapping[str, ast.AST] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """`deepspeed.initialize`, `engine.step`; `?.backward` for a method of something unknown."""
        if self.receiver is None:
            return self.dotted
        kind = self.receiver.kind if isinstance(self.receiver, Thing) else "constant"
        return f"{kind}.{self.dotted}"

    def argument(self, position: int | None, name: str) -> Value:
        """An argument by its position (None: keyword only) or name; None where it isn't given."""
        if name in self.keywords:
            return self.keywords[name]
        if position is not None and position < len(self.positional):
            return self.positional[position]
        return None

    def has(self, position: int | None, name: str) -> bool:
        """Whether an argument is given."""
        return name in self.keywords or (position is not None and position < len(self.positional))


@dataclass(frozen=True)
class Store:
    """An assignment to an attribute or to an element: `args.lr = 1`, `p.requires_grad = True`."""

    target: Value
    name: str
    value: Value
    node: ast.AST
    spot: Spot


@dataclass(frozen=True)
class Read:
    """A look at one of the attributes that are watched (WATCHED in expressions.py)."""

    target: Value
    name: str
    node: ast.AST
    spot: Spot


@dataclass(frozen=True)
class Jump:
    """A `return`, `continue`, `break` or `raise`; the caught exception's handler counts as a guard."""

    kind: str
    node: ast.AST
    spot: Spot


@dataclass(frozen=True)
class Import:
    """The first statement that imports a module.

    Attributes:
        node: the statement.
        spot: what surrounds it.
        is_tried: whether an `except` stands ready for its failure.
    """

    node: ast.AST
    spot: Spot
    is_tried: bool

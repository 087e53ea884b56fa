"""What the reading of a script has come to: the steps so far, and what surrounds the present place."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from dslint.runs.script.events import Call, Guard, Import, Jump, Loop, Read, Spot, Store
from dslint.runs.script.values import Class, Function, Value

MOST_STEPS = 60_000
"""Statements that are read, calls of the same function counted each time; far more than real scripts have."""

DEEPEST_CALL = 12
"""Functions of the file inside one another."""


@dataclass(eq=False)
class State:
    """The trace, and the stacks around the present place.

    Attributes:
        path: the script's path, for `__file__`.
        arguments: the words after the script in the launch command; None where no command is known. A word that
            can't be told is None.
    """

    path: str
    arguments: Sequence[str | None] | None
    chosen: frozenset[ast.AST] | None = None
    calls: list[Call] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    jumps: list[Jump] = field(default_factory=list)
    functions_seen: dict[ast.AST, Function] = field(default_factory=dict)
    classes_seen: list[Class] = field(default_factory=list)
    entered: set[ast.AST] = field(default_factory=set)
    imports: dict[str, Import] = field(default_factory=dict)
    tries: int = 0
    guards: tuple[Guard, ...] = ()
    loops: tuple[Loop, ...] = ()
    contexts: tuple[Value, ...] = ()
    stack: tuple[str, ...] = ()
    is_called: bool = True
    steps: int = 0

    @property
    def spot(self) -> Spot:
        """What surrounds the next step."""
        self.steps += 1
        is_tried = self.tries > 0
        return Spot(self.steps, self.guards, self.loops, self.contexts, self.stack, self.is_called, is_tried)

    def note_import(self, name: str, node: ast.AST) -> None:
        """Remember the first import of a module."""
        if name not in self.imports:
            self.imports[name] = Import(node, self.spot, self.tries > 0)

    @property
    def has_enough(self) -> bool:
        """Whether so much was read that the rest is left out."""
        return self.steps > MOST_STEPS

    @contextmanager
    def guarded(self, test: Value, holds: bool, node: ast.AST) -> Iterator[None]:
        """Inside a branch that nobody knows whether it is taken."""
        before = self.guards
        self.guards = (*before, Guard(test, holds, node))
        try:
            yield
        finally:
            self.guards = before

    @contextmanager
    def repeated(self, node: ast.AST, over: Value) -> Iterator[None]:
        """Inside a loop."""
        before = self.loops
        self.loops = (*before, Loop(node, over))
        try:
            yield
        finally:
            self.loops = before

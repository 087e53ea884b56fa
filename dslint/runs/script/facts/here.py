"""What a fix needs to know of the code around a finding: texts, places, and names that hold there.

Whatever can't be told is Unknown, so that a fix that wants it isn't made.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from dslint.documents.python_reader import Script
from dslint.documents.source import Span
from dslint.runs.script.events import Call
from dslint.runs.script.items import code_at
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Thing, Value
from dslint.runs.unknown import UNDECIDABLE, Unknown

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_CLOSED = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant)


@dataclass(frozen=True)
class Here:
    """The surroundings of one node of a script.

    Attributes:
        deeds: what the script does.
        node: where the finding stands.
    """

    deeds: Deeds
    node: ast.AST

    @property
    def script(self) -> Script:
        """The file of the node."""
        return self.deeds.script.owner(self.node)

    def code(self, node: ast.AST) -> str:
        """The whole text of a node; its further lines as deep as if its statement began at the margin."""
        text = code_at(self.deeds.script, node)
        statement = self.statement(node) if "\n" in text else None
        if statement is None or '"""' in text or "'''" in text:
            return text
        first, *rest = text.split("\n")
        margin = " " * statement.col_offset
        if not all(line.startswith(margin) for line in rest if line.strip()):
            return text
        return "\n".join([first, *(line[len(margin) :] if line.strip() else line for line in rest)])

    def operand(self, node: ast.AST) -> str:
        """The text of a node, in brackets where an attribute or an operator may not follow it."""
        text = self.code(node)
        return text if isinstance(node, _CLOSED) else f"({text})"

    def span(self, node: ast.AST | None) -> Span | Unknown:
        """Where a node of this file stands, all of its lines included."""
        owner = self.script
        if node is None or self.deeds.script.owner(node) is not owner or not hasattr(node, "lineno"):
            return UNDECIDABLE
        return owner.whole_span(node)

    def has_comments(self, node: ast.AST) -> bool:
        """Whether a comment may stand inside of a node, which a new text for it would lose."""
        return "#" in self.code(node)

    # --- around the node ---

    def above(self, node: ast.AST | None = None) -> Iterator[ast.AST]:
        """What holds a node, from the inside out; the node of the finding if none is given."""
        current = self.deeds.parents.get(node or self.node)
        while current is not None:
            yield current
            current = self.deeds.parents.get(current)

    def statement(self, node: ast.AST | None = None) -> ast.stmt | None:
        """The innermost statement that holds a node, or is it."""
        node = node or self.node
        if isinstance(node, ast.stmt):
            return node
        return next((one for one in self.above(node) if isinstance(one, ast.stmt)), None)

    def is_statement(self, node: ast.AST | None = None) -> bool:
        """Whether a statement is nothing but this expression, whose result is dropped."""
        node = node or self.node
        statement = self.statement(node)
        return isinstance(statement, ast.Expr) and statement.value is node

    def is_under(self, guard: ast.AST) -> bool:
        """Whether the node's statement stands right in the body of this `if`."""
        statement = self.statement()
        return isinstance(guard, ast.If) and statement in guard.body

    def function(self, node: ast.AST | None = None) -> ast.AST | None:
        """The function, or else the module, that a node stands in."""
        around = list(self.above(node))
        return next((one for one in around if isinstance(one, _FUNCTIONS)), around[-1] if around else None)

    def target(self, made: ast.AST) -> ast.expr | None:
        """The one target that what an expression gives is assigned to."""
        statement = self.statement(made)
        if isinstance(statement, ast.Assign) and statement.value is made and len(statement.targets) == 1:
            return statement.targets[0]
        return None

    # --- names ---

    def name_of(self, thing: Thing) -> str | Unknown:
        """How the code at the node can speak of a thing: `engine`, `self.engine`."""
        place = self.function()
        for node, receiver in self._owners(place):
            if receiver is thing and self._holds(node, thing):
                return self.code(node)
        made = thing.attributes.get("initialize")
        first = self.first_target(made) if isinstance(made, Call) else None
        if isinstance(first, ast.Name) and self._is_global(first):
            return first.id
        if first is not None and self.function(first) is place and self._holds(first, thing):
            return self.code(first)
        return UNDECIDABLE

    def _owners(self, place: ast.AST | None) -> Iterator[tuple[ast.expr, Value]]:
        """The names that a function calls, or calls methods of, with what they mean there."""
        nodes = ast.walk(place) if place is not None else ()
        inside = {id(node) for node in nodes if isinstance(node, ast.Call)}
        for call in self.deeds.calls:
            if id(call.node) not in inside:
                continue
            func = call.node.func
            node = func.value if isinstance(func, ast.Attribute) and call.dotted != "__call__" else func
            if is_path(node) and self.function(node) is place:
                yield node, call.receiver

    def first_target(self, made: Call) -> ast.expr | None:
        """The name of an engine where deepspeed.initialize is unpacked."""
        if self.deeds.script.owner(made.node) is not self.script:
            return None
        found = self.target(made.node)
        if isinstance(found, ast.Tuple) and found.elts and is_path(found.elts[0]):
            return found.elts[0]
        return None

    def _holds(self, node: ast.expr, thing: Thing) -> bool:
        """Whether a name means this thing at the node: what was set last before it, and nothing else since."""
        text, place, line = self.code(node), self.function(node), getattr(self.node, "lineno", 0)
        stores = sorted(self._stores(place, text), key=lambda one: one.lineno)
        if stores and stores[0].lineno > line:
            return False
        last = stores[-1] if stores and stores[-1].lineno <= line else None
        since = 0 if last is None else self._end_of(last)
        if last is not None and node.lineno < last.lineno:
            return False
        others = [one for one, receiver in self._owners(place) if receiver is not thing and one.lineno > since]
        return all(self.code(one) != text for one in others)

    def _end_of(self, store: ast.expr) -> int:
        """The line on which the statement that sets a name ends."""
        statement = self.statement(store)
        is_assignment = isinstance(statement, ast.Assign)
        return (statement.end_lineno if is_assignment and statement is not None else None) or store.lineno

    def _stores(self, place: ast.AST | None, text: str) -> Iterator[ast.expr]:
        """The places of a function that set a name."""
        for one in ast.walk(place) if place is not None else ():
            if not isinstance(one, (ast.Name, ast.Attribute)) or not isinstance(one.ctx, ast.Store):
                continue
            if self.code(one) == text and self.function(one) is place:
                yield one

    def _is_global(self, node: ast.Name) -> bool:
        """Whether a name of the module is set once, and seen at the node."""
        place, tree = self.function(), self.script.tree
        if self.function(node) is not tree or len(list(self._stores(tree, node.id))) != 1:
            return False
        if place is tree:
            return node.lineno <= getattr(self.node, "lineno", 0)
        return node.id not in self._own_names(place)

    def _own_names(self, place: ast.AST | None) -> set[str]:
        """The names that the functions around the node set themselves."""
        found: set[str] = set()
        for one in (place, *(self.above(place) if place is not None else ())):
            if isinstance(one, _FUNCTIONS):
                found |= {part.arg for part in ast.walk(one) if isinstance(part, ast.arg)}
                names = [part for part in ast.walk(one) if isinstance(part, ast.Name)]
                found |= {part.id for part in names if isinstance(part.ctx, ast.Store)}
        return found

    def is_set_only_under(self, name: str, guard: ast.AST) -> bool:
        """Whether the function sets a name, but only under the same condition as that of an `if`."""
        if not isinstance(guard, ast.If):
            return False
        stores = list(self._stores(self.function(), name))
        return bool(stores) and all(self._is_under_test(store, self.code(guard.test)) for store in stores)

    def _is_under_test(self, node: ast.AST, test: str) -> bool:
        return any(isinstance(one, ast.If) and self.code(one.test) == test for one in self.above(node))

    def is_set(self, name: str) -> bool:
        """Whether the function sets a name before the node, and never again."""
        lines = [one.lineno for one in self._stores(self.function(), name)]
        return bool(lines) and max(lines) < getattr(self.node, "lineno", 0)

    def uses(self, name: str) -> int:
        """How often the file reads a name."""
        tree = self.script.tree
        nodes = [] if tree is None else ast.walk(tree)
        return sum(isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load) for one in nodes)

    def module(self, name: str) -> str | Unknown:
        """How the code at the node can speak of a module that the file imports at its top: `deepspeed`."""
        tree = self.script.tree
        for statement in tree.body if tree is not None else ():
            for alias in statement.names if isinstance(statement, ast.Import) else ():
                known = alias.asname or alias.name.partition(".")[0]
                is_it = alias.name == name if alias.asname else known == name
                if is_it and statement.lineno < getattr(self.node, "lineno", 0):
                    return known if known not in self._own_names(self.function()) else UNDECIDABLE
        return UNDECIDABLE


def is_path(node: ast.AST) -> bool:
    """Whether an expression is a name, or attributes of one."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)

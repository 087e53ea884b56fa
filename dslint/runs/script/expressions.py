"""What the expressions of a script are worth, as far as the text tells."""

from __future__ import annotations

import ast
import operator
import os
from collections.abc import Callable, Mapping
from typing import Any

from dslint.runs.script.events import Read
from dslint.runs.script.known_apis import ATTRIBUTES
from dslint.runs.script.scope import Scope, either
from dslint.runs.script.state import State
from dslint.runs.script.values import (
    NOTHING,
    Class,
    Entry,
    Function,
    Named,
    PathText,
    Table,
    Thing,
    Value,
    is_known,
)

WATCHED = frozenset(
    ["grad", "data", "shape", "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"]
)
"""Attributes whose reading is a step of its own."""

_LONGEST = 10_000
"""Characters of a text, or elements of a list, that are still worked out."""

_OPERATIONS: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
    ast.Is: lambda left, right: left is right or (left == right and left is not None and right is not None),
    ast.IsNot: lambda left, right: not (left is right or (left == right and left is not None)),
}
SIGNS: Mapping[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
}


class Expressions(State):
    """Works out expressions; calls are the business of the class above."""

    def call(self, node: ast.Call, scope: Scope) -> Value:
        """What a call gives."""
        raise NotImplementedError

    def evaluate(self, node: ast.expr | None, scope: Scope) -> Value:
        """The value of an expression."""
        if node is None:
            return None
        if isinstance(node, ast.Constant):
            return None if node.value is Ellipsis else node.value
        if isinstance(node, ast.Name):
            found = scope.find(node.id)
            return Named(node.id) if found is NOTHING else found
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        return Thing("unread", type(node).__name__, node) if method is None else method(node, scope)

    def _call(self, node: ast.Call, scope: Scope) -> Value:
        return self.call(node, scope)

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Value:
        return self.attribute(self.evaluate(node.value, scope), node.attr, node)

    def attribute(self, owner: Value, name: str, node: ast.AST) -> Value:
        """An attribute of a value."""
        if isinstance(owner, Named):
            return self.command_line() if (owner.name, name) == ("sys", "argv") else Named(f"{owner.name}.{name}")
        if isinstance(owner, Class):
            return owner.members.get(name) or Thing("attribute", name, node, (owner,))
        if isinstance(owner, PathText) and name == "parent":
            return PathText(os.path.dirname(owner))
        if not isinstance(owner, Thing):
            return Thing("attribute", name, node, (owner,))
        if name in WATCHED:
            self.reads.append(Read(owner, name, node, self.spot))
        if name in owner.attributes:
            return owner.attributes[name]
        member = self.member(owner, name)
        if member is not None:
            return member
        made = Thing(ATTRIBUTES.get((owner.kind, name), "attribute"), name, node, (owner,))
        if made.kind != "attribute":
            owner.attributes[name] = made  # it stays one and the same object
        return made

    def command_line(self) -> Value:
        """`sys.argv`: a list where the whole launch command is known."""
        if self.arguments is None or any(word is None for word in self.arguments):
            return Named("sys.argv")
        return [self.path, *self.arguments]

    def member(self, owner: Thing, name: str) -> Value:
        """A method or class attribute of an object whose class is in this file; None where there is none."""
        made_by = owner.attributes.get("__class__")
        if not isinstance(made_by, Class) or name not in made_by.members:
            return None
        member = made_by.members[name]
        if not isinstance(member, Function):
            return member
        bound = Function(member.node, member.scope, owner)
        return self.read_property(bound) if _is_property(member) else bound

    def read_property(self, bound: Function) -> Value:
        """What a property gives."""
        raise NotImplementedError

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Value:
        owner = self.evaluate(node.value, scope)
        if isinstance(node.slice, ast.Slice):
            start = self.evaluate(node.slice.lower, scope)
            if (
                isinstance(owner, (list, tuple))
                and isinstance(start, int)
                and not (node.slice.upper or node.slice.step)
            ):
                return owner[start:]
            return Thing("element", "[:]", node, (owner,))
        index = self.evaluate(node.slice, scope)
        return self.element(owner, index, node)

    def element(self, owner: Value, index: Value, node: ast.AST) -> Value:
        """An element of a value."""
        if isinstance(owner, (tuple, list)) and isinstance(index, int) and -len(owner) <= index < len(owner):
            return owner[index]
        if isinstance(owner, Table) and is_known(index) and not isinstance(index, list) and index in owner.entries:
            return owner.entries[index].value
        if isinstance(owner, Named) and owner.name == "os.environ" and isinstance(index, str):
            return Thing("environment", index, node)
        if isinstance(owner, Thing) and isinstance(index, (str, int)) and f"[{index!r}]" in owner.attributes:
            return owner.attributes[f"[{index!r}]"]
        return Thing("element", str(index) if is_known(index) else "[]", node, (owner, index))

    def _binop(self, node: ast.BinOp, scope: Scope) -> Value:
        return self.operation(node.op, self.evaluate(node.left, scope), self.evaluate(node.right, scope), node)

    def operation(self, sign: ast.operator, left: Value, right: Value, node: ast.AST) -> Value:
        """The result of an arithmetic operator."""
        if isinstance(sign, ast.Div) and isinstance(left, PathText) and isinstance(right, str):
            return PathText(os.path.join(left, right))
        work_out = _OPERATIONS.get(type(sign))
        if work_out is not None and is_known(left) and is_known(right) and _is_small(left, right):
            try:
                return work_out(left, right)
            except (TypeError, ValueError, ArithmeticError):
                pass
        return Thing("operation", SIGNS.get(type(sign), "?"), node, (left, right))

    def _unaryop(self, node: ast.UnaryOp, scope: Scope) -> Value:
        value = self.evaluate(node.operand, scope)
        if isinstance(node.op, ast.Not):
            known = truth(value)
            return Thing("not", "not", node, (value,)) if known is None else not known
        if isinstance(node.op, ast.USub) and isinstance(value, (int, float)):
            return -value
        return Thing("operation", "-", node, (value,))

    def _boolop(self, node: ast.BoolOp, scope: Scope) -> Value:
        decides = isinstance(node.op, ast.Or)
        unknown: list[Value] = []
        value: Value = None
        for part in node.values:
            value = self.evaluate(part, scope)
            known = truth(value)
            if known is None:
                unknown.append(value)
            elif known is decides:
                return (
                    value if not unknown else Thing("logic", "or" if decides else "and", node, (*unknown, value))
                )
        if not unknown:
            return value
        return Thing("logic", "or" if decides else "and", node, tuple(unknown))

    def _compare(self, node: ast.Compare, scope: Scope) -> Value:
        values = [self.evaluate(part, scope) for part in (node.left, *node.comparators)]
        if len(values) == 2:
            left, right = values
            if isinstance(right, Table) and is_known(left) and not right.open:
                right = list(right.entries)
            if is_known(left) and is_known(right):
                try:
                    return bool(_COMPARISONS[type(node.ops[0])](left, right))
                except (TypeError, ValueError):
                    pass
            elif _surely_something(left) and right is None and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
                return isinstance(node.ops[0], ast.IsNot)
        return Thing("comparison", SIGNS[type(node.ops[0])], node, tuple(values))

    def _ifexp(self, node: ast.IfExp, scope: Scope) -> Value:
        test = self.evaluate(node.test, scope)
        known = truth(test)
        if known is not None:
            return self.evaluate(node.body if known else node.orelse, scope)
        with self.guarded(test, True, node):
            left = self.evaluate(node.body, scope)
        with self.guarded(test, False, node):
            right = self.evaluate(node.orelse, scope)
        return either(left, right)

    def _joinedstr(self, node: ast.JoinedStr, scope: Scope) -> Value:
        parts = [
            self.evaluate(part.value if isinstance(part, ast.FormattedValue) else part, scope)
            for part in node.values
        ]
        has_format = any(isinstance(part, ast.FormattedValue) and part.format_spec for part in node.values)
        if not has_format and all(isinstance(part, (str, int, float)) for part in parts):
            return "".join(map(str, parts))
        return Thing("text", "f-string", node, tuple(parts))

    def _tuple(self, node: ast.Tuple, scope: Scope) -> Value:
        return tuple(self._elements(node, scope))

    def _list(self, node: ast.List, scope: Scope) -> Value:
        return self._elements(node, scope)

    def _set(self, node: ast.Set, scope: Scope) -> Value:
        return self._elements(node, scope)

    def _elements(self, node: ast.Tuple | ast.List | ast.Set, scope: Scope) -> list[Value]:
        values: list[Value] = []
        for part in node.elts:
            if isinstance(part, ast.Starred):
                inner = self.evaluate(part.value, scope)
                values += inner if isinstance(inner, (tuple, list)) else [Thing("starred", "*", part, (inner,))]
            else:
                values.append(self.evaluate(part, scope))
        return values

    def _starred(self, node: ast.Starred, scope: Scope) -> Value:
        return Thing("starred", "*", node, (self.evaluate(node.value, scope),))

    def _dict(self, node: ast.Dict, scope: Scope) -> Value:
        table = Table(node, {}, depth=len(self.guards))
        for key_node, value_node in zip(node.keys, node.values, strict=True):
            value = self.evaluate(value_node, scope)
            if key_node is None:
                merge(table, value)
                continue
            key = self.evaluate(key_node, scope)
            if is_known(key) and not isinstance(key, list):
                table.entries[key] = Entry(value, key_node, value_node)
            else:
                table.open = True
        return table

    def _comprehension(self, node: Any, parts: list[ast.expr], scope: Scope) -> Value:
        inner = Scope(scope)
        over: list[Value] = []
        before = self.loops
        try:
            for each in node.generators:
                iterable = self.evaluate(each.iter, inner)
                over.append(iterable)
                self.bind(each.target, item_of(iterable, each.target), inner)
                self.loops = (*self.loops, *_loop(each, iterable))
                for test in each.ifs:
                    self.evaluate(test, inner)
            values = [self.evaluate(part, inner) for part in parts]
        finally:
            self.loops = before
        return Thing("comprehension", "for", node, (*values, *over))

    def _listcomp(self, node: ast.ListComp, scope: Scope) -> Value:
        return self._comprehension(node, [node.elt], scope)

    def _setcomp(self, node: ast.SetComp, scope: Scope) -> Value:
        return self._comprehension(node, [node.elt], scope)

    def _generatorexp(self, node: ast.GeneratorExp, scope: Scope) -> Value:
        return self._comprehension(node, [node.elt], scope)

    def _dictcomp(self, node: ast.DictComp, scope: Scope) -> Value:
        return self._comprehension(node, [node.key, node.value], scope)

    def _lambda(self, node: ast.Lambda, scope: Scope) -> Value:
        return Function(node, scope)

    def _namedexpr(self, node: ast.NamedExpr, scope: Scope) -> Value:
        value = self.evaluate(node.value, scope)
        self.bind(node.target, value, scope)
        return value

    def _await(self, node: ast.Await, scope: Scope) -> Value:
        return self.evaluate(node.value, scope)

    def _yield(self, node: ast.Yield, scope: Scope) -> Value:
        return Thing("result", "yield", node, (self.evaluate(node.value, scope),))

    def _yieldfrom(self, node: ast.YieldFrom, scope: Scope) -> Value:
        return Thing("result", "yield", node, (self.evaluate(node.value, scope),))

    def bind(self, target: ast.expr, value: Value, scope: Scope) -> None:
        """Assign a value to a target."""
        raise NotImplementedError


def _is_property(function: Function) -> bool:
    """Whether reading the attribute calls the function (`@property`, `@cached_property`)."""
    decorators = getattr(function.node, "decorator_list", [])
    names = [getattr(one, "id", getattr(one, "attr", "")) for one in decorators]
    return any(name in ("property", "cached_property") for name in names)


def _loop(node: ast.AST, over: Value) -> tuple[Any, ...]:
    from dslint.runs.script.events import Loop

    return (Loop(node, over),)


def _is_small(left: Value, right: Value) -> bool:
    """Whether an operation can't give something huge."""
    sizes = [len(value) for value in (left, right) if isinstance(value, (str, bytes, tuple, list))]
    if not sizes:
        return all(not isinstance(value, int) or abs(value) < 1 << 80 for value in (left, right))
    repeats = [value for value in (left, right) if isinstance(value, int)]
    return sum(sizes) * max([1, *repeats]) < _LONGEST


def _surely_something(value: Value) -> bool:
    """Whether a value is surely not None."""
    if isinstance(value, Thing):
        return value.kind in (
            "engine",
            "optimizer",
            "model",
            "scheduler",
            "accelerator",
            "loader",
            "args",
            "parser",
        )
    return isinstance(value, (Table, tuple, list, Function, Class))


def truth(value: Value) -> bool | None:
    """Python's truth of a value; None where nobody knows."""
    if isinstance(value, Table):
        return None if value.open and not value.entries else bool(value.entries)
    if isinstance(value, (Function, Class, PathText)):
        return True
    if isinstance(value, (tuple, list)):
        return bool(value)
    return bool(value) if is_known(value) else None


def merge(table: Table, other: Value) -> None:
    """Put the entries of another table into this one, as `{**other}` and `update` do."""
    if isinstance(other, Table):
        table.entries.update(other.entries)
        table.open = table.open or other.open
    else:
        table.open = True


def item_of(iterable: Value, node: ast.AST) -> Value:
    """What a loop's name is bound to."""
    if isinstance(iterable, Thing) and iterable.name == "enumerate" and iterable.inputs:
        return (Thing("index", "enumerate", node), item_of(iterable.inputs[0], node))
    if isinstance(iterable, Thing) and iterable.name == "zip":
        return tuple(item_of(each, node) for each in iterable.inputs)
    if isinstance(iterable, Thing) and iterable.name == "range":
        return Thing("index", "range", node, iterable.inputs)
    if (
        isinstance(iterable, Thing)
        and iterable.name in ("tqdm.tqdm", "tqdm.auto.tqdm", "tqdm")
        and iterable.inputs
    ):
        return item_of(iterable.inputs[0], node)
    return Thing("item", "item", node, (iterable,))

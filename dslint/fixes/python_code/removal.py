"""What goes when a piece of Python code is taken out: a statement, or an item with its comma."""

from __future__ import annotations

import libcst as cst

from dslint.documents.source import Span
from dslint.fixes.edit import CannotEditError
from dslint.fixes.python_code.rows import index_in, put_back, row_of
from dslint.fixes.python_code.statements import removal, statement_around
from dslint.fixes.python_code.tree import Change, Changed, Found, Tree

_ASSIGNMENTS = (cst.Assign, cst.AnnAssign, cst.AugAssign)


def removal_of(tree: Tree, found: Found) -> tuple[Change, Span]:
    """The change that takes a piece of code out, and where that stands.

    Raises:
        CannotEditError: what is around it needs it.
    """
    whole = _whole(found)
    near = tree.span(whole.node)
    if isinstance(whole.node, cst.BaseSmallStatement | cst.BaseCompoundStatement):
        place = statement_around(whole)
        if place.at.node is not whole.node:
            raise CannotEditError("what stands there is a branch of a statement")
        return removal(place), near
    return without_item(whole), near


def without_item(found: Found) -> Change:
    """Takes an argument, an entry, a decorator or an item of a `with` out of what holds it."""
    holder = found.parent
    if isinstance(holder.node, cst.Call | cst.Dict | cst.List | cst.Set):
        index = index_in(holder.node, found.node)
        return Change(holder, lambda updated: _without_in_row(updated, index))
    if isinstance(found.node, cst.Decorator) and isinstance(holder.node, cst.FunctionDef | cst.ClassDef):
        return _without_decorator(holder, holder.node, found.node)
    if isinstance(found.node, cst.WithItem) and isinstance(holder.node, cst.With):
        return _without_with_item(holder, holder.node, found.node)
    raise CannotEditError("what is around it can't do without it")


def _without_in_row(holder: cst.CSTNode, index: int) -> Changed:
    assert isinstance(holder, cst.Call | cst.Dict | cst.List | cst.Set)
    return put_back(holder, row_of(holder).without(index))


def _whole(found: Found) -> Found:
    """The statement or item that consists of what was found."""
    node = found.node
    if isinstance(node, cst.BaseSmallStatement | cst.BaseCompoundStatement | cst.Decorator | cst.WithItem):
        return found
    if isinstance(node, cst.Arg | cst.BaseDictElement | cst.BaseElement):
        return found
    if isinstance(node, cst.BaseExpression) and _consists_of(found.parent.node, node):
        return _whole(found.parent)
    raise CannotEditError("what is around it can't do without it")


def _consists_of(parent: cst.CSTNode, node: cst.BaseExpression) -> bool:
    """Whether nothing is left of a parent without one of its parts."""
    if isinstance(parent, cst.DictElement):
        return node is parent.key or node is parent.value
    if isinstance(parent, cst.Await):
        return node is parent.expression
    if isinstance(parent, cst.Decorator):
        return node is parent.decorator
    if isinstance(parent, cst.WithItem):
        return node is parent.item
    holders = (cst.Expr, *_ASSIGNMENTS, cst.Arg, cst.BaseElement, cst.StarredDictElement)
    return isinstance(parent, holders) and node is parent.value


def _without_decorator(
    holder: Found, statement: cst.FunctionDef | cst.ClassDef, decorator: cst.Decorator
) -> Change:
    """The comments above a decorator come to stand above what follows it."""
    index = next(number for number, one in enumerate(statement.decorators) if one is decorator)

    def make(updated: cst.CSTNode) -> Changed:
        assert isinstance(updated, cst.FunctionDef | cst.ClassDef)
        decorators = list(updated.decorators)
        kept = decorators.pop(index).leading_lines
        if index < len(decorators):
            lines = [*kept, *decorators[index].leading_lines]
            decorators[index] = decorators[index].with_changes(leading_lines=lines)
            return updated.with_changes(decorators=decorators)
        lines = [*kept, *updated.lines_after_decorators]
        return updated.with_changes(decorators=decorators, lines_after_decorators=lines)

    return Change(holder, make)


def _without_with_item(holder: Found, statement: cst.With, item: cst.WithItem) -> Change:
    if len(statement.items) == 1:
        raise CannotEditError("the `with` statement has nothing else")
    index = next(number for number, one in enumerate(statement.items) if one is item)

    def make(updated: cst.CSTNode) -> Changed:
        assert isinstance(updated, cst.With)
        items = [*updated.items[:index], *updated.items[index + 1 :]]
        if index == len(items):
            items[-1] = items[-1].with_changes(comma=updated.items[index].comma)
        return updated.with_changes(items=items)

    return Change(holder, make)

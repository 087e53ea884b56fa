"""Changes of a Python file's code, made with LibCST so that all else stays byte for byte.

Each function takes the file and the span of a node of its syntax tree, and gives the edits. Where a change can't
be made, or what came out would be no Python, it raises `CannotEditError`.
"""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from dslint.documents.source import Source, Span
from dslint.fixes.edit import CannotEditError, Edit, applied
from dslint.fixes.python_code.arguments import place_of, with_arguments
from dslint.fixes.python_code.dicts import delete_key, rename_key, set_key
from dslint.fixes.python_code.guard import freeing
from dslint.fixes.python_code.removal import removal_of
from dslint.fixes.python_code.statements import insertion, parsed_line, statement_around
from dslint.fixes.python_code.tree import Change, Changed, Found, Tree, read_tree
from dslint.fixes.python_code.values import (
    argument,
    expression,
    in_brackets,
    in_place_of,
    is_expression,
    only_replaces,
)

__all__ = [
    "delete_code",
    "delete_key",
    "insert_code",
    "rename_key",
    "replace_code",
    "set_arguments",
    "set_key",
    "unguard",
]


def replace_code(source: Source, span: Span, text: str) -> list[Edit]:
    """Puts other code in the place of an expression, an argument with its keyword, or a whole simple statement."""
    tree = read_tree(source)
    places = _places(tree, span)
    statement = next((found for found in places if isinstance(found.node, cst.BaseSmallStatement)), None)
    keyword = next((found for found in places if isinstance(found.node, cst.Arg) and found.node.keyword), None)
    value = next((found for found in places if isinstance(found.node, cst.BaseExpression)), None)
    if keyword is not None:
        return _replace_argument(tree, keyword, text)
    if value is not None and (statement is None or is_expression(tree.module, text)):
        return _replace_expression(tree, value, text)
    if statement is not None:
        return _replace_statement(tree, statement, text)
    raise CannotEditError("what stands there is neither an expression nor a simple statement")


def delete_code(source: Source, span: Span) -> list[Edit]:
    """Takes a statement out, or an argument, an entry, a decorator or an item of a `with` with its comma.

    What stands there may be the call that a statement or an entry consists of. Comments above stay.
    """
    tree = read_tree(source)
    change, near = removal_of(tree, _places(tree, span)[0])
    return tree.edits(change, near)


def insert_code(source: Source, span: Span, text: str, after: bool = False) -> list[Edit]:
    """Puts a one-line statement before or after the statement that holds a span, as deep as that one."""
    if "\n" in text or "\r" in text:
        raise CannotEditError("only a statement of one line can be put in")
    tree = read_tree(source)
    place = statement_around(tree.innermost(span))
    at = tree.span(place.at.node)
    return tree.edits(insertion(tree, place, text, after), Span(at.end, at.end) if after else at)


def set_arguments(source: Source, span: Span, arguments: Mapping[str, str | None]) -> list[Edit]:
    """Gives keyword arguments of a call other values, adds those that it lacks, takes out those that are None."""
    tree = read_tree(source)
    found = next((found for found in _places(tree, span) if isinstance(found.node, cst.Call)), None)
    if found is None or not isinstance(found.node, cst.Call):
        raise CannotEditError("no call stands there")
    values = {name: None if text is None else argument(tree.module, text) for name, text in arguments.items()}
    near, is_replaced = place_of(tree, found.node, values)
    indent = tree.module.default_indent
    return tree.edits(Change(found, lambda call: with_arguments(call, values, indent)), near, is_replaced)


def unguard(source: Source, span: Span) -> list[Edit]:
    """Takes the statement at a span out of the innermost `if` around it; an `if` that is left empty goes."""
    tree = read_tree(source)
    place = statement_around(tree.innermost(span))
    return tree.edits(freeing(place), tree.span(place.at.node))


def _places(tree: Tree, span: Span) -> list[Found]:
    places = tree.at(span)
    if not places:
        raise CannotEditError("nothing that could be changed begins and ends at that place")
    return places


def _replace_expression(tree: Tree, found: Found, text: str) -> list[Edit]:
    """As it stands if that means what is asked, in brackets otherwise."""
    new = expression(tree.module, text)
    span = tree.span(found.node)
    for value in (new, in_brackets(new)):
        try:
            edits = tree.edits(Change(found, in_place_of(value)), span, whole=True)
        except CannotEditError:
            continue
        if only_replaces(tree.source, applied(tree.source, edits), span, text):
            return edits
    raise CannotEditError(f"`{text}` can't stand in that place")


def _replace_argument(tree: Tree, found: Found, text: str) -> list[Edit]:
    call = expression(tree.module, f"f({text})")
    if not isinstance(call, cst.Call) or len(call.args) != 1:
        raise CannotEditError(f"`{text}` is not one argument")
    new = call.args[0]

    def make(old: cst.CSTNode) -> Changed:
        assert isinstance(old, cst.Arg)
        return old.with_changes(
            star=new.star,
            keyword=new.keyword,
            equal=new.equal,
            value=new.value,
            whitespace_after_star=new.whitespace_after_star,
        )

    return tree.edits(Change(found, make), tree.span(found.node), whole=True)


def _replace_statement(tree: Tree, found: Found, text: str) -> list[Edit]:
    line = parsed_line(tree, text)
    if not isinstance(line, cst.SimpleStatementLine):
        raise CannotEditError("a statement with a body can't stand in that place")
    new = list(line.body)

    def make(old: cst.CSTNode) -> Changed:
        assert isinstance(old, cst.BaseSmallStatement)
        new[-1] = new[-1].with_changes(semicolon=old.semicolon)
        return cst.FlattenSentinel(new)

    return tree.edits(Change(found, make), tree.span(found.node), whole=True)

"""Keyword arguments of a call: other values for them, new ones, and some fewer."""

from __future__ import annotations

import keyword
from collections.abc import Mapping

import libcst as cst

from dslint.documents.source import Span
from dslint.fixes.edit import CannotEditError
from dslint.fixes.python_code.rows import Row, put_back, row_of
from dslint.fixes.python_code.tree import Tree
from dslint.fixes.python_code.values import in_brackets

Values = Mapping[str, cst.BaseExpression | None]


def with_arguments(call: cst.CSTNode, values: Values, indent: str) -> cst.Call:
    """A call with other keyword arguments; None takes one out."""
    assert isinstance(call, cst.Call)
    row = row_of(call)
    for name, value in values.items():
        index = _index(row, name)
        if index is None:
            row = row if value is None else _with_new(row, name, value, indent)
        elif value is None:
            row = row.without(index)
        else:
            row = row.with_item(index, row.items[index].with_changes(value=value))
    changed = put_back(call, row)
    assert isinstance(changed, cst.Call)
    return changed


def place_of(tree: Tree, call: cst.Call, values: Values) -> tuple[Span, bool]:
    """Where a call changes, and whether something that stands there is replaced."""
    given = [arg for arg in call.args if arg.keyword is not None and arg.keyword.value in values]
    spans = [tree.span(arg) for arg in given]
    if not spans:
        end = tree.span(call.args[-1]).end if call.args else tree.span(call).end - 1
        return Span(end, end), False
    replaced = any(arg.keyword is not None and values[arg.keyword.value] is not None for arg in given)
    return Span(spans[0].start, spans[-1].end), replaced


def _index(row: Row, name: str) -> int | None:
    for index, item in enumerate(row.items):
        if isinstance(item, cst.Arg) and item.keyword is not None and item.keyword.value == name:
            return index
    return None


def _with_new(row: Row, name: str, value: cst.BaseExpression, indent: str) -> Row:
    if not name.isidentifier() or keyword.iskeyword(name):
        raise CannotEditError(f"`{name}` can't be the name of an argument")
    first = row.items[0] if len(row.items) == 1 else None
    if isinstance(first, cst.Arg) and isinstance(first.value, cst.GeneratorExp) and not first.value.lpar:
        row = row.with_item(0, first.with_changes(value=in_brackets(first.value)))
    item = cst.Arg(value, keyword=cst.Name(name), equal=_equal(row))
    return row.with_last(item, indent)


def _equal(row: Row) -> cst.AssignEqual:
    """The equals sign as the call's other arguments have it."""
    signs = [
        item.equal for item in row.items if isinstance(item, cst.Arg) and isinstance(item.equal, cst.AssignEqual)
    ]
    plain = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    usual = [sign for sign in signs if sign.deep_equals(signs[-1])]
    is_simple = usual and isinstance(usual[-1].whitespace_after, cst.SimpleWhitespace)
    return usual[-1] if is_simple and isinstance(usual[-1].whitespace_before, cst.SimpleWhitespace) else plain

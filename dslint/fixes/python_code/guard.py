"""Taking a statement out of the `if` around it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import libcst as cst

from dslint.fixes.edit import CannotEditError
from dslint.fixes.python_code.names import names_of
from dslint.fixes.python_code.statements import Line, Place, lines_of, put_before, with_leading
from dslint.fixes.python_code.tree import Change, Changed, Found


def freeing(place: Place) -> Change:
    """Moves a statement out of the innermost `if` whose body holds it: before it, or behind it if it was last.

    Raises:
        CannotEditError: it stands in the middle, in a further block, or needs what the `if` does.
    """
    guard = _guard_around(place)
    body, index = _body_of(guard, place)
    _refuse_what_loses_its_meaning(guard.node, body, index)
    block = guard.parent
    lines = list(lines_of(block.node))
    at = next(number for number, line in enumerate(lines) if line is guard.node)

    def make(updated: cst.CSTNode) -> Changed:
        changed = list(lines_of(updated))
        new, left_over = _freed(changed[at], body, index)
        changed[at : at + 1] = new
        return _with_lines(updated, changed, at + len(new), left_over)

    return Change(block, make)


def _guard_around(place: Place) -> Found:
    """The innermost `if` whose body, not its `else`, holds a statement; it has no further branches."""
    chain = place.at.up()
    for inner, outer in pairwise(chain):
        if isinstance(outer.node, cst.FunctionDef | cst.ClassDef | cst.Lambda):
            break
        if isinstance(outer.node, cst.If) and inner.node is outer.node.body:
            if outer.node.orelse is not None or not isinstance(outer.parent.node, cst.Module | cst.IndentedBlock):
                raise CannotEditError("the `if` around it has an `else` or `elif`")
            return outer
    raise CannotEditError("no `if` stands around it")


def _body_of(guard: Found, place: Place) -> tuple[Sequence[Line | cst.BaseSmallStatement], int]:
    """The statements of an `if`, and which of them is the one to move."""
    node = guard.node
    assert isinstance(node, cst.If)
    wanted = place.at.node
    if isinstance(node.body, cst.SimpleStatementSuite):
        body: Sequence[Line | cst.BaseSmallStatement] = node.body.body
    else:
        body = lines_of(node.body)
        if place.small and not place.is_alone and place.line.node in body:
            raise CannotEditError("it shares its line with another statement")
        wanted = place.line.node
    for index, one in enumerate(body):
        if one is wanted:
            return body, index
    raise CannotEditError("it stands in a further block inside of the `if`")


def _refuse_what_loses_its_meaning(
    guard: cst.CSTNode, body: Sequence[Line | cst.BaseSmallStatement], index: int
) -> None:
    assert isinstance(guard, cst.If)
    if 0 < index < len(body) - 1:
        raise CannotEditError("other statements of the `if` stand before it and behind it")
    if index:
        before = [names_of(one) for one in body[:index]]
        missing = sorted(set().union(*(names.bound for names in before)) & names_of(body[index]).used)
        if missing:
            raise CannotEditError(f"it needs `{missing[0]}`, which is set inside of the `if`")
        if any(names.leaves for names in before):
            raise CannotEditError("a statement before it may leave the `if`")
    if names_of(guard.test).bound:
        raise CannotEditError("the condition of the `if` sets a name")


def _freed(
    guard: Line, body: Sequence[Line | cst.BaseSmallStatement], index: int
) -> tuple[list[Line], list[cst.EmptyLine]]:
    """The lines that come instead of an `if`, and the comments at its end where it goes."""
    assert isinstance(guard, cst.If)
    moved = _as_line(guard, body[index])
    rest = [*body[:index], *body[index + 1 :]]
    if not rest:
        footer = list(guard.body.footer) if isinstance(guard.body, cst.IndentedBlock) else []
        return [with_leading(moved, [*guard.leading_lines, *moved.leading_lines])], footer
    if isinstance(guard.body, cst.SimpleStatementSuite):
        small = [one for one in rest if isinstance(one, cst.BaseSmallStatement)]
        small[-1] = small[-1].with_changes(semicolon=guard.body.body[-1].semicolon)
        left = guard.with_changes(body=guard.body.with_changes(body=small))
    else:
        left = guard.with_changes(body=guard.body.with_changes(body=rest))
    return (put_before(left, moved) if index == 0 else [left, moved]), []


def _as_line(guard: cst.If, statement: Line | cst.BaseSmallStatement) -> Line:
    if not isinstance(statement, cst.BaseSmallStatement):
        return statement
    end = cst.TrailingWhitespace()
    if isinstance(guard.body, cst.SimpleStatementSuite):
        whole = guard.body.trailing_whitespace
        end = whole if len(guard.body.body) == 1 else cst.TrailingWhitespace(newline=whole.newline)
    return cst.SimpleStatementLine(
        [statement.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)], trailing_whitespace=end
    )


def _with_lines(block: cst.CSTNode, lines: list[Line], following: int, comments: list[cst.EmptyLine]) -> Changed:
    """A block with other lines, and comments before the one that follows them."""
    assert isinstance(block, cst.Module | cst.IndentedBlock)
    if not comments:
        return block.with_changes(body=lines)
    if following < len(lines):
        lines[following] = with_leading(lines[following], [*comments, *lines[following].leading_lines])
        return block.with_changes(body=lines)
    return block.with_changes(body=lines, footer=[*comments, *block.footer])

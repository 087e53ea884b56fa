"""Statements of a Python file: taking one out, putting one in, moving one out of an `if`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import libcst as cst

from dslint.fixes.edit import CannotEditError
from dslint.fixes.python_code.tree import Change, Changed, Found, Tree

Line: TypeAlias = cst.SimpleStatementLine | cst.BaseCompoundStatement
Block: TypeAlias = cst.Module | cst.IndentedBlock
Row: TypeAlias = cst.SimpleStatementLine | cst.SimpleStatementSuite


@dataclass(frozen=True)
class Place:
    """Where a statement stands.

    Attributes:
        at: the statement.
        small: whether it is one of those that a semicolon parts, so that its parent is their line.
    """

    at: Found
    small: bool

    @property
    def line(self) -> Found:
        """The line, or compound statement, in a block; a one-line body (`if x: f()`) has none."""
        return self.at.parent if self.small else self.at

    @property
    def is_alone(self) -> bool:
        """Whether it has a line for itself."""
        if not self.small:
            return True
        line = self.line.node
        return isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1


def statement_around(inner: Found) -> Place:
    """The innermost statement that holds a node, or is it."""
    for found in inner.up():
        if isinstance(found.node, cst.BaseSmallStatement):
            return Place(found, True)
        if isinstance(found.node, cst.SimpleStatementLine) and len(found.node.body) == 1:
            return Place(Found(found.node.body[0], (*found.above, found.node)), True)
        if isinstance(found.node, cst.BaseCompoundStatement) and _is_in_block(found):
            return Place(found, False)
    raise CannotEditError("no statement stands there")


def _is_in_block(found: Found) -> bool:
    """An `elif` is a statement inside of its `if`, but of no block."""
    return isinstance(found.parent.node, cst.Module | cst.IndentedBlock)


# --- taking out ---


def removal(place: Place) -> Change:
    """Takes a statement out; `pass` stays where its block would be empty."""
    if not place.is_alone:
        node = place.at.node
        return Change(place.line, lambda row: _without_small(row, _index(place.line.node, node)))
    block = place.line.parent
    index = _index(block.node, place.line.node)
    if isinstance(block.node, cst.IndentedBlock) and len(block.node.body) == 1:
        return Change(place.line, _as_pass)
    return Change(block, lambda updated: without_line(updated, index))


def _as_pass(line: cst.CSTNode) -> cst.SimpleStatementLine:
    assert isinstance(line, cst.SimpleStatementLine | cst.BaseCompoundStatement)
    end = cst.TrailingWhitespace()
    if isinstance(line, cst.SimpleStatementLine):
        end = cst.TrailingWhitespace(newline=line.trailing_whitespace.newline)
    return cst.SimpleStatementLine([cst.Pass()], leading_lines=_leading(line), trailing_whitespace=end)


def _without_small(row: cst.CSTNode, index: int) -> Changed:
    assert isinstance(row, cst.SimpleStatementLine | cst.SimpleStatementSuite)
    body = [*row.body[:index], *row.body[index + 1 :]]
    if not body:
        return row.with_changes(body=[cst.Pass(semicolon=row.body[index].semicolon)])
    if index == len(body):
        body[-1] = body[-1].with_changes(semicolon=row.body[index].semicolon)
    return row.with_changes(body=body)


def without_line(block: cst.CSTNode, index: int) -> Changed:
    """A block without one of its statements; the comments above it stay."""
    body = list(lines_of(block))
    kept = _leading(body.pop(index))
    if index < len(body):
        body[index] = with_leading(body[index], [*kept, *_leading(body[index])])
        return block.with_changes(body=body)
    assert isinstance(block, cst.Module | cst.IndentedBlock)
    return block.with_changes(body=body, footer=[*kept, *block.footer])


# --- putting in ---


def insertion(tree: Tree, place: Place, text: str, after: bool) -> Change:
    """Puts a statement before or after another one."""
    new = parsed_line(tree, text)
    line = place.line.node
    is_at_edge = place.is_alone
    if isinstance(line, cst.SimpleStatementLine):
        is_at_edge = line.body[-1 if after else 0] is place.at.node
    if is_at_edge:
        block = place.line.parent
        index = _index(block.node, line)
        return Change(block, lambda updated: _with_line(updated, index, _like(new, line), after))
    if not isinstance(new, cst.SimpleStatementLine):
        raise CannotEditError("a statement with a body has no place in a line of several")
    index = _index(line, place.at.node) + (1 if after else 0)
    return Change(place.line, lambda row: _with_small(row, index, new.body))


def parsed_line(tree: Tree, text: str) -> Line:
    """A statement from its text."""
    try:
        statement = cst.parse_statement(text, config=tree.module.config_for_parsing)
    except (cst.ParserSyntaxError, RecursionError):
        raise CannotEditError(f"`{text}` is no Python statement") from None
    if isinstance(statement, cst.SimpleStatementLine) and statement.body:
        return statement
    if isinstance(statement, cst.BaseCompoundStatement):
        return statement
    raise CannotEditError(f"`{text}` is no Python statement")


def _like(new: Line, line: cst.CSTNode) -> Line:
    """A new line that ends as the one next to it."""
    if not isinstance(new, cst.SimpleStatementLine) or not isinstance(line, cst.SimpleStatementLine):
        return new
    end = new.trailing_whitespace.with_changes(newline=line.trailing_whitespace.newline)
    return new.with_changes(trailing_whitespace=end)


def _with_line(block: cst.CSTNode, index: int, new: Line, after: bool) -> Changed:
    body = list(lines_of(block))
    if after:
        body.insert(index + 1, new)
    else:
        body[index : index + 1] = put_before(body[index], new)
    return block.with_changes(body=body)


def put_before(line: Line, new: Line) -> list[Line]:
    """A line with a new one before it; the comments right above the old one stay with it."""
    leading = _leading(line)
    own = len(leading)
    while own and leading[own - 1].comment is not None:
        own -= 1
    return [with_leading(new, [*leading[:own], *_leading(new)]), with_leading(line, leading[own:])]


def _with_small(row: cst.CSTNode, index: int, new: Sequence[cst.BaseSmallStatement]) -> Changed:
    assert isinstance(row, cst.SimpleStatementLine | cst.SimpleStatementSuite)
    apart = cst.Semicolon(whitespace_after=cst.SimpleWhitespace(" "))
    added = [statement.with_changes(semicolon=apart) for statement in new]
    body = [*row.body[:index], *added, *row.body[index:]]
    if index == len(row.body):
        body[index - 1] = body[index - 1].with_changes(semicolon=apart)
        body[-1] = body[-1].with_changes(semicolon=row.body[-1].semicolon)
    return row.with_changes(body=body)


# --- blocks ---


def lines_of(block: cst.CSTNode) -> Sequence[Line]:
    """The statements of a block."""
    if not isinstance(block, cst.Module | cst.IndentedBlock):
        raise CannotEditError("the statement stands in no block of lines")
    lines = [line for line in block.body if isinstance(line, cst.SimpleStatementLine | cst.BaseCompoundStatement)]
    if len(lines) != len(block.body):
        raise CannotEditError("the statement stands in no block of lines")
    return lines


def _index(block: cst.CSTNode, statement: cst.CSTNode) -> int:
    body = block.body if isinstance(block, cst.SimpleStatementLine | cst.SimpleStatementSuite) else lines_of(block)
    for index, line in enumerate(body):
        if line is statement:
            return index
    raise CannotEditError("the statement stands in no block of lines")


def _leading(line: Line) -> list[cst.EmptyLine]:
    """The blank lines and comments above a statement."""
    return list(getattr(line, "leading_lines", ()))


def with_leading(line: Line, leading: Sequence[cst.EmptyLine]) -> Line:
    """A statement with other lines above it."""
    return line.with_changes(leading_lines=list(leading))

"""Reads a Python file into its syntax tree, with the byte span of each node."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from dslint.documents.document import SyntaxProblem
from dslint.documents.source import Source, Span

_BOM = "\ufeff"


@dataclass(frozen=True)
class Script:
    """A Python file, or the code cells of a notebook.

    Attributes:
        source: the text.
        tree: its syntax tree; None where `problem` is set.
        problem: why it can't be parsed.
        owners: for nodes of other files that were read along with this one, their file.
    """

    source: Source
    tree: ast.Module | None
    problem: SyntaxProblem | None
    owners: dict[ast.AST, Script] = field(default_factory=dict, compare=False, repr=False)

    def adopt(self, other: Script) -> None:
        """Know the nodes of a file that this one imports."""
        if other is not self and other.tree is not None and other.tree not in self.owners:
            self.owners.update((node, other) for node in (other.tree, *_nodes_with_places(other.tree)))

    def owner(self, node: ast.AST) -> Script:
        """The file that a node stands in."""
        return self.owners.get(node, self)

    def place(self, node: ast.AST) -> tuple[Source, Span]:
        """The file and the span of a node."""
        owner = self.owner(node)
        return owner.source, owner.span(node)

    @cached_property
    def _line_starts(self) -> list[int]:
        """Byte offset at which each line begins, counted as the parser counts lines."""
        data = self.source.data
        starts = [len(_BOM.encode()) if self.source.text.startswith(_BOM) else 0]
        offset = 0
        while offset < len(data):
            newline, carriage = data.find(b"\n", offset), data.find(b"\r", offset)
            ends = [end for end in (newline, carriage) if end >= 0]
            if not ends:
                break
            end = min(ends)
            offset = end + (2 if data[end : end + 2] == b"\r\n" else 1)
            starts.append(offset)
        return starts

    def span(self, node: ast.AST) -> Span:
        """Where an expression or a statement stands; of one over several lines, only its first line."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        last, end = getattr(node, "end_lineno", line), getattr(node, "end_col_offset", column)
        start = self._offset(line, column)
        if last == line:
            return Span(start, self._offset(line, end))
        text = self.source.data[start:].split(b"\n", 1)[0].split(b"\r", 1)[0]
        return Span(start, start + len(text.rstrip()))

    def whole_span(self, node: ast.AST) -> Span:
        """Where a node stands, all of its lines included."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        last, end = getattr(node, "end_lineno", line), getattr(node, "end_col_offset", column)
        return Span(self._offset(line, column), self._offset(last, end))

    def _offset(self, line: int, column: int) -> int:
        starts = self._line_starts
        start = starts[line - 1] if line - 1 < len(starts) else len(self.source.data)
        return min(start + column, len(self.source.data))


def _nodes_with_places(tree: ast.Module) -> Iterator[ast.AST]:
    return (node for node in ast.walk(tree) if hasattr(node, "lineno"))


def read_script(source: Source) -> Script:
    """Parses a Python file; one that can't be parsed gives a Script with the problem."""
    text = source.text.removeprefix(_BOM)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other people's escapes in strings
            return Script(source, ast.parse(text), None)
    except SyntaxError as error:
        return Script(source, None, _problem(source, error))
    except (ValueError, RecursionError, MemoryError) as error:
        message = "it is nested too deeply" if isinstance(error, (RecursionError, MemoryError)) else str(error)
        return Script(source, None, SyntaxProblem(message, Span(0, 0)))


def _problem(source: Source, error: SyntaxError) -> SyntaxProblem:
    empty = Script(source, None, None)
    start = empty._offset(error.lineno or 1, max((error.offset or 1) - 1, 0))
    return SyntaxProblem(error.msg, Span(start, min(start + 1, len(source.data))))

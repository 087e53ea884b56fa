"""A Python file as a LibCST tree: finding nodes by their bytes, and changing them with the least of edits."""

from __future__ import annotations

import ast
import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, TypeAlias

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, CodeSpan, MetadataWrapper

from dslint.documents.notebook_reader import NotebookSource
from dslint.documents.source import Source, Span
from dslint.fixes.difference import difference
from dslint.fixes.edit import CannotEditError, Edit, applied

_BOM = "\ufeff"
_FORM_FEED = 0x0C

_PIECES = (
    cst.BaseExpression,
    cst.BaseSmallStatement,
    cst.BaseCompoundStatement,
    cst.Arg,
    cst.BaseElement,
    cst.BaseDictElement,
    cst.Decorator,
    cst.WithItem,
    cst.AssignTarget,
)  # what has a span in `ast` too; brackets, commas and blocks have none

_WIDER = (cst.Module, cst.IndentedBlock, cst.FunctionDef, cst.ClassDef, cst.Parameters, cst.Param)
# decorators and annotations stand outside of the place that LibCST gives for these

Changed: TypeAlias = cst.CSTNode | cst.FlattenSentinel[cst.CSTNode] | cst.RemovalSentinel


@dataclass(frozen=True)
class Found:
    """A node of the tree.

    Attributes:
        node: itself.
        above: the nodes around it, the module first.
    """

    node: cst.CSTNode
    above: tuple[cst.CSTNode, ...]

    @property
    def parent(self) -> Found:
        """The node around it."""
        if not self.above:
            raise CannotEditError("nothing stands around it")
        return Found(self.above[-1], self.above[:-1])

    def up(self) -> list[Found]:
        """The node and those around it, the innermost first."""
        whole = (*self.above, self.node)
        return [Found(whole[index], whole[:index]) for index in range(len(whole) - 1, -1, -1)]


@dataclass(frozen=True)
class Change:
    """What becomes of a node; `make` is given the node with what changed inside of it."""

    at: Found
    make: Callable[[cst.CSTNode], Changed]


@dataclass(frozen=True)
class Tree:
    """A Python file that was read for changing it.

    Attributes:
        source: the file.
        module: its tree.
        positions: where each node stands in the tree's code.
        code: the tree's code; it lacks what is in `lost`.
        lost: the offsets in `code` before which a form feed stands in the file.
        shift: the length of the byte order mark.
    """

    source: Source
    module: cst.Module
    positions: Mapping[cst.CSTNode, CodeSpan]
    code: bytes
    lost: tuple[int, ...]
    shift: int

    def span(self, node: cst.CSTNode) -> Span:
        """Where a node stands in the file, as `ast` counts it: the brackets of a tuple belong to it."""
        start, end = self._ends(node)
        if isinstance(node, cst.Tuple | cst.GeneratorExp) and node.lpar and node.rpar:
            start, end = self._ends(node.lpar[-1])[0], self._ends(node.rpar[0])[1]
        return self._in_file(start, end)

    def _ends(self, node: cst.CSTNode) -> tuple[int, int]:
        place = self.positions[node]
        return place.start, place.start + place.length

    def _in_file(self, start: int, end: int) -> Span:
        first = start + bisect_right(self.lost, start) + self.shift
        return Span(first, max(first, end + bisect_left(self.lost, end) + self.shift))

    def around(self, span: Span) -> list[Found]:
        """The nodes that hold a span, the outermost first."""
        finder = _Finder(self, span)
        self.module.visit(finder)
        return finder.found

    def at(self, span: Span) -> list[Found]:
        """The nodes that stand at a span, the outermost first.

        The span of a node over several lines may end with its first line. Where two calls begin there, nobody
        can tell which one is meant.
        """
        around = [found for found in self.around(span) if isinstance(found.node, _PIECES)]
        exact = [found for found in around if self.span(found.node) == span]
        if exact:
            return exact
        begun = [found for found in around if self._first_line(found.node) == span]
        calls = [found for found in begun if isinstance(found.node, cst.Call)]
        if len(calls) > 1:
            raise CannotEditError("more than one call begins there")
        return calls or begun[-1:]

    def innermost(self, span: Span) -> Found:
        """The innermost node that holds a span."""
        around = self.around(span)
        if not around:
            raise CannotEditError("the file has nothing at that place")
        return around[-1]

    def _first_line(self, node: cst.CSTNode) -> Span:
        span = self.span(node)
        line = self.source.data[span.start : span.end].split(b"\n", 1)[0].split(b"\r", 1)[0]
        return Span(span.start, span.start + len(line.decode("utf-8", "replace").rstrip().encode()))

    def edits(self, change: Change, near: Span | None = None, whole: bool = False) -> list[Edit]:
        """Makes a change of a node.

        Args:
            change: what becomes of which node.
            near: where the change is; the node where it isn't given.
            whole: see `difference`.

        Raises:
            CannotEditError: what comes out is no Python.
        """
        try:
            changed = self.module.visit(_Rewriter(change))
            code = changed.code.encode("utf-8") if isinstance(changed, cst.Module) else b""
        except (cst.CSTValidationError, UnicodeEncodeError, TypeError):
            raise CannotEditError("what comes out would be no Python") from None
        except RecursionError:
            raise CannotEditError("the file is nested too deeply") from None
        near = near or self.span(change.at.node)
        back = Span(self._in_code(near.start), self._in_code(near.end))
        edits = [self._moved(edit) for edit in difference(self.code, code, back, whole)]
        check(applied(self.source, edits))
        return edits

    def _in_code(self, offset: int) -> int:
        before = self.source.data.count(b"\x0c", 0, offset) if self.lost else 0
        return offset - self.shift - min(before, len(self.lost))

    def _moved(self, edit: Edit) -> Edit:
        span = self._in_file(edit.span.start, edit.span.end)
        if bisect_left(self.lost, edit.span.end) > bisect_right(self.lost, edit.span.start):
            raise CannotEditError("a form feed stands in the lines that it changes")
        return Edit(span, edit.data)


def read_tree(source: Source) -> Tree:
    """Reads a Python file for changing it.

    Raises:
        CannotEditError: it is a notebook, or can't be read.
    """
    if isinstance(source, NotebookSource) or PurePath(source.path).suffix == ".ipynb":
        raise CannotEditError("notebooks are not edited")
    check(source)
    text = source.data.decode("utf-8")
    shift = len(_BOM.encode()) if text.startswith(_BOM) else 0
    try:
        module = cst.parse_module(text.removeprefix(_BOM))
        code = module.code.encode()
        positions = MetadataWrapper(module, unsafe_skip_copy=True).resolve(ByteSpanPositionProvider)
    except (cst.ParserSyntaxError, RecursionError):
        raise CannotEditError("LibCST can't read the file") from None
    return Tree(source, module, positions, code, _lost(code, source.data[shift:]), shift)


def check(source: Source) -> None:
    """Raises `CannotEditError` where a file isn't Python."""
    parsed(source.text.removeprefix(_BOM))


def parsed(text: str) -> ast.Module:
    """The syntax tree of a text.

    Raises:
        CannotEditError: it isn't Python.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other people's escapes in strings
            return ast.parse(text)
    except SyntaxError as error:
        raise CannotEditError(f"what comes out would be no Python: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError):
        raise CannotEditError("the file can't be parsed as Python") from None


def _lost(code: bytes, original: bytes) -> tuple[int, ...]:
    """Where LibCST drops a form feed, as offsets in its code."""
    if code == original:
        return ()
    lost: list[int] = []
    at = 0
    for byte in original:
        if at < len(code) and code[at] == byte:
            at += 1
        elif byte == _FORM_FEED:
            lost.append(at)
        else:
            break
    if at != len(code) or len(code) + len(lost) != len(original):
        raise CannotEditError("LibCST would not keep the rest of the file as it is")
    return tuple(lost)


class _Finder(cst.CSTVisitor):
    """Collects the nodes that hold a span."""

    def __init__(self, tree: Tree, span: Span) -> None:
        super().__init__()
        self.tree = tree
        self.wanted = span
        self.above: list[cst.CSTNode] = []
        self.found: list[Found] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        holds = False
        if (
            not isinstance(node, cst.BaseParenthesizableWhitespace | cst.MaybeSentinel)
            and node in self.tree.positions
        ):
            span = self.tree.span(node)
            holds = span.start <= self.wanted.start and self.wanted.end <= span.end
        if holds:
            self.found.append(Found(node, tuple(self.above)))
        self.above.append(node)
        return holds or isinstance(node, _WIDER)

    def on_leave(self, original_node: cst.CSTNode) -> None:
        self.above.pop()


class _Rewriter(cst.CSTTransformer):
    """Changes a node, and walks nowhere else."""

    def __init__(self, change: Change) -> None:
        super().__init__()
        self.change = change
        self.way = set(change.at.above)

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node in self.way

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> Any:
        return self.change.make(updated_node) if original_node is self.change.at.node else updated_node

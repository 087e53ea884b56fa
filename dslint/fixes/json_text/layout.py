"""How the text of a config is laid out: where its entries, commas, comments and lines are."""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dslint.documents.config_reader import read_config
from dslint.documents.document import Document, NodePath
from dslint.documents.source import Source, Span
from dslint.fixes.edit import CannotEditError, Edit, applied

NOT_SAFE = "the text is written in a way that dslint can't edit safely"

_BOM = b"\xef\xbb\xbf"
_BLANK = re.compile(rb"(?:[ \t\n\r]+|#[^\n\r]*|//[^\n\r]*|/\*.*?\*/)*", re.DOTALL)
_COMMENTS_ON_LINE = re.compile(rb"(?:[ \t]+|/\*(?:(?!\*/)[^\n\r])*\*/)*(?:(?:#|//)[^\n\r]*)?")
_COMMENT = re.compile(rb"#[^\n\r]*|//[^\n\r]*|/\*.*?\*/", re.DOTALL)
_SPACES = re.compile(rb"[ \t]*")
_NEWLINE = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True)
class Entry:
    """A key with its value, or an item of a list; all places are byte offsets.

    Attributes:
        path: the route to it.
        start: where its key starts; in a list, where the value does.
        key_end: the end of the key; in a list, `start`.
        value: where the value starts.
        end: the end of the value, without blanks behind it.
        comma: where the comma behind it stands, if there is one.
        runs_on: whether the value is a text without quotes, which takes all of its line.
    """

    path: NodePath
    start: int
    key_end: int
    value: int
    end: int
    comma: int | None
    runs_on: bool

    @property
    def stop(self) -> int:
        """The end of the entry with its comma."""
        return self.end if self.comma is None else self.comma + 1


@dataclass(frozen=True)
class Container:
    """An object or a list.

    Attributes:
        path: the route to it.
        start: where what it holds starts, behind its brace.
        end: where that ends, before its brace.
        braced: whether there are braces at all: the config itself may stand without.
        entries: in the order of the text.
    """

    path: NodePath
    start: int
    end: int
    braced: bool
    entries: tuple[Entry, ...]


class Layout:
    """The layout of a config that can be read and holds no key twice."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.data = document.source.data
        self._children: dict[NodePath, list[Entry]] = {}
        for path in document.values:
            if path:
                self._children.setdefault(path[:-1], []).append(self._entry(path))
        for entries in self._children.values():
            entries.sort(key=lambda entry: entry.start)

    def _entry(self, path: NodePath) -> Entry:
        span = self.document.values[path]
        end = span.start + len(self.data[span.start : span.end].rstrip(b" \t\r\n\v\f"))
        key = self.document.keys.get(path, Span(span.start, span.start))
        key_end = key.start + len(self.data[key.start : key.end].rstrip())
        after = self.after_blank(end)
        comma = after if self.data[after : after + 1] == b"," else None
        is_text = isinstance(self.value(path), str)
        runs_on = is_text and self.data[span.start : span.start + 1] not in (b'"', b"'")
        return Entry(path, key.start, key_end, span.start, end, comma, runs_on)

    def value(self, path: NodePath) -> Any:
        """The value at a path that is there."""
        value = self.document.value
        for step in path:
            value = value[step]
        return value

    def entry(self, path: NodePath) -> Entry:
        """The entry at a path that is there."""
        return next(entry for entry in self._children[path[:-1]] if entry.path == path)

    def container(self, path: NodePath) -> Container:
        """The object or list at a path."""
        span = self.document.values[path]
        braced = self.data[span.start : span.start + 1] in (b"{", b"[")
        entries = tuple(self._children.get(path, ()))
        if not braced:
            return Container(path, span.start, len(self.data), False, entries)
        return Container(path, span.start + 1, span.end - 1, True, entries)

    def containers(self) -> Iterator[Container]:
        """All objects and lists that hold something."""
        return (self.container(path) for path in self._children)

    def after_blank(self, at: int) -> int:
        """Where blanks and comments that start at `at` end."""
        match = _BLANK.match(self.data, at)
        return match.end() if match else at

    def after_spaces(self, at: int) -> int:
        """Where spaces and tabs that start at `at` end."""
        match = _SPACES.match(self.data, at)
        return match.end() if match else at

    def before_spaces(self, at: int) -> int:
        """Where spaces and tabs that end at `at` start."""
        start = self.line_start(at)
        return start + len(self.data[start:at].rstrip(b" \t"))

    def after_comments(self, at: int) -> int:
        """Where blanks and comments on the line end."""
        match = _COMMENTS_ON_LINE.match(self.data, at)
        return match.end() if match else at

    def last_comment_end(self, start: int, end: int) -> int | None:
        """The end of the last comment of a piece that is nothing but blanks and comments."""
        ends = [match.end() for match in _COMMENT.finditer(self.data, start, end)]
        return ends[-1] if ends else None

    def line_start(self, at: int) -> int:
        """The start of the line at `at`."""
        start = max(self.data.rfind(b"\n", 0, at), self.data.rfind(b"\r", 0, at)) + 1
        return len(_BOM) if start == 0 and self.data.startswith(_BOM) and at >= len(_BOM) else start

    def ends_line(self, at: int) -> bool:
        """Whether the line ends at `at`."""
        return self.data[at : at + 1] in (b"", b"\n", b"\r")

    def after_line_end(self, at: int) -> int:
        """Where the next line starts, if the line ends at `at`."""
        match = _NEWLINE.match(self.data, at)
        return match.end() if match else at

    def before_line_end(self, at: int) -> int:
        """Where the line before ends, if a line starts at `at`."""
        if self.data[at - 2 : at] == b"\r\n":
            return at - 2
        return at - 1 if self.data[at - 1 : at] in (b"\n", b"\r") else at

    def starts_line(self, at: int) -> bool:
        """Whether nothing but blanks stands before `at` on its line."""
        return self.before_spaces(at) == self.line_start(at)

    def indent(self, at: int) -> str:
        """What the line at `at` starts with."""
        start = self.line_start(at)
        return self.data[start : self.after_spaces(start)].decode()

    def newline(self, at: int) -> str:
        """What ends the line at `at`; at the end of the file, what ends the first line."""
        match = _NEWLINE.search(self.data, at) or _NEWLINE.search(self.data)
        return match.group().decode() if match else "\n"

    def has_newline(self, start: int, end: int) -> bool:
        """Whether a piece of the text goes over several lines."""
        return _NEWLINE.search(self.data, start, end) is not None

    def quote_at(self, at: int) -> str:
        """The quote at `at`; empty where there is something else, three quotes included."""
        quote = self.data[at : at + 1]
        is_quote = quote in (b'"', b"'") and not self.data.startswith(b"'''", at)
        return quote.decode() if is_quote else ""

    def text(self, start: int, end: int) -> str:
        """A piece of the text."""
        return self.data[start:end].decode()


def laid_out(document: Document) -> Layout:
    """The layout of a config; of keys that stand twice all but the last have made-up names there.

    The made-up names are as long as the real ones, so that all places in the text stay the same.

    Raises:
        CannotEditError: the text can't be read.
    """
    if document.language != "json" or document.problem is not None:
        raise CannotEditError("the file can't be read as JSON")
    if document.value is None and document.placeholders:
        raise CannotEditError("the file is a template that some other program fills in")
    if not isinstance(document.value, dict | list):
        raise CannotEditError("the config is no object")
    if not document.duplicates:
        return Layout(document)
    masked = read_config(applied(document.source, _masks(document)))
    if masked.value is None or masked.duplicates:
        raise CannotEditError("a key stands twice in a way that dslint can't tell apart")
    return Layout(masked)


def _masks(document: Document) -> list[Edit]:
    """The edits that give the first of two equal keys a made-up name."""
    taken = {path[-1] for path in document.keys} | {double.path[-1] for double in document.duplicates}
    edits = []
    for double in document.duplicates:
        key = document.source.slice(double.first)
        # Quotes stay, as a key without them can't have a comment behind it.
        quote = key[0] if key[0] in "\"'" and len(key) > 2 else ""
        name = _unused_name(double.first.end - double.first.start - 2 * len(quote), taken)
        taken.add(name)
        edits.append(Edit(double.first, f"{quote}{name}{quote}".encode()))
    return edits


def _unused_name(length: int, taken: set[str | int]) -> str:
    """A name of this length that a key may have without quotes."""
    first = string.ascii_letters
    for letters in itertools.islice(itertools.product(first, repeat=min(length, 3)), len(taken) + 1):
        name = "".join(letters).ljust(length, "_")
        if name not in taken:
            return name
    raise CannotEditError("the key stands twice too many times")


def read_after(source: Source, edits: list[Edit]) -> Document:
    """The config as it reads after edits.

    Raises:
        CannotEditError: it can't be read any more.
    """
    document = read_config(applied(source, edits))
    if document.value is None or document.duplicates:
        raise CannotEditError(NOT_SAFE)
    return document

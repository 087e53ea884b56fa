"""The text of one file, and places in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from os import PathLike

LARGEST_FILE = 16 * 1024 * 1024  # bytes; real configs have a few thousand


class UnreadableFileError(Exception):
    """A file that can't be read as text; the message says why in one sentence."""


@dataclass(frozen=True)
class Span:
    """A half-open range of byte offsets in a file."""

    start: int
    end: int


@dataclass(frozen=True)
class Place:
    """A position as people count: lines and columns from 1, columns in characters.

    Attributes:
        line: line in the file; in a notebook, in its cell.
        column: character in the line.
        cell: number of the notebook's cell.
    """

    line: int
    column: int
    cell: int | None = None

    def __str__(self) -> str:
        """As it follows the path: `12:5`, `cell 3:12:5`."""
        cell = "" if self.cell is None else f"cell {self.cell}:"
        return f"{cell}{self.line}:{self.column}"


@dataclass(frozen=True)
class Source:
    """The bytes of one file under the path that the user knows it by."""

    path: str
    data: bytes

    @cached_property
    def text(self) -> str:
        """The text as Python's text mode gives it to DeepSpeed: every line end is a newline.

        Raises:
            UnreadableFileError: the bytes are not UTF-8.
        """
        try:
            text = self.data.decode("utf-8")
        except UnicodeDecodeError as error:
            place = f"byte {error.start}, line {self.data.count(10, 0, error.start) + 1}"
            raise UnreadableFileError(f"not UTF-8 text ({place}): save the file as UTF-8") from None
        if "\r" in text:
            return text.replace("\r\n", "\n").replace("\r", "\n")
        return text

    @cached_property
    def _byte_offsets(self) -> list[int] | None:
        """The byte offset of each character of `text`; None where the two are equal."""
        if len(self.text) == len(self.data):
            return None
        original = self.data.decode("utf-8")
        offsets = []
        byte = 0
        for index, character in enumerate(original):
            is_second_half = character == "\n" and index > 0 and original[index - 1] == "\r"
            if not is_second_half:
                offsets.append(byte)
            byte += len(character.encode("utf-8", "surrogatepass"))
        offsets.append(byte)
        return offsets

    def span(self, start: int, end: int) -> Span:
        """The bytes behind the characters from `start` to `end` of `text`."""
        offsets = self._byte_offsets
        if offsets is None:
            return Span(start, end)
        last = len(offsets) - 1
        return Span(offsets[min(start, last)], offsets[min(end, last)])

    def place(self, offset: int) -> Place:
        """Line and column of a byte offset."""
        before = self.data[:offset].decode("utf-8", "replace")
        normal = before.replace("\r\n", "\n").replace("\r", "\n")
        line_start = normal.rfind("\n") + 1
        return Place(normal.count("\n") + 1, len(normal) - line_start + 1)

    def line(self, number: int) -> str:
        """The text of a line (counted from 1) without its end; empty past the last one."""
        lines = self.text.split("\n")
        return lines[number - 1] if 0 < number <= len(lines) else ""

    def line_at(self, place: Place) -> str:
        """The text of the line at a place."""
        return self.line(place.line)

    def slice(self, span: Span) -> str:
        """The text under a span."""
        return self.data[span.start : span.end].decode("utf-8", "replace")


def read_source(path: str | PathLike[str], shown_as: str | None = None) -> Source:
    """Reads a file.

    Args:
        path: the file to open.
        shown_as: the path to use in reports, when it is another one.

    Raises:
        UnreadableFileError: it is missing, a folder, not readable, too large or not UTF-8.
    """
    try:
        with open(path, "rb") as stream:
            data = stream.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise UnreadableFileError("no such file") from None
    except IsADirectoryError:
        raise UnreadableFileError("is a folder, not a file") from None
    except PermissionError:
        raise UnreadableFileError("no permission to read it") from None
    except (OSError, ValueError) as error:
        raise UnreadableFileError(f"can't be read: {error}") from None
    if len(data) > LARGEST_FILE:
        megabytes = LARGEST_FILE // (1024 * 1024)
        raise UnreadableFileError(f"larger than {megabytes} MB: not a config that DeepSpeed is given")
    source = Source(str(shown_as or path), data)
    _ = source.text  # decode now, so that every later use may rely on it
    return source

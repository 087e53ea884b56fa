"""A file that another file holds: a config written by a here-document of a shell script."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from dslint.documents.source import Place, Source


@dataclass(frozen=True)
class ExcerptSource(Source):
    """A text within another file, under that file's path.

    Attributes:
        path: the path of the file around it.
        data: the text, in which variables may be filled in already: its spans are offsets in this text.
        around: the file around it.
        first_line: the line of `around` that the text begins at, counted from 1.
    """

    around: Source
    first_line: int

    @cached_property
    def own(self) -> Source:
        """The text alone."""
        return Source(self.path, self.data)

    def place(self, offset: int) -> Place:
        """Line and column of a byte offset, counted in the file around."""
        place = self.own.place(offset)
        return replace(place, line=place.line + self.first_line - 1)

    def line(self, number: int) -> str:
        """The text of a line of the file around."""
        return self.around.line(number)

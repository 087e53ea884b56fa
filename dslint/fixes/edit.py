"""Edits of a file: which bytes give way, and to what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dslint.documents.source import Source, Span


class CannotEditError(Exception):
    """A change that can't be made in the text; the message says why, as the end of a sentence."""


@dataclass(frozen=True)
class Edit:
    """A piece of a file and what comes in its place.

    Attributes:
        span: the bytes that give way; empty to insert before them.
        data: the bytes that come instead.
    """

    span: Span
    data: bytes


def applied(source: Source, edits: Iterable[Edit]) -> Source:
    """The file after edits that don't overlap.

    Raises:
        CannotEditError: if two of them do.
    """
    pieces: list[bytes] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: (edit.span.start, edit.span.end)):
        if edit.span.start < at:
            raise CannotEditError("two edits want the same piece of the file")
        pieces += [source.data[at : edit.span.start], edit.data]
        at = edit.span.end
    return Source(source.path, b"".join([*pieces, source.data[at:]]))


def undoing(edits: Iterable[Edit], source: Source) -> list[Edit]:
    """The edits that turn the edited file back into `source`."""
    undo: list[Edit] = []
    shift = 0
    for edit in sorted(edits, key=lambda edit: (edit.span.start, edit.span.end)):
        start = edit.span.start + shift
        undo.append(Edit(Span(start, start + len(edit.data)), source.data[edit.span.start : edit.span.end]))
        shift += len(edit.data) - (edit.span.end - edit.span.start)
    return undo

"""Edits of an edited file, told as edits of the file it was made from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dslint.documents.source import Source, Span
from dslint.fixes.edit import Edit

_Piece = Span | bytes
"""A part of the edited file: kept from the one before, or new."""


def composed(source: Source, first: Iterable[Edit], second: Iterable[Edit]) -> list[Edit]:
    """The edits that do to `source` what `first` and then, on what that gives, `second` do."""
    return list(_edits(_cut(_kept(first, len(source.data)), second), len(source.data)))


def _in_order(edits: Iterable[Edit]) -> list[Edit]:
    return sorted(edits, key=lambda edit: (edit.span.start, edit.span.end))


def _kept(edits: Iterable[Edit], length: int) -> list[_Piece]:
    pieces: list[_Piece] = []
    at = 0
    for edit in _in_order(edits):
        pieces += [Span(at, edit.span.start), edit.data]
        at = edit.span.end
    return [*pieces, Span(at, length)]


def _cut(pieces: list[_Piece], edits: Iterable[Edit]) -> Iterator[_Piece]:
    at = 0
    for edit in _in_order(edits):
        yield from _between(pieces, at, edit.span.start)
        yield edit.data
        at = edit.span.end
    yield from _between(pieces, at, sum(map(_length, pieces)))


def _between(pieces: list[_Piece], start: int, end: int) -> Iterator[_Piece]:
    """What stands between two places of the edited file."""
    at = 0
    for piece in pieces:
        low, high = max(start - at, 0), min(end - at, _length(piece))
        if low < high:
            if isinstance(piece, bytes):
                yield piece[low:high]
            else:
                yield Span(piece.start + low, piece.start + high)
        at += _length(piece)


def _length(piece: _Piece) -> int:
    return len(piece) if isinstance(piece, bytes) else piece.end - piece.start


def _edits(pieces: Iterable[_Piece], length: int) -> Iterator[Edit]:
    at = 0
    new = b""
    for piece in (*pieces, Span(length, length)):
        if isinstance(piece, bytes):
            new += piece
            continue
        if new or piece.start > at:
            yield Edit(Span(at, piece.start), new)
        at, new = piece.end, b""

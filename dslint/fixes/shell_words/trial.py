"""Trying an edit of a shell script with a stand-in, which shows what its place means to the shell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from dslint.documents.shell_document import Piece
from dslint.documents.shell_reader import read_shell
from dslint.documents.source import Source, Span
from dslint.fixes.edit import CannotEditError, Edit, applied
from dslint.fixes.shell_words.meaning import Meaning, Token, fields, filled, holds, tokens_of

Content: TypeAlias = tuple[str, str, "Meaning | list[Meaning]"]
"""Role, name and meaning of a token; a list of words for a text whose blanks don't matter."""


class Trial:
    """A script with a stand-in at the place of an edit."""

    def __init__(self, source: Source, span: Span, probe: str = "", stand_in: str = "") -> None:
        self.stand_in = stand_in or stand_in_for(source)
        with_it = applied(source, [Edit(span, (probe or self.stand_in).encode())])
        self.data = with_it.data
        self.tokens = tokens_of(read_shell(with_it))
        found = [index for index, token in enumerate(self.tokens) if holds(token.says, self.stand_in)]
        if len(found) != 1:
            raise CannotEditError("no word of a command stands there")
        self.index = found[0]

    @property
    def token(self) -> Token:
        """The one that holds the stand-in."""
        return self.tokens[self.index]

    @property
    def quotes(self) -> str:
        """The quotes around the place: `'`, `"`, `$'`, `<<` in a here-document, or none."""
        if self.token.role == "here":
            return "<<"
        piece = _innermost(self.token.pieces, self.stand_in)
        if piece is None or not piece.quoted:
            return ""
        written = self.data[piece.span.start : piece.span.end]
        if written.startswith(b"$'"):
            return "$'"
        is_single = written[:1] == b"'" and len(written) == len(piece.text.encode()) + 2
        return "'" if is_single else '"'

    @property
    def separated_by_lines(self) -> bool:
        """Whether a line end parts words at this place, as in an array."""
        return self.token.role == "element" or (self.token.role == "value" and self.quotes != "")

    def with_words(self, words: list[Meaning]) -> list[Content]:
        """What the script should say with words instead of the stand-in."""
        before = [token.content for token in self.tokens[: self.index]]
        behind = [token.content for token in self.tokens[self.index + 1 :]]
        token = self.token
        if token.says == (self.stand_in,) and token.role in ("word", "element"):
            new = [(token.role, token.name, says) for says in words]
        elif len(words) == 1:
            new = [(token.role, token.name, filled(token.says, self.stand_in, words[0]))]
        elif token.role == "value":
            lone = (self.stand_in,)
            apart = [one for part in fields(token.says) for one in (words if part == lone else [part])]
            if any(holds(part, self.stand_in) for part in apart):
                raise CannotEditError("only a part of a word stands there")
            return [*before, (token.role, token.name, apart), *behind]
        else:
            raise CannotEditError("only a part of a word stands there")
        return [*before, *new, *behind]


def stand_in_for(source: Source) -> str:
    """A word that the script doesn't hold."""
    number = 0
    while f"word{number}".encode() in source.data:
        number += 1
    return f"word{number}"


def _innermost(pieces: tuple[Piece, ...], text: str) -> Piece | None:
    for piece in pieces:
        if piece.kind == "literal" and text in piece.text:
            return piece
        inner = _innermost(piece.operand, text)
        if inner is not None:
            return inner
    return None


def hold_against(source: Source, edits: list[Edit], expected: Sequence[Content]) -> None:
    """Raises where the script with the edits doesn't say what is expected."""
    actual = tokens_of(read_shell(applied(source, edits)))
    if len(actual) != len(expected) or not all(map(_agrees, actual, expected)):
        raise CannotEditError("the script would say something else than it should")


def _agrees(token: Token, expected: Content) -> bool:
    role, name, says = expected
    actual = fields(token.says) if isinstance(says, list) else token.says
    return (token.role, token.name, actual) == (role, name, says)

"""What the words of a shell script say, so that the script after an edit can be held against the one before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dslint.documents.shell_document import Command, Piece, ShellDocument, Word
from dslint.documents.source import Span

Expansion = tuple[str, str, str, str | None, bool, "Meaning"]
"""Kind, text, operator, index, whether it is quoted, operand."""

Meaning = tuple["str | Expansion", ...]
"""Literal texts, neighbours joined, and what is expanded."""


@dataclass(frozen=True)
class Token:
    """A part of a command.

    Attributes:
        role: "word", "element" of an array, "value" of an assignment, "target" of a redirection, "here" for a
            here-document, "start" for the beginning of a command.
        name: the variable, the operator, or what the command stands in.
        says: its meaning.
        span: where it stands.
        pieces: its parts.
    """

    role: str
    name: str
    says: Meaning
    span: Span
    pieces: tuple[Piece, ...] = ()

    @property
    def is_expanded(self) -> bool:
        """Whether it is a variable, or what a command prints, and nothing else."""
        return len(self.says) == 1 and not isinstance(self.says[0], str)

    @property
    def is_list(self) -> bool:
        """Whether it is an array, or all arguments."""
        return any(
            piece.index in ("@", "*") or piece.text in ("@", "*")
            for piece in self.pieces
            if piece.kind == "variable"
        )

    @property
    def content(self) -> tuple[str, str, Meaning]:
        """All but where it stands."""
        return self.role, self.name, self.says


def tokens_of(document: ShellDocument) -> list[Token]:
    """All commands' parts in order, and the directives for Slurm."""
    tokens = [token for command in document.commands for token in _of_command(command)]
    for directive in document.directives:
        tokens.append(Token("directive", directive.option, (directive.value or "",), directive.span))
    return tokens


def _of_command(command: Command) -> Iterator[Token]:
    around = " ".join(f"{block.kind}{block.branch}" for block in command.blocks)
    flags = f"{around} {command.in_pipeline} {command.in_background}"
    yield Token("start", flags, (), Span(command.span.start, command.span.start))
    for assignment in command.assignments:
        name = f"{assignment.name} {assignment.appends} {assignment.exported} {assignment.is_element}"
        yield Token("assignment", name, (), assignment.span)
        if assignment.value is not None:
            yield _of_word("value", assignment.value, name)
        for element in assignment.array or ():
            yield _of_word("element", element, name)
    for word in command.words:
        yield _of_word("word", word)
    for redirection in command.redirections:
        yield _of_word("target", redirection.target, redirection.operator)
    for here in command.here_documents:
        yield Token("here", f"{here.quoted} {here.closed}", meaning(here.pieces), here.body, here.pieces)


def _of_word(role: str, word: Word, name: str = "") -> Token:
    return Token(role, name, meaning(word.pieces), word.span, word.pieces)


def meaning(pieces: Sequence[Piece]) -> Meaning:
    """What pieces say. Of a command in `$( … )` nothing but that it is there: its words are tokens themselves."""
    parts: list[str | Expansion] = []
    for piece in pieces:
        if piece.kind == "literal":
            parts.append(piece.text)
        else:
            text = "" if piece.kind == "substitution" else piece.text
            parts.append(
                (piece.kind, text, piece.operator, piece.index, piece.quoted, meaning(piece.operand)),
            )
    return joined(parts)


def joined(parts: Sequence[str | Expansion]) -> Meaning:
    """A meaning whose neighbouring texts are one."""
    result: list[str | Expansion] = []
    for part in parts:
        if isinstance(part, str) and result and isinstance(result[-1], str):
            result[-1] += part
        else:
            result.append(part)
    return tuple(part for part in result if part != "")


def holds(says: Meaning, text: str) -> bool:
    """Whether a text stands somewhere in a meaning."""
    return any(text in part if isinstance(part, str) else holds(part[5], text) for part in says)


def filled(says: Meaning, text: str, new: Meaning) -> Meaning:
    """A meaning with something else in the place of a text."""
    parts: list[str | Expansion] = []
    for part in says:
        if isinstance(part, str):
            before, found, after = part.partition(text)
            parts += [before, *new, after] if found else [part]
        else:
            parts.append((*part[:5], filled(part[5], text, new)))
    return joined(parts)


def fields(says: Meaning) -> list[Meaning]:
    """What a quoted text is split into where it is used without quotes."""
    result: list[list[str | Expansion]] = [[]]
    for part in says:
        if not isinstance(part, str):
            result[-1].append(part)
            continue
        pieces = part.replace("\t", " ").replace("\r", " ").replace("\n", " ").split(" ")
        for index, piece in enumerate(pieces):
            if index:
                result.append([])
            if piece:
                result[-1].append(piece)
    return [tuple(field) for field in result if field]

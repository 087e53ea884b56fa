"""Reads a shell script into its commands, each with what it stands in.

Nothing is ever refused: what does not follow the shell's grammar loses itself only, and the blocks that it
leaves open make what follows less certain, never wrong. There is no recursion over the text's nesting.
"""

from __future__ import annotations

import re

from dslint.documents.document import SyntaxProblem
from dslint.documents.shell_commands import CommandReader
from dslint.documents.shell_document import (
    Block,
    Command,
    Comment,
    Directive,
    Piece,
    ShellDocument,
)
from dslint.documents.shell_words import WordReader
from dslint.documents.source import Source, Span

_DEEPEST_SUBSTITUTION = 3  # levels of $( … ) whose commands are read
_DIRECTIVE = re.compile(r"#SBATCH[ \t]+(--?[A-Za-z][\w-]*)(?:=|[ \t]+)?([^\s#][^#\n\r]*?)?[ \t\r]*(?:#.*)?$")


def read_shell(source: Source) -> ShellDocument:
    """Reads a shell script; no text raises."""
    if b"\0" in source.data:
        return ShellDocument(source, (), problem=SyntaxProblem("is a binary file, not a script", Span(0, 0)))
    text = source.data.decode("latin-1")
    start = 3 if text.startswith("\xef\xbb\xbf") else 0
    reader = CommandReader(text, WordReader(text), start, len(text))
    reader.read()
    commands = _with_substitutions(text, reader)
    comments = tuple(reader.comments)
    first = commands[0].span.start if commands else len(text)
    return ShellDocument(source, commands, _directives(comments, first), comments)


def commands_within(text: str) -> tuple[Command, ...]:
    """The commands of a text such as the argument of `bash -c`; the spans are offsets in its UTF-8 bytes."""
    latin = text.encode("utf-8", "replace").decode("latin-1")
    reader = CommandReader(latin, WordReader(latin), 0, len(latin))
    reader.read()
    return tuple(reader.commands)


def _directives(comments: tuple[Comment, ...], first_command: int) -> tuple[Directive, ...]:
    found = []
    for comment in comments:
        match = _DIRECTIVE.match(comment.text) if comment.span.start < first_command else None
        if match:
            found.append(Directive(match.group(1), match.group(2), comment.span))
    return tuple(found)


def _with_substitutions(text: str, reader: CommandReader) -> tuple[Command, ...]:
    """All commands, and those inside `$( … )` behind the one around them."""
    result: list[Command] = []
    waiting = [(command, 0) for command in reversed(reader.commands)]
    numbers = reader.blocks_opened
    while waiting:
        command, depth = waiting.pop()
        result.append(command)
        if depth >= _DEEPEST_SUBSTITUTION:
            continue
        inner: list[tuple[Command, int]] = []
        for piece in _substitutions(command):
            numbers += 1
            block = Block("substitution", numbers)
            start = piece.span.start + (1 if text[piece.span.start] == "`" else 2)
            part = CommandReader(text, WordReader(text, piece.span.end - 1), start, piece.span.end - 1)
            part.outer_blocks = (*command.blocks, block)
            part.blocks_opened = numbers
            part.read()
            numbers = part.blocks_opened
            inner.extend((found, depth + 1) for found in part.commands)
        waiting.extend(reversed(inner))
    return tuple(result)


def _substitutions(command: Command) -> list[Piece]:
    words = [*command.words, *(assignment.value for assignment in command.assignments if assignment.value)]
    return [
        piece
        for word in words
        for piece in word.pieces
        if piece.kind == "substitution" and piece.span.end - piece.span.start > 3
    ]

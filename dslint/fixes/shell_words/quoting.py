"""Text as a word of a shell script, with quotes where it needs them."""

from __future__ import annotations

import re
import shlex

from dslint.documents.shell_document import Piece
from dslint.documents.shell_words import WordReader, as_text
from dslint.fixes.edit import CannotEditError
from dslint.fixes.shell_words.meaning import Meaning, meaning

_HARMLESS = re.compile(r"[\w@%+=:,./-]*", re.ASCII)
_ESCAPED_IN_QUOTES = re.compile(r'["`\\]')


def as_word(text: str) -> str:
    """A text as one word: as it is where it is one already and nothing in it needs quotes."""
    if "\n" in text or "\r" in text:
        raise CannotEditError("a word can't hold a line end")
    return text if text and is_ready(text) else shlex.quote(text)


def as_words(text: str) -> str:
    """An option with its value as words: `--name value`."""
    option, blank, value = text.partition(" ")
    if not blank or not option.startswith("-"):
        return as_word(text)
    parts = value.split()
    if all(map(is_ready, parts)) and (len(parts) < 2 or any(part.startswith("-") for part in parts)):
        return text
    return f"{as_word(option)} {as_word(value)}"


def is_ready(text: str) -> bool:
    """Whether a text is one word of the shell in which whatever needs quotes has them."""
    pieces = pieces_of(text)
    return pieces is not None and all(
        piece.quoted or piece.kind != "literal" or _HARMLESS.fullmatch(piece.text) for piece in pieces
    )


def pieces_of(text: str) -> tuple[Piece, ...] | None:
    """The pieces of a text that is one word; None where it isn't, or a quote in it is never closed."""
    latin = text.encode("utf-8", "replace").decode("latin-1")
    word, end = WordReader(latin).word(0)
    if end != len(latin) or any(is_unclosed(latin, piece) for piece in word.pieces):
        return None
    return word.pieces


def is_unclosed(latin: str, piece: Piece) -> bool:
    """Whether a piece is the rest of a line behind a quote or bracket that nothing closes."""
    if piece.kind != "substitution":
        return False
    text = latin[piece.span.start : piece.span.end]
    opened = {"`": "`", "$(": ")", "<(": ")", ">(": ")", "${": "}"}
    closed = [start for start, end in opened.items() if text.startswith(start) and text.endswith(end)]
    return not closed or len(text) == 1


def inside_quotes(quotes: str, text: str) -> str:
    """A text as it stands between quotes of a kind: `'`, `"`, `$'`, a here-document (`<<`), or none."""
    if quotes == "":
        return as_word(text)
    if quotes == '"':  # where it may hold variables
        return _ESCAPED_IN_QUOTES.sub(r"\\\g<0>", text)
    if quotes == "'":
        return text.replace("'", "'\\''")
    return text.replace("\\", "\\\\").replace("'", "\\'") if quotes == "$'" else text


def meanings_of(quotes: str, written: str, text: str) -> list[Meaning]:
    """What new words say: as they are written between quotes of a kind, and the text that they stand for."""
    if quotes == "":
        return [meaning(pieces_of(word) or ()) for word in split(written)]
    if quotes == '"':
        return [meaning(pieces_of(f'"{written}"') or ())]
    return [(text,)]


def split(text: str) -> list[str]:
    """The words of a text, as they are written."""
    latin = text.encode("utf-8", "replace").decode("latin-1")
    words: list[str] = []
    position = 0
    while position < len(latin):
        word, end = WordReader(latin).word(position)
        if end > position:
            words.append(as_text(latin[word.span.start : word.span.end]))
        position = max(end, position + 1)
    return words

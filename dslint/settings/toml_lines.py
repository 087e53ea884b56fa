"""The line on which each key and value of a TOML text stands, which Python's own reader doesn't tell."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

TomlPath = tuple[str | int, ...]
"""The route to a value: keys of tables and indices of arrays, from the top."""

_TOKEN = re.compile(
    r"#[^\n]*|[ \t\r]+"
    r'|"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}'
    r'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\''
    r"|[A-Za-z0-9_-]+|.",
    re.DOTALL,
)


def toml_lines(text: str) -> Mapping[TomlPath, int]:
    """The line (from 1) of every value, by its path.

    Args:
        text: valid TOML, with newlines as line ends.
    """
    return _Lines(text).read()


def line_of(lines: Mapping[TomlPath, int], path: TomlPath) -> int:
    """The line of a value, or of the nearest one around it."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


@dataclass(frozen=True)
class _Token:
    text: str
    line: int


_END = _Token("", 0)


class _Lines:
    """One pass over the tokens; the text is known to be valid, so that nothing is checked."""

    def __init__(self, text: str) -> None:
        self.tokens = list(_tokens(text))
        self.at = 0
        self.lines: dict[TomlPath, int] = {}
        self.elements: Counter[TomlPath] = Counter()

    def read(self) -> Mapping[TomlPath, int]:
        table: TomlPath = ()
        while self.at < len(self.tokens):
            if self.peek().text == "\n":
                self.at += 1
            elif self.peek().text == "[":
                table = self.header()
            else:
                self.pair(table)
        return self.lines

    def peek(self) -> _Token:
        return self.tokens[self.at] if self.at < len(self.tokens) else _END

    def take(self) -> _Token:
        token = self.peek()
        self.at += 1
        return token

    def header(self) -> TomlPath:
        """`[a.b]` or `[[a.b]]`: the table that the following pairs belong to."""
        line = self.take().line
        is_element = self.peek().text == "["
        self.at += is_element
        path = self.inside_arrays(self.key())
        if is_element:
            self.elements[path] += 1
            path = (*path, self.elements[path] - 1)
        while self.peek().text == "]":
            self.at += 1
        self.lines.setdefault(path, line)
        return path

    def inside_arrays(self, key: TomlPath) -> TomlPath:
        """The path of a header's key: below an array of tables it means the last of them."""
        path: TomlPath = ()
        for index, name in enumerate(key):
            path = (*path, name)
            if index < len(key) - 1 and self.elements[path]:
                path = (*path, self.elements[path] - 1)
        return path

    def key(self) -> TomlPath:
        names = [_name(self.take().text)]
        while self.peek().text == ".":
            self.at += 1
            names.append(_name(self.take().text))
        return tuple(names)

    def pair(self, table: TomlPath) -> None:
        line = self.peek().line
        key = self.key()
        for length in range(1, len(key) + 1):
            self.lines.setdefault((*table, *key[:length]), line)
        self.take()  # the equals sign
        self.value((*table, *key))

    def value(self, path: TomlPath) -> None:
        opening = self.peek()
        self.lines.setdefault(path, opening.line)
        if opening.text == "[":
            self.array(path)
        elif opening.text == "{":
            self.inline_table(path)
        else:
            while self.peek() is not _END and self.peek().text not in (",", "]", "}", "\n"):
                self.at += 1

    def array(self, path: TomlPath) -> None:
        self.at += 1
        index = 0
        while self.peek() is not _END and self.peek().text != "]":
            if self.peek().text in (",", "\n"):
                self.at += 1
            else:
                self.value((*path, index))
                index += 1
        self.at += 1

    def inline_table(self, path: TomlPath) -> None:
        self.at += 1
        while self.peek() is not _END and self.peek().text != "}":
            if self.peek().text in (",", "\n"):
                self.at += 1
            else:
                self.pair(path)
        self.at += 1


def _tokens(text: str) -> Iterator[_Token]:
    line = 1
    for match in _TOKEN.finditer(text):
        piece = match.group()
        if piece[0] not in "# \t\r":
            yield _Token(piece, line)
        line += piece.count("\n")


def _name(text: str) -> str:
    """The name that a bare or quoted key stands for; escapes stay as they are written."""
    return text[1:-1] if text[:1] in ("'", '"') and len(text) > 1 else text

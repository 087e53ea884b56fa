"""Reads a DeepSpeed config: JSON, JSON with comments and trailing commas, Hjson.

DeepSpeed itself reads with `hjson.load` (deepspeed/runtime/config.py, DeepSpeedConfig.__init__), so the value
here is the one that the Hjson package gives, its oddities included: `True,` at the end of a line is the text
"True,", and 5e8 is an integer. This reader exists because that package keeps no positions.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from dslint.documents.document import Document, DuplicateKey, NodePath, SyntaxProblem
from dslint.documents.source import Source, Span
from dslint.documents.strictness import first_place_that_strict_json_refuses
from dslint.documents.templates import placeholders_in_broken_text, placeholders_in_values

DEEPEST_NESTING = 150  # levels; Hjson itself gives up at about 300

_BLANK = re.compile(r"(?:[ \t\n\r]+|#[^\n\r]*|//[^\n\r]*|/\*.*?\*/)*", re.DOTALL)
_NUMBER = re.compile(r"[\t ]*(-?(?:0|[1-9]\d*))(\.\d+)?([eE][-+]?\d+)?[\t ]*")
_STRING_CHUNK = re.compile(r"(.*?)(['\"\\\x00-\x1f])", re.DOTALL)
_QUOTELESS_STOP = re.compile(r"[,}\]#\n\r]|//|/\*|\Z")
_ESCAPES = {'"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS = {"null": None, "true": True, "false": False}


def read_config(source: Source) -> Document:
    """Parses the text of a DeepSpeed config; a syntax error is part of the result, never raised."""
    parser = _Parser(source)
    try:
        value = parser.parse()
    except _SyntaxFault as fault:
        placeholders = placeholders_in_broken_text(source)
        problem = None if placeholders else SyntaxProblem(fault.message, parser.span(fault.at, fault.at + 1))
        return Document(source, None, {}, {}, problem=problem, placeholders=placeholders)
    return Document(
        source,
        value,
        parser.keys,
        parser.values,
        duplicates=tuple(parser.duplicates),
        not_strict=first_place_that_strict_json_refuses(source),
        placeholders=placeholders_in_values(source, value, parser.values, parser.quoteless),
    )


class _SyntaxFault(Exception):  # noqa: N818 - control flow inside this file
    """The text breaks Hjson's rules at character `at`."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.message = message
        self.at = at


class _SyntaxCrash(_SyntaxFault):
    """A fault at which Hjson itself breaks down, so that it tries no second reading."""


class _Parser:
    """One pass over the text, following hjson/decoder.py step by step so that odd inputs agree too."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.keys: dict[NodePath, Span] = {}
        self.values: dict[NodePath, Span] = {}
        self.duplicates: list[DuplicateKey] = []
        self.quoteless: set[NodePath] = set()

    def span(self, start: int, end: int) -> Span:
        return self.source.span(start, end)

    def parse(self) -> Any:
        start = 1 if self.text.startswith("\ufeff") else 0
        at = self.skip_blank(start)
        if start == 0 and at == len(self.text):
            self.values[()] = self.span(0, at)
            return {}
        value, end = self.root(at)
        self.values.setdefault((), self.span(at, end))
        rest = self.skip_blank(end)
        if rest != len(self.text):
            raise _SyntaxFault("there is more text after the end of the config", rest)
        return value

    def root(self, at: int) -> tuple[Any, int]:
        if self.text[at : at + 1] in ("{", "["):
            return self.value(at, ())
        try:
            return self.members(at, (), braces=False)
        except _SyntaxCrash:
            raise
        except _SyntaxFault as fault:
            for told in (self.keys, self.values, self.duplicates, self.quoteless):
                told.clear()
            try:
                return self.value(at, ())
            except _SyntaxFault:
                raise fault from None

    def skip_blank(self, at: int) -> int:
        match = _BLANK.match(self.text, at)
        assert match is not None  # the pattern accepts the empty text
        if self.text.startswith("/*", match.end()):
            raise _SyntaxCrash("this comment is never closed: `*/` is missing", match.end())
        return match.end()

    def value(self, at: int, path: NodePath) -> tuple[Any, int]:
        if len(path) > DEEPEST_NESTING:
            raise _SyntaxFault(f"nested more than {DEEPEST_NESTING} levels deep", at)
        opening = self.text[at : at + 1]
        if opening == "":
            raise _SyntaxFault("the text ends where a value is due", at)
        value: Any
        if opening in "\"'":
            is_block = self.text.startswith("'''", at)
            value, end = self.block_string(at) if is_block else self.quoted(at)
        elif opening == "{":
            value, end = self.object(at, path)
        elif opening == "[":
            value, end = self.array(at, path)
        else:
            value, end = self.quoteless_value(at, path)
        self.values[path] = self.span(at, end)
        return value, end

    def object(self, at: int, path: NodePath) -> tuple[dict[str, Any], int]:
        first = self.skip_blank(at + 1)
        if self.text[first : first + 1] == "}":
            return {}, first + 1
        return self.members(first, path, braces=True)

    def members(self, at: int, path: NodePath, *, braces: bool) -> tuple[dict[str, Any], int]:
        members: dict[str, Any] = {}
        while True:
            at = self.skip_blank(at)
            key, end = self.key(at)
            colon = self.skip_blank(end)
            if self.text[colon : colon + 1] != ":":
                raise _SyntaxFault(f'a colon is missing after the key "{key}"', colon)
            self.note_key((*path, key), self.span(at, end), repeated=key in members)
            value, end = self.value(self.skip_blank(colon + 1), (*path, key))
            members[key] = value
            at = self.skip_blank(end)
            if self.text[at : at + 1] == ",":
                at = self.skip_blank(at + 1)
            if braces and self.text[at : at + 1] == "}":
                return members, at + 1
            if not braces and at == len(self.text):
                return members, at

    def note_key(self, path: NodePath, span: Span, *, repeated: bool) -> None:
        if repeated:
            self.duplicates.append(DuplicateKey(path, self.keys[path], span))
            for table in (self.keys, self.values):
                for old in [known for known in table if known[: len(path)] == path]:
                    del table[old]
        self.keys[path] = span

    def array(self, at: int, path: NodePath) -> tuple[list[Any], int]:
        items: list[Any] = []
        at = self.skip_blank(at + 1)
        if self.text[at : at + 1] == "]":
            return items, at + 1
        while True:
            value, end = self.value(at, (*path, len(items)))
            items.append(value)
            at = self.skip_blank(end)
            if self.text[at : at + 1] == ",":
                at = self.skip_blank(at + 1)
            if self.text[at : at + 1] == "]":
                return items, at + 1

    def key(self, at: int) -> tuple[str, int]:
        if self.text[at : at + 1] in ('"', "'"):
            return self.quoted(at)
        gap = -1  # where white space inside the name was last seen
        for end in range(at, len(self.text)):
            character = self.text[end]
            if character == ":":
                if end == at:
                    raise _SyntaxFault("a colon without a key before it", at)
                if gap >= 0 and gap != end - 1:
                    raise _SyntaxFault("white space inside a key without quotes", gap)
                return self.text[at:end].rstrip(), end
            if character in " \t\n\r":
                gap = end if gap < 0 or gap == end - 1 else gap
            elif character in "{}[],":
                raise _SyntaxFault(f"`{character}` stands where a key is due", at)
        raise _SyntaxFault("the text ends where a key is due: is a closing `}` missing?", len(self.text))

    def quoted(self, at: int) -> tuple[str, int]:
        quote = self.text[at]
        pieces: list[str] = []
        end = at + 1
        while True:
            chunk = _STRING_CHUNK.match(self.text, end)
            if chunk is None:
                raise _SyntaxFault("this text is never closed: a quote is missing", at)
            end = chunk.end()
            content, stop = chunk.groups()
            pieces.append(content)
            if stop == quote:
                return "".join(pieces), end
            if stop in "\"'":
                pieces.append(stop)
            elif stop == "\\":
                piece, end = self.escape(end, at)
                pieces.append(piece)
            elif stop == "\n":
                raise _SyntaxFault("the line ends inside a quoted text: a quote is missing", at)
            else:
                raise _SyntaxFault("a control character inside a quoted text", end - 1)

    def escape(self, at: int, opening: int) -> tuple[str, int]:
        letter = self.text[at : at + 1]
        if letter == "":
            raise _SyntaxFault("this text is never closed: a quote is missing", opening)
        if letter != "u":
            if letter not in _ESCAPES:
                raise _SyntaxFault(f"`\\{letter}` is no escape that JSON knows", at - 1)
            return _ESCAPES[letter], at + 1
        code = self.hex_code(at + 1)
        if code is None:
            raise _SyntaxFault("`\\u` must be followed by four hexadecimal digits", at - 1)
        end = at + 5
        if code & 0xFC00 == 0xD800 and self.text.startswith("\\u", end):
            low, is_pair = self.low_surrogate(end)
            if is_pair:
                return chr(0x10000 + ((code - 0xD800) << 10 | (low - 0xDC00))), end + 6
        return chr(code), end

    def low_surrogate(self, at: int) -> tuple[int, bool]:
        digits = self.text[at + 2 : at + 6]
        code = self.hex_code(at + 2)
        if code is None and len(digits) == 4 and digits[1] not in "xX":
            raise _SyntaxFault("`\\u` must be followed by four hexadecimal digits", at)
        return (code or 0), code is not None and code & 0xFC00 == 0xDC00

    def hex_code(self, at: int) -> int | None:
        digits = self.text[at : at + 4]
        if len(digits) != 4 or digits[1] in "xX":
            return None
        try:
            return int(digits, 16)
        except ValueError:
            return None

    def block_string(self, at: int) -> tuple[str, int]:
        """A text between triple quotes; its indent is that of the opening quotes."""
        text = self.text
        line_start = text.rfind("\n", 0, at)
        if line_start < 0:
            # Hjson looks on from the end of the file backwards here; what it finds makes no sense.
            line_start = text.rfind("\n") - len(text)
            if line_start == -1 - len(text):
                raise _SyntaxCrash("a text in triple quotes can't start on the first line", at)
        indent = at - line_start - 1
        at = self.skip_indent(at + 3, -1)
        if text[at : at + 1] == "\n":
            at = self.skip_indent(at + 1, indent)
        pieces: list[str] = []
        while True:
            end = text.find("'''", at)
            if end < 0:
                raise _SyntaxFault("this text is never closed: `'''` is missing", len(text))
            newline = text.find("\n", at, end)
            if newline < 0:
                pieces.append(text[at:end])
                return "".join(pieces).removesuffix("\n"), end + 3
            pieces.append(text[at : newline + 1])
            at = self.skip_indent(newline + 1, indent)

    def skip_indent(self, at: int, most: int) -> int:
        while self.text[at : at + 1] in (" ", "\t", "\r") and most != 0:
            at += 1
            most -= 1
        return at

    def quoteless_value(self, at: int, path: NodePath) -> tuple[Any, int]:
        if self.text[at] in "{}[],:":
            raise _SyntaxFault(f"`{self.text[at]}` stands where a value is due", at)
        first = self.text[at]
        end = at
        while True:
            match = _QUOTELESS_STOP.search(self.text, end)
            assert match is not None  # the end of the text always matches
            end = match.start()
            word = self.text[at:end].strip()
            if word in _WORDS:
                return _WORDS[word], end
            if first == "-" or "0" <= first <= "9":
                number = _NUMBER.match(self.text, at)
                if number is not None and number.end() == end:
                    return self.number(number, at), end
            if match.group() in ("\n", "\r", ""):
                self.quoteless.add(path)
                return word, end
            end += 1

    def number(self, match: re.Match[str], at: int) -> int | float:
        integer, fraction, exponent = match.groups()
        try:
            if not fraction and not exponent:
                return int(integer)
            value = float(integer + (fraction or "") + (exponent or ""))
            return int(value) if int(value) == value and abs(value) < 1e10 else value
        except (ValueError, OverflowError):
            self.refuse_number(at)

    def refuse_number(self, at: int) -> NoReturn:
        raise _SyntaxCrash("a number too large to be read", at)

"""Reads the words of a shell script: quotes, variables, substitutions.

Offsets are byte offsets: the text is decoded as Latin-1, one character a byte, and what is kept of it is
turned back into UTF-8. Work is linear in the text, whatever stands there: a quote or bracket that is never
closed ends with its line, and after some of them no further one is searched for.
"""

from __future__ import annotations

import re

from dslint.documents.shell_document import Piece, Word
from dslint.documents.source import Span

_DEEPEST = 12  # levels of ${A:-${B:-…}} that are told apart
_FARTHEST = 32_768  # bytes searched for a closing bracket
_MOST_FAILURES = 24

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_PLAIN = re.compile(r"[^ \t\r\n'\"\\$`|&;()<>]+")
_PLAIN_IN_QUOTES = re.compile(r"[^\"\\$`]+")
_PLAIN_IN_BODY = re.compile(r"[^\\$`]+")
_PLAIN_OPERAND = re.compile(r"[^'\"\\$`]+")
_VARIABLE = re.compile(rf"\$({_NAME}|[0-9@*#?$!-])")
_BRACED = re.compile(rf"\$\{{([#!]?)({_NAME}|[0-9]+|[@*#?$!-])(?:\[([^\]\n]*)\])?")
_DEFAULT = re.compile(r":?[-=+?]")
_CONTINUATION = re.compile(r"\\\r?\n")
_BRACKET = re.compile(r"[()'\"\\`{}]|\$'")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "e": "\x1b"}
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def as_text(latin: str) -> str:
    """The text behind bytes that were decoded as Latin-1."""
    return latin if latin.isascii() else latin.encode("latin-1").decode("utf-8", "replace")


class WordReader:
    """Reads words at given offsets of one text."""

    def __init__(self, text: str, end: int | None = None) -> None:
        self.text = text
        self._end = len(text) if end is None else end  # nothing behind it is looked at
        self._failures = 0

    def word(self, start: int) -> tuple[Word, int]:
        """The word that begins at an offset, and the offset behind it."""
        pieces: list[Piece] = []
        position = start
        text = self.text
        while position < self._end:
            match = _PLAIN.match(text, position)
            if match:
                pieces.append(Piece("literal", as_text(match.group()), Span(position, match.end())))
                position = match.end()
                continue
            character = text[position]
            if character in " \t\r\n|&;()":
                break
            if character in "<>" and not (text.startswith("(", position + 1) and position == start):
                break
            if character == "\\":
                position = self._escape(position, pieces)
            elif character == "'":
                position = self._single_quotes(position, pieces)
            elif character == '"':
                position = self._double_quotes(position, pieces)
            elif character in "<>":
                position = self._bracketed(position, position + 2, "substitution", pieces, False)
            else:
                position = self._expansion(position, pieces, False, 0)
        return Word(tuple(pieces), Span(start, position)), position

    def body(self, start: int, end: int) -> tuple[Piece, ...]:
        """The pieces of a here-document's text."""
        pieces: list[Piece] = []
        outer, self._end = self._end, end
        position = start
        while position < end:  # a double quote is plain text here
            position = self._until(position, end, _PLAIN_IN_BODY, pieces, "$`\\", 0)
        self._end = outer
        return tuple(pieces)

    def closing(self, start: int, opening: str, closer: str) -> int | None:
        """The offset of the bracket that closes one whose inside begins at `start`."""
        if self._failures > _MOST_FAILURES:
            return None
        depth, position, text = 1, start, self.text
        limit = min(self._end, start + _FARTHEST)
        while match := _BRACKET.search(text, position, limit):
            found, position = match.group(), match.end()
            if found == "\\":
                position += 1
            elif found == "'":
                close = text.find("'", position, limit)
                position = close + 1 if close >= 0 else position
            elif found == "$'":
                position = _end_of_ansi(text, position, limit)
            elif found == '"':
                position = _end_of_quotes(text, position, limit)
            elif found == opening:
                depth += 1
            elif found == closer:
                depth -= 1
                if not depth:
                    return match.start()
        self._failures += 1
        return None

    def _escape(self, position: int, pieces: list[Piece]) -> int:
        continuation = _CONTINUATION.match(self.text, position)
        if continuation:
            return continuation.end()
        end = min(position + 2, self._end)
        literal = self.text[position + 1 : end]
        if literal and not literal.isascii():  # all bytes of the character that is escaped
            while end < self._end and "\x80" <= self.text[end] < "\xc0":
                end += 1
            literal = as_text(self.text[position + 1 : end])
        pieces.append(Piece("literal", literal, Span(position, end), True))
        return end

    def line_end(self, position: int) -> int:
        """The offset of the end of the line that an offset stands in."""
        newline = self.text.find("\n", position, self._end)
        end = self._end if newline < 0 else newline
        return end - 1 if end > position and self.text[end - 1] == "\r" else end

    def _unclosed(self, position: int, pieces: list[Piece]) -> int:
        """Takes the rest of the line for what an unclosed quote or bracket holds: nobody can tell."""
        self._failures += 1
        end = max(self.line_end(position), position + 1)
        pieces.append(Piece("substitution", as_text(self.text[position:end]), Span(position, end)))
        return end

    def _single_quotes(self, position: int, pieces: list[Piece]) -> int:
        close = -1 if self._failures > _MOST_FAILURES else self.text.find("'", position + 1, self._end)
        if close < 0:
            return self._unclosed(position, pieces)
        literal = as_text(self.text[position + 1 : close])
        pieces.append(Piece("literal", literal, Span(position, close + 1), True))
        return close + 1

    def _double_quotes(self, position: int, pieces: list[Piece]) -> int:
        if self._failures > _MOST_FAILURES:
            return self._unclosed(position, pieces)
        inner: list[Piece] = []
        end = self._until(position + 1, self._end, _PLAIN_IN_QUOTES, inner, '$`"\\', 0)
        if end >= self._end:
            return self._unclosed(position, pieces)
        if not inner:
            inner.append(Piece("literal", "", Span(position, end + 1), True))
        pieces.extend(inner)
        return end + 1

    def _until(
        self, position: int, limit: int, plain: re.Pattern[str], pieces: list[Piece], escapable: str, depth: int
    ) -> int:
        """Reads quoted text up to a closing `"` (where that is special) or the limit."""
        text = self.text
        while position < limit:
            match = plain.match(text, position, limit)
            if match:
                pieces.append(Piece("literal", as_text(match.group()), Span(position, match.end()), True))
                position = match.end()
            elif text[position] == '"':
                return position
            elif text[position] == "\\":
                continuation = _CONTINUATION.match(text, position)
                if continuation:
                    position = continuation.end()
                    continue
                escaped = text[position + 1 : position + 2]
                literal, length = (escaped, 2) if escaped and escaped in escapable else ("\\", 1)
                pieces.append(Piece("literal", literal, Span(position, position + length), True))
                position += length
            else:
                position = self._expansion(position, pieces, True, depth)
        return limit

    def _expansion(self, position: int, pieces: list[Piece], quoted: bool, depth: int) -> int:
        """Reads what begins with `$` or a backquote."""
        text = self.text
        if text[position] == "`":
            close = (
                -1
                if self._failures > _MOST_FAILURES
                else text.find("`", position + 1, min(position + _FARTHEST, self._end))
            )
            if close < 0:
                return self._unclosed(position, pieces)
            inside = as_text(text[position + 1 : close])
            pieces.append(Piece("substitution", inside, Span(position, close + 1), quoted))
            return close + 1
        if text.startswith("$((", position):
            return self._arithmetic(position, pieces, quoted)
        if text.startswith("$(", position):
            return self._bracketed(position, position + 2, "substitution", pieces, quoted)
        if text.startswith("${", position):
            return self._braced(position, pieces, quoted, depth)
        match = _VARIABLE.match(text, position, self._end)
        if match:
            pieces.append(Piece("variable", match.group(1), Span(position, match.end()), quoted))
            return match.end()
        if not quoted and text.startswith("$'", position):
            return self._ansi_quotes(position, pieces)
        if not quoted and text.startswith('$"', position):
            return position + 1
        pieces.append(Piece("literal", "$", Span(position, position + 1), quoted))
        return position + 1

    def _ansi_quotes(self, position: int, pieces: list[Piece]) -> int:
        end = _end_of_ansi(self.text, position + 2, self._end)
        if end > self._end:
            return self._unclosed(position, pieces)
        raw = as_text(self.text[position + 2 : end - 1])
        value = _ESCAPED.sub(lambda match: _ESCAPES.get(match.group(1), match.group()), raw)
        pieces.append(Piece("literal", value, Span(position, end), True))
        return end

    def _arithmetic(self, position: int, pieces: list[Piece], quoted: bool) -> int:
        close = self.closing(position + 3, "(", ")")
        if close is None:
            return self._unclosed(position, pieces)
        if not self.text.startswith("))", close):
            return self._bracketed(position, position + 2, "substitution", pieces, quoted)
        inside = as_text(self.text[position + 3 : close])
        pieces.append(Piece("arithmetic", inside, Span(position, close + 2), quoted))
        return close + 2

    def _bracketed(self, position: int, start: int, kind: str, pieces: list[Piece], quoted: bool) -> int:
        close = self.closing(start, "(", ")")
        if close is None:
            return self._unclosed(position, pieces)
        inside = as_text(self.text[start:close])
        pieces.append(Piece("substitution", inside, Span(position, close + 1), quoted))
        return close + 1

    def _braced(self, position: int, pieces: list[Piece], quoted: bool, depth: int) -> int:
        close = self.closing(position + 2, "{", "}")
        if close is None:
            return self._unclosed(position, pieces)
        match = _BRACED.match(self.text, position, close)
        span = Span(position, close + 1)
        if match is None:
            pieces.append(Piece("substitution", as_text(self.text[position + 2 : close]), span, quoted))
            return close + 1
        prefix, name, index = match.groups()
        rest = match.end()
        default = _DEFAULT.match(self.text, rest, close)
        operand: tuple[Piece, ...] = ()
        if prefix or (rest < close and default is None):
            operator = prefix + as_text(self.text[rest:close])
        elif default:
            operator, operand = default.group(), self._operand(default.end(), close, quoted, depth)
        else:
            operator = ""
        pieces.append(Piece("variable", name, span, quoted, operator, operand, index))
        return close + 1

    def _operand(self, start: int, end: int, quoted: bool, depth: int) -> tuple[Piece, ...]:
        """The pieces of the `8` in `${X:-8}`."""
        if depth >= _DEEPEST:
            return (Piece("substitution", as_text(self.text[start:end]), Span(start, end), quoted),)
        pieces: list[Piece] = []
        position = start
        outer, self._end = self._end, end
        while position < end:
            match = _PLAIN_OPERAND.match(self.text, position, end)
            character = self.text[position]
            if match:
                pieces.append(Piece("literal", as_text(match.group()), Span(position, match.end()), quoted))
                position = match.end()
            elif character == '"':
                inner: list[Piece] = []
                position = min(
                    self._until(position + 1, end, _PLAIN_IN_QUOTES, inner, '$`"\\', depth + 1) + 1, end
                )
                pieces.extend(inner)
            elif character == "'" and not quoted:
                position = self._single_quotes(position, pieces)
            elif character == "'":
                pieces.append(Piece("literal", "'", Span(position, position + 1), True))
                position += 1
            elif character == "\\":
                position = self._escape(position, pieces)
            else:
                position = self._expansion(position, pieces, quoted, depth + 1)
        self._end = outer
        return tuple(pieces)


def _end_of_ansi(text: str, position: int, limit: int) -> int:
    """The offset behind the quote that closes `$'`; one past the limit where there is none."""
    while position < limit:
        if text[position] == "\\":
            position += 2
        elif text[position] == "'":
            return position + 1
        else:
            position += 1
    return limit + 1


def _end_of_quotes(text: str, position: int, limit: int) -> int:
    """The offset behind the `"` that closes a quoted text, `$( … "…" … )` inside it skipped."""
    depth = 0
    while position < limit:
        character = text[position]
        if character == "\\":
            position += 1
        elif character == '"' and not depth:
            return position + 1
        elif text.startswith("$(", position):
            depth += 1
            position += 1
        elif character == ")" and depth:
            depth -= 1
        position += 1
    return limit

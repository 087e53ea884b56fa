"""How words of a shell script lie in its lines: what to cut with them, and what to put around new ones."""

from __future__ import annotations

import re

from dslint.documents.source import Span

_BLANKS = b" \t"
_CONTINUED = re.compile(rb"[ \t]*\\\r?\n")
_NOTHING_MORE = re.compile(rb"[ \t]*(?:[\"')#]|\r?\n|\r?\Z)")
_END_OF_LINE = re.compile(rb"[ \t]*(?:\r?\n|\r?\Z)")
_COMMENT_OR_END = re.compile(rb"(?:[ \t]+#[^\n]*|[ \t]*\r?)(?:\n|\Z)")
_CONTINUATION_BEFORE = re.compile(rb"[ \t]*\\\r?\n[ \t]*\Z")


def cut_out(data: bytes, span: Span, by_lines: bool) -> Span:
    """What goes with words: the line that they have for themselves, or one blank.

    Args:
        data: the script.
        span: the words.
        by_lines: whether a line end parts words there, as in an array.
    """
    start, end = span.start, span.end
    line = line_start(data, start)
    is_first = not data[line:start].strip(_BLANKS)
    continued = _CONTINUED.match(data, end)
    if is_first and line < start and continued:
        return Span(line, continued.end())
    before = _CONTINUATION_BEFORE.search(data, max(line - 400, 0), start) if is_first else None
    if before and is_continued(data, line) and _NOTHING_MORE.match(data, end):
        behind = _skip_blanks(data, end)
        return Span(before.start(), end if data[behind : behind + 1] == b"#" else behind)
    own_line = _COMMENT_OR_END.match(data, end) if is_first and by_lines else None
    if own_line and not is_continued(data, line):
        return Span(line, own_line.end())
    if is_first and not continued:
        return Span(start, _skip_blanks(data, end))
    if data[start - 1 : start] in (b" ", b"\t"):
        return Span(start - 1, end)
    return Span(start, end + 1) if data[end : end + 1] in (b" ", b"\t") else span


def put_behind(data: bytes, position: int, text: str, by_lines: bool) -> bytes:
    """Further words as they stand behind a position: an option on its own line where the one before has one."""
    new = text.encode("utf-8")
    line = line_start(data, position)
    indent = _indent(data, line)
    is_last = _CONTINUED.match(data, position) or _END_OF_LINE.match(data, position)
    if not new.startswith(b"-") or not is_last or not indent:
        return b" " + new
    line_end = b"\r\n" if data[line - 2 : line] == b"\r\n" else b"\n"
    if is_continued(data, line):
        return b" \\" + line_end + indent + new
    if by_lines and data[line + len(indent) : line + len(indent) + 1] == b"-":
        return line_end + indent + new
    return b" " + new


def line_start(data: bytes, position: int) -> int:
    """Where the line of a position begins."""
    return data.rfind(b"\n", 0, position) + 1


def whole_line(data: bytes, span: Span) -> Span:
    """The line that a span stands in, with its end."""
    end = data.find(b"\n", span.end)
    return Span(line_start(data, span.start), len(data) if end < 0 else end + 1)


def is_continued(data: bytes, line: int) -> bool:
    """Whether the line before the one that begins here goes on in it."""
    before = data[:line].removesuffix(b"\n").removesuffix(b"\r") if line else b""
    return (len(before) - len(before.rstrip(b"\\"))) % 2 == 1


def _indent(data: bytes, line: int) -> bytes:
    end = _skip_blanks(data, line)
    return data[line:end]


def _skip_blanks(data: bytes, position: int) -> int:
    while data[position : position + 1] in (b" ", b"\t"):
        position += 1
    return position

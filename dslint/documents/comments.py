"""Comments that begin with some mark, in Python, shell, YAML and configs, and the lines that they speak about."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Literal

from dslint.documents.source import Source, Span

Kind = Literal["python", "shell", "yaml", "config"]

_SIGN = r"(?:#|//|/\*)[ \t]*"


@dataclass(frozen=True)
class Comment:
    """A comment with the mark.

    Attributes:
        text: what follows the mark, up to the end of the line.
        start: index of the character in the file's text at which `text` begins.
        span: the comment, from its sign to its end.
        line: the line that it stands on, from 1.
        covers: the lines of the statement or command that it stands in; of the next one, where the comment
            stands between two.
    """

    text: str
    start: int
    span: Span
    line: int
    covers: range


@dataclass(frozen=True)
class _Layout:
    """Where comments stand (indices of characters: start and end), and statements (first and last lines)."""

    comments: tuple[tuple[int, int], ...]
    statements: tuple[range, ...]


def marked_comments(source: Source, kind: Kind, mark: str) -> tuple[Comment, ...]:
    """The comments that begin with a mark, in the order of the file.

    Args:
        source: the file.
        kind: which language's comments to look for.
        mark: such as "dslint:"; a comment may hold it after another comment's text: `# noqa  # dslint: …`.
    """
    if mark.encode() not in source.data:
        return ()
    beginning = re.compile(_SIGN + re.escape(mark))
    layout = _layout(source, kind, beginning)
    return tuple(_comments(source, layout, beginning))


def _comments(source: Source, layout: _Layout, beginning: re.Pattern[str]) -> Iterator[Comment]:
    text = source.text
    newlines = [match.start() for match in re.finditer("\n", text)]
    stops = [lines.stop for lines in layout.statements]
    for start, end in layout.comments:
        match = beginning.search(text, start, end)
        if match is None:
            continue
        content = text[match.end() : end]
        if match.group().startswith("/*"):
            content = content.partition("*/")[0]
        content = content.rstrip()
        line = bisect_right(newlines, match.start()) + 1
        span = source.span(match.start(), match.end() + len(content))
        index = bisect_right(stops, line)
        covers = layout.statements[index] if index < len(stops) else range(line, line + 1)
        yield Comment(content, match.end(), span, line, covers)


def _layout(source: Source, kind: Kind, beginning: re.Pattern[str]) -> _Layout:
    if kind == "python":
        return _layout_of_python(source.text)
    if kind == "shell":
        return _layout_of_shell(source.text)
    return _layout_of_data(source, kind, beginning)


def _layout_of_python(text: str) -> _Layout:
    """Comments and logical lines: a statement, or the head of one that has a body."""
    import tokenize

    bom = 1 if text.startswith("\ufeff") else 0
    starts = [bom]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1 - (bom if len(starts) == 1 else 0))
    comments: list[tuple[int, int]] = []
    statements: list[range] = []
    first: int | None = None
    silent = {tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}
    try:
        for token in tokenize.generate_tokens(StringIO(text[bom:]).readline):
            if token.type == tokenize.COMMENT:
                at = starts[token.start[0] - 1] + token.start[1]
                comments.append((at, at + len(token.string)))
            elif token.type == tokenize.NEWLINE:
                statements.append(range(first or token.start[0], token.start[0] + 1))
                first = None
            elif token.type not in silent and first is None:
                first = token.start[0]
    except (tokenize.TokenError, SyntaxError, ValueError):
        pass  # what stands before the mistake is known
    return _Layout(tuple(comments), tuple(statements))


_SHELL = re.compile(
    r"\\."
    r"|(?:(?<=[\s;&|()])|\A)\#[^\n]*"
    r"|'[^']*'|\"(?:\\.|[^\"\\])*\""
    r"|(?<!<)<<(?!<)(?P<indented>-?)[ \t]*(?P<quote>['\"]?)(?P<delimiter>[A-Za-z_]\w*)(?P=quote)"
    r"|\n|[ \t]+|[^\\'\"<#\n \t;&|()]+|.",
    re.DOTALL,
)


def _layout_of_shell(text: str) -> _Layout:
    """Comments and commands, with their continuation lines and here-documents."""
    comments: list[tuple[int, int]] = []
    statements: list[range] = []
    pending: list[re.Match[str]] = []
    at, line = 0, 1
    first: int | None = None
    while at < len(text):
        match = _SHELL.match(text, at)
        assert match is not None  # the last alternative accepts any character
        piece = match.group()
        at = match.end()
        if piece == "\n":
            skipped = _end_of_documents(text, at, pending)
            lines = text.count("\n", at, skipped)
            if first is not None:
                statements.append(range(first, line + lines + 1))
            line += 1 + lines
            first, pending, at = None, [], skipped
            continue
        if piece[0] == "#" and len(piece) > 1:
            comments.append(match.span())
        elif piece[0] not in " \t":
            first = first or line
        if match["delimiter"]:
            pending.append(match)
        line += piece.count("\n")
    if first is not None:
        statements.append(range(first, line + 1))
    return _Layout(tuple(comments), tuple(statements))


def _end_of_documents(text: str, at: int, pending: Iterable[re.Match[str]]) -> int:
    """The index after the here-documents that begin at `at`; one without its last line is none."""
    for match in pending:
        tabs = r"\t*" if match["indented"] else ""
        end = re.compile(rf"^{tabs}{match['delimiter']}$\n?", re.MULTILINE).search(text, at)
        at = end.end() if end else at
    return at


def _layout_of_data(source: Source, kind: Kind, beginning: re.Pattern[str]) -> _Layout:
    """Marks outside of values (in Hjson and in YAML's blocks, text that looks like a comment may be one)."""
    texts = sorted(_scalar_spans(source, kind), key=lambda span: span.start)
    begins = [span.start for span in texts]
    comments = []
    for match in beginning.finditer(source.text):
        at = source.span(match.start(), match.end()).start
        if not _is_inside(at, texts, begins) and _may_begin_here(source.text, match.start()):
            end = source.text.find("\n", match.end())
            comments.append((match.start(), len(source.text) if end < 0 else end))
    lines = enumerate(source.text.split("\n"), 1)
    statements = tuple(
        range(number, number + 1)
        for number, line in lines
        if line.strip() and not line.lstrip().startswith(("#", "//", "/*"))
    )
    return _Layout(tuple(comments), statements)


def _is_inside(at: int, spans: Sequence[Span], begins: Sequence[int]) -> bool:
    """Whether one of some spans, sorted and apart from each other, holds an offset."""
    index = bisect_right(begins, at) - 1
    return index >= 0 and at < spans[index].end


def _may_begin_here(text: str, at: int) -> bool:
    """Whether a comment can begin here: `#` and `//` within a word are part of it."""
    return at == 0 or not (text[at - 1].isalnum() or text[at - 1] in "_:/#")


def _scalar_spans(source: Source, kind: Kind) -> list[Span]:
    """Where the keys and those values stand that hold no others."""
    if kind == "yaml":
        from dslint.documents.yaml_reader import read_yaml

        document = read_yaml(source)
    else:
        from dslint.documents.config_reader import read_config

        document = read_config(source)
    parents = {path[:-1] for path in document.values if path}
    empty = (b"{", b"[")
    values = [
        span
        for path, span in document.values.items()
        if path and path not in parents and not source.data.startswith(empty, span.start)
    ]
    return [*document.keys.values(), *values]

"""A parsed file: its value, and where each key and value stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dslint.documents.source import Source, Span

NodePath = tuple[str | int, ...]
"""The route to a value: keys of objects and indices of lists, from the top."""


@dataclass(frozen=True)
class SyntaxProblem:
    """A place where the text breaks the rules of its format."""

    message: str
    span: Span


@dataclass(frozen=True)
class DuplicateKey:
    """A key that stands twice in one object."""

    path: NodePath
    first: Span
    second: Span


@dataclass(frozen=True)
class Placeholder:
    """A piece of a template that some other program fills in: `"stage": ZERO_STAGE,`.

    Attributes:
        text: what stands there.
        span: where it stands.
        path: the value it stands for; None where the text as a whole can't be parsed.
    """

    text: str
    span: Span
    path: NodePath | None


@dataclass(frozen=True)
class Document:
    """One parsed file.

    Attributes:
        source: the text it was parsed from.
        value: what the file says, as plain Python data; None where `problem` is set.
        keys: the span of each key's text (quotes included), by the path of its value.
        values: the span of each value's text, by path; the top value is at ().
        problem: why the text could not be parsed at all.
        duplicates: keys that stand twice in one object; `value` holds the last of them.
        not_strict: the first place that strict JSON forbids, for formats wider than JSON.
        placeholders: unfilled pieces of a template.
        open: objects that may hold more keys than `value` shows, by path.
        language: what it is written in: "json", "yaml" or "python"; "none" for a stand-in for a file that nobody
            has, of which nothing is known.
    """

    source: Source
    value: Any
    keys: Mapping[NodePath, Span]
    values: Mapping[NodePath, Span]
    problem: SyntaxProblem | None = None
    duplicates: tuple[DuplicateKey, ...] = ()
    not_strict: SyntaxProblem | None = None
    placeholders: tuple[Placeholder, ...] = ()
    open: frozenset[NodePath] = frozenset()
    language: str = "json"


def stand_in(source: Source) -> Document:
    """Stands for a document that nobody has; what should be said of it is said at the top of `source`."""
    return Document(source, None, {}, {(): Span(0, 0)}, language="none")

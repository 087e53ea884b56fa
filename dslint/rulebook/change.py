"""What a fix changes, as data: the fixes' room turns it into edits of the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dslint.documents.document import Document, NodePath
from dslint.documents.source import Source, Span


@dataclass(frozen=True)
class SetKey:
    """Give a key this value; the key, and sections around it, come into being where they are absent.

    Attributes:
        document: where the key stands: a JSON, Hjson or YAML file, or a dict in a script.
        path: the route to the value, by the names that the file uses.
        value: plain data.
    """

    document: Document
    path: NodePath
    value: Any


@dataclass(frozen=True)
class DeleteKey:
    """Take a key out with its value.

    Attributes:
        document: where it stands.
        path: the route to the value.
        key: the key's own span, where it stands twice and the other one has to stay.
    """

    document: Document
    path: NodePath
    key: Span | None = None


@dataclass(frozen=True)
class RenameKey:
    """Give a key another name at the same place."""

    document: Document
    path: NodePath
    name: str


@dataclass(frozen=True)
class MoveKey:
    """Move a key with its value into another section, perhaps under another name."""

    document: Document
    path: NodePath
    to: NodePath


@dataclass(frozen=True)
class WritePlainly:
    """Write a config anew as strict JSON, which has no comments."""

    document: Document


@dataclass(frozen=True)
class ReplaceCode:
    """Put other code or another word in the place of what stands at a span.

    Attributes:
        source: a Python file or a shell script.
        span: an expression or a statement; in a shell script a word, or a piece of one.
        text: what comes instead.
    """

    source: Source
    span: Span
    text: str


@dataclass(frozen=True)
class DeleteCode:
    """Take out what stands at a span: a statement, an argument of a call, a command's option with its value."""

    source: Source
    span: Span


@dataclass(frozen=True)
class InsertCode:
    """Put a statement before or after the one that stands at a span, or holds it.

    Attributes:
        source: a Python file.
        span: where.
        text: the statement, one line.
        after: whether it comes after it.
    """

    source: Source
    span: Span
    text: str
    after: bool = False


@dataclass(frozen=True)
class SetArguments:
    """Give keyword arguments of a call other values, or take them out.

    Attributes:
        source: a Python file.
        span: the call.
        arguments: code by keyword; None to take the argument out.
    """

    source: Source
    span: Span
    arguments: Mapping[str, str | None]


@dataclass(frozen=True)
class Unguard:
    """Take the statement at a span out of the innermost `if` around it, so that every rank executes it.

    What else the `if` holds stays in it; an `if` that is left empty goes.
    """

    source: Source
    span: Span


KeyChange = SetKey | DeleteKey | RenameKey | MoveKey
CodeChange = ReplaceCode | DeleteCode | InsertCode | SetArguments | Unguard
Change = KeyChange | WritePlainly | CodeChange


def file_of(change: Change) -> Source:
    """The file that a change is about."""
    return change.source if isinstance(change, CodeChange) else change.document.source

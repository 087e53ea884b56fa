"""The items of list facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dslint.documents.source import Source, Span


@dataclass(frozen=True)
class Item:
    """One element of a list fact.

    Attributes:
        fields: its values, by name.
        source: the file it stands in.
        span: where it stands there.
        related: further places in the same file, with what to say there.
        elsewhere: further places in other files.
    """

    fields: Mapping[str, Any]
    source: Source
    span: Span
    related: tuple[tuple[Span, str], ...] = ()
    elsewhere: tuple[tuple[Source, Span, str], ...] = ()

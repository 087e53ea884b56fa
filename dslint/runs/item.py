"""The items of list facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dslint.documents.source import Source, Span


@dataclass(frozen=True)
class Item:
    """One element of a list fact: its fields, and where it stands."""

    fields: Mapping[str, Any]
    source: Source
    span: Span
    related: tuple[tuple[Span, str], ...] = ()

"""What a fact is: a named value about a run, and how it is worked out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dslint.runs.facts import Facts


@dataclass(frozen=True)
class Fact:
    """A fact beside the config's own keys.

    Attributes:
        meaning: one line for rule authors, with the unit.
        work_out: gives the value for a run, or Unknown.
        fields: for a list of items, the fields that each item has.
    """

    meaning: str
    work_out: Callable[[Facts], Any]
    fields: frozenset[str] = frozenset()

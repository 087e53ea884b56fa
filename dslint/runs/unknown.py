"""The third truth value: what the files don't tell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce


@dataclass(frozen=True)
class Unknown:
    """A value that can't be told from the files and options at hand.

    Attributes:
        needs: what would tell it, in words for the report ("the number of GPUs (--gpus)"); empty where
            nothing that a user could pass would help, so that the report doesn't ask for it.
    """

    needs: frozenset[str] = frozenset()

    def __or__(self, other: Unknown) -> Unknown:
        """Unknown for both reasons; where one of them can't be helped, naming the other would help nobody."""
        return Unknown(self.needs | other.needs) if self.needs and other.needs else UNDECIDABLE


def either_reason(doubts: Iterable[Unknown]) -> Unknown:
    """Unknown for all of these reasons (at least one)."""
    return reduce(lambda left, right: left | right, doubts)


def needs(what: str) -> Unknown:
    """A value that `what` would tell."""
    return Unknown(frozenset([what]))


UNDECIDABLE = Unknown()


def product(factors: Iterable[object]) -> int | Unknown:
    """The product of whole numbers, of which some may be unknown."""
    known = 1
    doubts = []
    for factor in factors:
        if isinstance(factor, Unknown):
            doubts.append(factor)
        elif isinstance(factor, int):
            known *= factor
        else:
            doubts.append(UNDECIDABLE)
    return either_reason(doubts) if doubts else known

"""The third truth value: what the files don't tell."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Unknown:
    """A value that can't be told from the files and options at hand.

    Attributes:
        needs: what would tell it, in words for the report ("the number of GPUs (--gpus)"); empty where
            nothing that a user could pass would help, so that the report doesn't ask for it.
    """

    needs: frozenset[str] = frozenset()

    def __or__(self, other: Unknown) -> Unknown:
        """Unknown for both reasons."""
        return Unknown(self.needs | other.needs)


def needs(what: str) -> Unknown:
    """A value that `what` would tell."""
    return Unknown(frozenset([what]))


UNDECIDABLE = Unknown()

"""How people name rules: by code, by the beginning of a code, by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class Labelled(Protocol):
    """Anything that stands for a rule."""

    @property
    def code(self) -> str:
        """The rule's code."""

    @property
    def name(self) -> str:
        """The rule's name."""


def fits(label: str, rule: Labelled) -> bool:
    """Whether a label means a rule."""
    return bool(label) and (rule.name == label or rule.code.startswith(label.upper()))


def unknown_label(label: str, rules: Iterable[Labelled]) -> str | None:
    """What is wrong with a label that fits none of the rules, in words; None where it fits."""
    known = list(rules)
    if any(fits(label, rule) for rule in known):
        return None
    from difflib import get_close_matches

    near = get_close_matches(
        label.lower(), [rule.name for rule in known], n=1
    )  # no code means what its neighbour does
    return f"there is no rule `{label}`" + (f": did you mean {near[0]}?" if near else "")

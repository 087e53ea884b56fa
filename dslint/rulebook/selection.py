"""Which rules a user wants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeVar

    from dslint.rulebook.labels import Labelled

    AnyRule = TypeVar("AnyRule", bound=Labelled)


class NoSuchRuleError(ValueError):
    """A label that fits no rule."""


def select(rules: Sequence[AnyRule], only: str | None, ignored: str | None) -> list[AnyRule]:
    """The rules named in `only` (all, where it is None) without those in `ignored`.

    Both are lists with commas of codes (DS201), beginnings of codes (DS2) and names.

    Raises:
        NoSuchRuleError: a label fits no rule.
    """
    wanted = list(rules) if only is None else _named(rules, only)
    unwanted = _named(rules, ignored) if ignored else []
    return [rule for rule in wanted if rule not in unwanted]


def _named(rules: Sequence[AnyRule], labels: str) -> list[AnyRule]:
    found: list[AnyRule] = []
    for label in filter(None, (piece.strip() for piece in labels.split(","))):
        matching = [rule for rule in rules if rule.name == label or rule.code.startswith(label.upper())]
        if not matching:
            raise NoSuchRuleError(f"'{label}' is neither a rule's code, nor its beginning, nor its name")
        found += [rule for rule in matching if rule not in found]
    return sorted(found, key=lambda rule: rule.code)

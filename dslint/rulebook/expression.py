"""The language of rule conditions: a small subset of Python's expressions over facts.

An expression is checked when its rule is loaded: unknown facts, unknown functions and everything outside the
subset are errors with a column. It then is a tree of plain lists (so that it can be cached as JSON) and is
evaluated with Kleene's three-valued logic: `and`, `or`, `not` know True, False and Unknown; every other
operation on something Unknown is Unknown, and so is one that the values don't allow ("x" < 1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from dslint.runs.unknown import UNDECIDABLE, Unknown, either_reason

Tree = list[Any]


class Vocabulary(Protocol):
    """The names that an expression may use."""

    def is_fact(self, name: str) -> bool:
        """Whether a dotted name is a fact."""
        ...

    def near(self, name: str) -> str | None:
        """The fact with the most similar name, for the error message."""
        ...


class Facts(Protocol):
    """The values behind the names, for one run."""

    def value(self, name: str) -> Any:
        """The value of a fact, or Unknown."""
        ...

    def given(self, name: str) -> bool | Unknown:
        """Whether the key behind a fact stands in the file."""
        ...

    def written(self, name: str) -> Any:
        """The value as the file has it, before defaults and conversions; None where it is absent."""
        ...


class ExpressionError(ValueError):
    """An expression that the language doesn't have; `column` counts characters from 1."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(message)
        self.message = message
        self.column = column


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return _is_number(value) and value == int(value)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "len": len,
    "lower": lambda text: text.lower(),
    "min": min,
    "max": max,
    "is_bool": lambda value: isinstance(value, bool),
    "is_list": lambda value: isinstance(value, list),
    "is_number": _is_number,
    "is_section": lambda value: isinstance(value, dict),
    "is_text": lambda value: isinstance(value, str),
    "is_whole": _is_whole,
}
"""The functions of the language, beside `given(fact)` and `written(fact)`, which ask for the file's own text."""


def _numeric(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Arithmetic on numbers only, so that no rule can build huge texts or lists."""

    def guarded(left: Any, right: Any) -> Any:
        if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
            raise TypeError
        return operation(left, right)

    return guarded


OPERATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": _numeric(lambda a, b: a + b),
    "-": _numeric(lambda a, b: a - b),
    "*": _numeric(lambda a, b: a * b),
    "/": _numeric(lambda a, b: a / b),
    "//": _numeric(lambda a, b: a // b),
    "%": _numeric(lambda a, b: a % b),
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "in": lambda a, b: a in b,
    "not in": lambda a, b: a not in b,
    "is": lambda a, b: a is b,
    "is not": lambda a, b: a is not b,
}


def evaluate(tree: Tree, facts: Facts, item: Mapping[str, Any] | None = None) -> Any:
    """The value of an expression: a plain value or Unknown.

    Args:
        tree: what `parse` made of the text.
        facts: the run's values.
        item: in a rule with `each`, the fields of the list item at hand.
    """
    kind = tree[0]
    if kind == "constant":
        return tree[1]
    if kind == "fact":
        return facts.value(tree[1])
    if kind == "field":
        return (item or {}).get(tree[1], UNDECIDABLE)
    if kind == "given":
        return facts.given(tree[1])
    if kind == "written":
        return facts.written(tree[1])
    if kind == "not":
        inner = truth(evaluate(tree[1], facts, item))
        return inner if isinstance(inner, Unknown) else not inner
    if kind in ("and", "or"):
        return _all_or_any(tree[1], facts, item, decisive=kind == "or")
    values = [evaluate(part, facts, item) for part in tree[2]]
    return _apply(kind, tree[1], values)


def truth(value: Any) -> bool | Unknown:
    """Python's truth of a value; Unknown stays Unknown."""
    return value if isinstance(value, Unknown) else bool(value)


def _all_or_any(
    parts: list[Tree], facts: Facts, item: Mapping[str, Any] | None, *, decisive: bool
) -> bool | Unknown:
    """Kleene's `and` (decisive is False) and `or` (decisive is True)."""
    doubt: Unknown | None = None
    for part in parts:
        value = truth(evaluate(part, facts, item))
        if isinstance(value, Unknown):
            doubt = value if doubt is None else doubt | value
        elif value is decisive:
            return decisive
    return not decisive if doubt is None else doubt


def _apply(kind: str, name: str, values: list[Any]) -> Any:
    doubts = [value for value in values if isinstance(value, Unknown)]
    if doubts:
        return either_reason(doubts)
    if kind == "list":
        return values
    function = FUNCTIONS[name] if kind == "call" else OPERATIONS[name]
    try:
        return function(*values)
    except (TypeError, ValueError, AttributeError, ArithmeticError):
        return UNDECIDABLE

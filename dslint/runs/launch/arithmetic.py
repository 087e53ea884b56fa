"""The value of `$(( … ))`, where it is made of known whole numbers."""

from __future__ import annotations

import re
from collections.abc import Callable

_TOKEN = re.compile(r"\s*(?:(\d+)|\$?\{?([A-Za-z_]\w*)\}?|(\*\*|[-+*/%()]))")
_STRENGTH = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}
_LONGEST = 200  # characters
_LARGEST = 2**63


def arithmetic(text: str, value_of: Callable[[str], str | None]) -> str | None:
    """The number that an expression of `+ - * / %` gives; None where it can't be told.

    Args:
        text: the inside of `$(( … ))`.
        value_of: a variable's text, None where it is unknown.
    """
    if len(text) > _LONGEST:
        return None
    numbers: list[int] = []
    operators: list[str] = []
    position, expects_number = 0, True
    while position < len(text.rstrip()):
        match = _TOKEN.match(text, position)
        if match is None:
            return None
        position = match.end()
        digits, name, operator = match.groups()
        if digits or name:
            number = _number(digits or value_of(name))
            if number is None or not expects_number:
                return None
            numbers.append(number)
            expects_number = False
        elif operator == "(":
            operators.append(operator)
        elif operator == ")":
            while operators and operators[-1] != "(":
                if not _apply(numbers, operators.pop()):
                    return None
            if not operators:
                return None
            operators.pop()
        else:
            if expects_number or operator not in _STRENGTH:
                return None
            while operators and _STRENGTH.get(operators[-1], 0) >= _STRENGTH[operator]:
                if not _apply(numbers, operators.pop()):
                    return None
            operators.append(operator)
            expects_number = True
    while operators:
        if not _apply(numbers, operators.pop()):
            return None
    return str(numbers[0]) if len(numbers) == 1 else None


def _number(text: str | None) -> int | None:
    if text is None or not re.fullmatch(r"-?(?:0|[1-9][0-9]{0,17})", text):
        return None  # a leading zero would make it octal
    return int(text)


def _apply(numbers: list[int], operator: str) -> bool:
    if operator == "(" or len(numbers) < 2:
        return False
    right, left = numbers.pop(), numbers.pop()
    if operator in "/%" and right == 0:
        return False
    quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1) if operator in "/%" else 0
    results = {"+": left + right, "-": left - right, "*": left * right, "/": quotient}
    result = left - quotient * right if operator == "%" else results[operator]
    numbers.append(result)
    return abs(result) < _LARGEST

"""The conversions of DeepSpeed's typed sections: `"true"` is a boolean there, `"5"` and 2e8 are integers.

DeepSpeed's sections are pydantic models in lax mode (deepspeed/runtime/config_utils.py, DeepSpeedConfigModel).
Keys outside of them are taken as they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dslint.runs.unknown import UNDECIDABLE

_TRUE = {"1", "true", "t", "yes", "y", "on"}
_FALSE = {"0", "false", "f", "no", "n", "off"}


def coerce(value: Any, node: Mapping[str, Any]) -> Any:
    """The value that a typed section makes of what the file says; UNDECIDABLE where it refuses it."""
    converter = _CONVERTERS.get(node.get("x-type", ""))
    if converter is None or value is None:
        return value
    try:
        return converter(value)
    except (TypeError, ValueError, OverflowError):
        return UNDECIDABLE


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)) and value in (0, 1):
        return bool(value)
    if isinstance(value, str) and value.lower() in _TRUE | _FALSE:
        return value.lower() in _TRUE
    raise ValueError


def _integer(value: Any) -> int:
    number = int(value) if isinstance(value, (bool, int)) else float(value)
    if number != int(number):
        raise ValueError
    return int(number)


_CONVERTERS: Mapping[str, Callable[[Any], Any]] = {"bool": _boolean, "int": _integer, "float": float}

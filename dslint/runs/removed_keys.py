"""Keys of features that DeepSpeed took out, where the file has the feature switched off.

DeepSpeed refuses such a key whatever its value is (deepspeed/runtime/config.py, _reject_removed_config_keys),
so a block that did nothing must go all the same, and can go without a loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dslint.documents.document import Document
from dslint.runs.effective import span_of_entry
from dslint.runs.facts import Fact
from dslint.runs.item import Item
from dslint.runs.keys import NamePath


def _is_disabled(value: Any) -> bool:
    """A block with a switch `enabled`, which is off where it is absent."""
    return not value or (isinstance(value, dict) and value.get("enabled", False) is False)


def _compresses_nothing(value: Any) -> bool:
    """No technique of a `compression_training` block has its `shared_parameters.enabled` on."""
    if not isinstance(value, dict):
        return not value
    return not any(_switches(value))


def _switches(value: Mapping[str, Any]) -> Iterator[Any]:
    for name, child in value.items():
        if name == "enabled":
            yield child
        elif isinstance(child, dict):
            yield from _switches(child)


def _is_no_size(value: Any) -> bool:
    """The shard size of MiCS, which was off at its default of -1."""
    return value is None or (isinstance(value, int) and value <= 0)


SWITCHES: Mapping[NamePath, tuple[str, Callable[[Any], bool]]] = {
    ("nebula",): ("0.19.7", _is_disabled),
    ("compression_training",): ("0.19.7", _compresses_nothing),
    ("quantize_training",): ("0.19.7", _is_disabled),
    ("amp",): ("0.19.8", _is_disabled),
    ("sparse_gradients",): ("0.19.8", lambda value: not value),
    ("elasticity",): ("0.19.8", _is_disabled),
    ("curriculum_learning",): ("0.19.8", _is_disabled),
    ("progressive_layer_drop",): ("0.19.8", _is_disabled),
    ("zero_optimization", "mics_shard_size"): ("0.19.7", _is_no_size),
    ("zero_optimization", "mics_hierarchical_params_gather"): ("0.19.7", lambda value: not value),
    ("zero_optimization", "zeropp_loco_param"): ("0.19.8", lambda value: value is None),
}
"""For each key, the release that refuses it first, and whether a value meant "off" before."""


def switched_off(document: Document) -> tuple[Item, ...]:
    """The keys of removed features that are there and off."""
    return tuple(
        Item({"key": ".".join(path), "removed_in": removed_in}, document.source, span_of_entry(document, path))
        for path, (removed_in, is_off) in SWITCHES.items()
        if path in document.keys and not _has_placeholder(document, path) and is_off(_value(document.value, path))
    )


def names_switched_off(document: Document) -> list[str]:
    """The dotted names of these keys."""
    return [item.fields["key"] for item in switched_off(document)]


def _has_placeholder(document: Document, path: NamePath) -> bool:
    found = [placeholder.path or () for placeholder in document.placeholders]
    return any(place[: len(path)] == path[: len(place)] for place in found)


def _value(value: Any, path: NamePath) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


FACTS: Mapping[str, Fact] = {
    "removed.switched_off": Fact(
        "keys of removed features that are there and off",
        lambda facts: switched_off(facts.document),
        frozenset({"key", "removed_in"}),
    ),
    "removed.names_switched_off": Fact(
        "the dotted names of these keys", lambda facts: names_switched_off(facts.document)
    ),
}

"""Defaults that changed: where it is known for which release a config was written, it says what it left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dslint.fixes.modernise.subject import Plan, Subject, truth
from dslint.runs.auto_values import autos
from dslint.runs.keys import KeyTable, NamePath
from dslint.runs.schema import schema_for

_SWITCHED = {("bf16",): "enabled"}
"""Sections whose keys count only where a switch is on."""


def changed_defaults(subject: Subject) -> Iterator[Plan]:
    """A key that is absent and had another default in the release that the config was written for is written out.

    Such are gradient_clipping (0.0 until 0.19.2, then 1.0), pin_memory of the offload sections (false until 0.19.4),
    bf16.check_grad_overflow (false until 0.19.2) and steps_per_print (10 until 0.15.1); see schemas/key-history.json.
    """
    if subject.written_for is None:
        return
    before = KeyTable(schema_for(subject.written_for.key))
    for path in before.paths():
        node, now = before.node(path), subject.keys.node(path)
        if node is None or now is None or "default" not in node or "default" not in now:
            continue
        if node["default"] != now["default"] and _counts(subject, path):
            yield _written_out(subject, path, node["default"], now["default"])


def _counts(subject: Subject, path: NamePath) -> bool:
    """Whether the default of a key is what counts."""
    section = path[:-1]
    if section and not isinstance(subject.at(*section), dict):
        return False
    switch = _SWITCHED.get(section)
    is_off = switch is not None and truth(subject.at(*section, switch)) is False
    return not subject.has(*path) and not is_off and section != ("bfloat16",)


def _written_out(subject: Subject, path: NamePath, before: Any, now: Any) -> Plan:
    written_for = subject.written_for
    assert written_for is not None
    changed = f"the default was {_shown(before)} in DeepSpeed {written_for.text} and is {_shown(now)}"
    if path == ("gradient_clipping",) and any(autos(subject.value, subject.keys)):
        return Plan(
            "left", path, f"{changed}: with Hugging Face, let max_grad_norm of its arguments say what is meant"
        )
    return Plan("carried over", path, f"{changed}, so it is written out", (subject.set(*path, to=before),))


def _shown(value: Any) -> str:
    import json

    return json.dumps(value)

"""Defaults that changed: where it is known for which release a config was written, it says what it left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from dslint.fixes.modernise.subject import ZERO, Plan, Subject, truth
from dslint.runs.auto_values import autos
from dslint.runs.keys import KeyTable, NamePath, Schema
from dslint.runs.releases import Release, parse_release
from dslint.runs.schema import load_schema

_SWITCHED: Mapping[NamePath, str] = {("bf16",): "enabled", ("fp16",): "enabled"}
"""Sections whose keys count only where a switch is on."""

_BEFORE_HISTORY: Mapping[NamePath, tuple[str, Any]] = {
    # deepspeed/runtime/constants.py, FP16_INITIAL_SCALE_POWER_DEFAULT: 32, then 16
    ("fp16", "initial_scale_power"): ("0.7.7", 32),
    # deepspeed/runtime/zero/offload_constants.py, OFFLOAD_*_DEVICE_DEFAULT: cpu, then none
    (ZERO, "offload_optimizer", "device"): ("0.5.6", "cpu"),
    (ZERO, "offload_param", "device"): ("0.5.6", "cpu"),
}
"""Defaults older than schemas/key-history.json: the last release that had each, and what it was."""


def changed_defaults(subject: Subject) -> Iterator[Plan]:
    """A key that is absent and had another default in the release that the config was written for is written out.

    Such are gradient_clipping (0.0 until 0.19.2, then 1.0), pin_memory of the offload sections (false until
    0.19.4), bf16.check_grad_overflow (false until 0.19.2) and steps_per_print (10 until 0.15.1); see
    schemas/key-history.json.
    """
    if subject.written_for is None:
        return
    for path, node in _changing():
        before, now = _default(path, node, subject.written_for), _default(path, node, subject.target)
        if before != now and subject.keys.node(path) is not None and _counts(subject, path):
            yield _written_out(subject, path, before, now)


@cache
def _changing() -> tuple[tuple[NamePath, Schema], ...]:
    """The keys whose default changed at some time."""
    keys = KeyTable(load_schema())
    nodes = ((path, keys.node(path) or {}) for path in keys.paths())
    return tuple((path, node) for path, node in nodes if "x-default-before" in node or path in _BEFORE_HISTORY)


def _default(path: NamePath, node: Schema, release: Release) -> Any:
    """What counted in a release where the key was absent, also before there was the key."""
    last, value = _BEFORE_HISTORY.get(path, ("0.0", None))
    if release <= parse_release(last):
        return value
    for former in node.get("x-default-before", ()):
        if release <= parse_release(former["until"]):
            return former["default"]
    return node["default"]


def _counts(subject: Subject, path: NamePath) -> bool:
    """Whether the default of a key is what counts."""
    section = path[:-1]
    if section and not isinstance(subject.at(*section), dict):
        return False
    if path[-1] == "pin_memory" and subject.at(*section, "device") in (None, "none"):
        return False
    switch = _SWITCHED.get(section)
    is_off = switch is not None and truth(subject.at(*section, switch)) is False
    return not subject.has(*path) and not is_off and section != ("bfloat16",)


def _written_out(subject: Subject, path: NamePath, before: Any, now: Any) -> Plan:
    written_for = subject.written_for
    assert written_for is not None
    changed = f"the default was {_shown(before)} in DeepSpeed {written_for.text} and is {_shown(now)}"
    if path == ("gradient_clipping",) and any(autos(subject.value, subject.keys)):
        return Plan("left", path, f"{changed}: under Hugging Face, say in max_grad_norm what is meant")
    return Plan("carried over", path, f"{changed}, so it is written out", (subject.set(*path, to=before),))


def _shown(value: Any) -> str:
    import json

    return json.dumps(value)

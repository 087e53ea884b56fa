"""Keys that came after the target: a config that goes back can't have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dslint.fixes.modernise.subject import Plan, Subject
from dslint.runs.keys import KeyTable, NamePath
from dslint.runs.releases import parse_release
from dslint.runs.schema import load_schema

_SINCE_BEFORE_HISTORY = {
    # deepspeed/runtime/constants.py and zero/constants.py of the releases before those in schemas/key-history.json
    ("bf16",): "0.6.0",
    ("bfloat16",): "0.5.5",
    ("communication_data_type",): "0.5.8",
    ("zero_optimization", "offload_optimizer"): "0.3.15",
    ("zero_optimization", "offload_param"): "0.3.15",
    ("zero_optimization", "stage3_gather_16bit_weights_on_model_save"): "0.6.0",
    ("zero_optimization", "stage3_model_persistence_threshold"): "0.7.0",
}


def later_keys(subject: Subject) -> Iterator[Plan]:
    """Keys that the target doesn't have yet are left: a person must say whether the run can do without them."""
    newest = KeyTable(load_schema())
    if subject.target.key < parse_release(load_schema()["x-deepspeed"]).key:
        yield from _later_below(subject, newest, subject.value, ())


def _later_below(subject: Subject, newest: KeyTable, value: Mapping[str, Any], above: NamePath) -> Iterator[Plan]:
    for name, child in value.items():
        path = (*above, name)
        node = newest.node(path)
        if node is None:
            continue
        since = _SINCE_BEFORE_HISTORY.get(path) or node.get("x-since")
        if since is not None and not subject.is_from(since):
            yield Plan("left", path, f"DeepSpeed has this key from {since} on")
        elif isinstance(child, dict) and newest.section(node):
            yield from _later_below(subject, newest, child, path)

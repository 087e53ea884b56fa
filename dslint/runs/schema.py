"""What DeepSpeed accepts in a config, for the release at hand.

The schema in `schemas/` describes the newest known release; its own annotations (`x-since`, `x-until`, …) say
what was different before, and `schema_for` undoes that.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from dslint.runs.releases import parse_release

Json = dict[str, Any]
Numbers = tuple[int, ...]

# Annotations that describe the way to the newest release; the schema of one release needs none of them.
_PAST = ("x-default-before", "x-since", "x-gap", "x-until", "x-former", "x-advice", "x-unknown-raises-since")


@cache
def load_schema() -> Json:
    """The schema of the newest known release, read once; treat it as read-only."""
    import json

    from dslint.data import read_data

    schema: Json = json.loads(read_data("schemas", "ds_config.schema.json"))
    return schema


@cache
def schema_for(release: Numbers) -> Json:
    """The schema as it was for one release; treat it as read-only.

    Keys that came later are gone, removed keys that this release still reads have their former shape,
    defaults are those of the release, and sections that did not yet refuse unknown keys are open. What a key
    of today accepted in other ways back then is not known and stays as it is.
    """
    newest = load_schema()
    return newest if release >= parse_release(newest["x-deepspeed"]).key else _section(newest, release)


def _section(node: Json, release: Numbers) -> Json:
    """An object's schema for this release."""
    made = {key: value for key, value in node.items() if key not in _PAST}
    if _later(node.get("x-unknown-raises-since"), release):
        made["x-unknown-keys"] = "ignored"
        made["additionalProperties"] = True
    if "properties" in node:
        made["properties"] = {
            name: _key(child, release) for name, child in node["properties"].items() if _known(child, release)
        }
    return made


def _key(node: Json, release: Numbers) -> Json:
    """A key's schema for this release, which knows the key or refuses it as removed."""
    if "x-until" in node:
        if _later(node["x-until"], release, inclusive=True):
            former: Json = node["x-former"]
            return {"description": node["description"]} | former
        return dict(node)
    made = _section(node, release)
    for former in node.get("x-default-before", ()):
        if _later(former["until"], release, inclusive=True):
            made["default"] = former["default"]
            break
    return made


def _known(node: Json, release: Numbers) -> bool:
    """Whether this release has come to the key, and not in a time when it was away."""
    if _later(node.get("x-since"), release):
        return False
    first, last = node.get("x-gap", (None, None))
    return first is None or _later(first, release) or not _later(last, release, inclusive=True)


def _later(version: str | None, release: Numbers, inclusive: bool = False) -> bool:
    """Whether the version came after the release, or (if inclusive) was it."""
    if version is None:
        return False
    found = parse_release(version).key
    return found > release or (inclusive and found[: len(release)] == release)

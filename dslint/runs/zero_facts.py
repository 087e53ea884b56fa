"""Facts about ZeRO that more than one key decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dslint.runs.effective import span_of_entry
from dslint.runs.facts import Fact, Facts
from dslint.runs.item import Item
from dslint.runs.keys import NamePath
from dslint.runs.unknown import Unknown

ZERO: NamePath = ("zero_optimization",)
PREFIX = "stage3_"
"""Begins the full names of stage 3's keys; each has a second spelling without it."""

NO_PATHS = ("", "none", "None")
"""What people write where no NVMe path is meant."""


def _overlap_comm(facts: Facts) -> Any:
    """DeepSpeedZeroConfig.overlap_comm_valid: the default depends on the stage."""
    value = facts.value("config.zero_optimization.overlap_comm")
    if value is not None:
        return value
    stage = facts.value("config.zero_optimization.stage")
    return stage if isinstance(stage, Unknown) else stage == 3


def _double_spellings(facts: Facts) -> tuple[Item, ...]:
    """The keys without the prefix beside which the same key stands with it.

    A key with null counts as absent here, and an "auto" is dropped before the two could meet.
    """
    section = facts.config.written(ZERO)
    if not isinstance(section, dict):
        return ()
    return tuple(
        _double_spelling(facts, name, section)
        for name in section
        if _is_said(section, name)
        and _is_said(section, PREFIX + name)
        and facts.keys.node((*ZERO, name)) is not None
        and facts.keys.node((*ZERO, PREFIX + name)) is not None
    )


def _is_said(section: Mapping[str, Any], name: str) -> bool:
    return section.get(name) is not None and section[name] != "auto"


def _double_spelling(facts: Facts, name: str, section: Mapping[str, Any]) -> Item:
    document, full = facts.document, PREFIX + name
    other = span_of_entry(document, (*ZERO, full))
    values = (section[name], section[full])
    unknown = next((value for value in values if isinstance(value, Unknown)), None)
    is_same: bool | Unknown = values[0] == values[1] if unknown is None else unknown
    return Item(
        {"key": name, "other_key": full, "other": other, "same": is_same},
        facts.main_source,
        span_of_entry(document, (*ZERO, name)),
        ((other, "the same key with its prefix"),),
    )


def _idle_paths(facts: Facts) -> tuple[Item, ...]:
    """Paths on an NVMe disk in sections whose device is cpu."""
    found = []
    for section in ("offload_optimizer", "offload_param"):
        around = f"config.zero_optimization.{section}"
        path = facts.value(f"{around}.nvme_path")
        if facts.value(f"{around}.device") != "cpu" or not isinstance(path, str) or path in NO_PATHS:
            continue
        _, device = facts.place(f"{around}.device")
        place = facts.place(f"{around}.nvme_path")
        found.append(Item({"section": section, "path": path}, *place, ((device, "the device"),)))
    return tuple(found)


FACTS: Mapping[str, Fact] = {
    "zero_stage": Fact("ZeRO stage, 0 to 3", lambda facts: facts.value("config.zero_optimization.stage")),
    "overlap_comm": Fact("whether communication overlaps with computation", _overlap_comm),
    "zero.double_spellings": Fact(
        "keys of stage 3 without their prefix beside which `other` has it; `same` where both say one thing",
        _double_spellings,
        frozenset({"key", "other_key", "other", "same"}),
    ),
    "offload.idle_paths": Fact(
        "paths on an NVMe disk in a section that offloads to the CPU",
        _idle_paths,
        frozenset({"section", "path"}),
    ),
}

"""Facts about ZeRO that more than one key decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dslint.runs.facts import Fact, Facts
from dslint.runs.unknown import Unknown


def _overlap_comm(facts: Facts) -> Any:
    """DeepSpeedZeroConfig.overlap_comm_valid: the default depends on the stage."""
    value = facts.value("config.zero_optimization.overlap_comm")
    if value is not None:
        return value
    stage = facts.value("config.zero_optimization.stage")
    return stage if isinstance(stage, Unknown) else stage == 3


FACTS: Mapping[str, Fact] = {
    "zero_stage": Fact("ZeRO stage, 0 to 3", lambda facts: facts.value("config.zero_optimization.stage")),
    "overlap_comm": Fact("whether communication overlaps with computation", _overlap_comm),
}

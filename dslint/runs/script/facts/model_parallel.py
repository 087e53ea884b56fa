"""Over how many ranks a script spreads each copy of its model, where the config doesn't say it."""

from __future__ import annotations

from dslint.runs.facts import Facts
from dslint.runs.script.values import Thing
from dslint.runs.unknown import UNDECIDABLE, Unknown


def ranks_of_a_copy(facts: Facts) -> int | Unknown:
    """Stages of a pipeline; 1 without one. Unknown where a model-parallel unit decides (`mpu=`)."""
    assert facts.run.script is not None
    kinds = {call.result.kind for call in facts.run.script.calls if isinstance(call.result, Thing)}
    if "pipeline" in kinds or facts.framework == "pipeline":
        from dslint.runs.script.facts.pipeline import stages_of

        return stages_of(facts)
    for call in facts.run.script.calls:
        if call.name == "deepspeed.initialize" and any(call.has(place, name) for place, name in _UNITS):
            return UNDECIDABLE
    return 1


_UNITS = ((7, "mpu"), (None, "mesh_param"))
"""Arguments of deepspeed.initialize that say which ranks share a model."""

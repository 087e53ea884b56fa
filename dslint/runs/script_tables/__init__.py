"""The facts about scripts and launch commands; each subject has a table of its own."""

from __future__ import annotations

from collections.abc import Mapping

from dslint.runs.facts import Fact
from dslint.runs.script_tables import accelerate, base, launch, loop, resuming, sharding, trainer

FACTS: Mapping[str, Fact] = {
    **base.FACTS,
    **loop.FACTS,
    **sharding.FACTS,
    **resuming.FACTS,
    **trainer.FACTS,
    **accelerate.FACTS,
    **launch.FACTS,
}

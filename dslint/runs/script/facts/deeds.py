"""What all facts about scripts begin with."""

from __future__ import annotations

from dslint.runs.facts import Facts
from dslint.runs.script.reading import Deeds


def deeds_of(facts: Facts) -> Deeds:
    """What the script of a run does; for facts that are only worked out where there is one."""
    assert facts.run.script is not None
    return facts.run.script

"""Facts about the form of a script's text."""

from __future__ import annotations

import sys

from dslint.runs.facts import Facts
from dslint.runs.item import Item


def syntax_problems(facts: Facts) -> tuple[Item, ...]:
    """Why the script can't be parsed, by the Python that runs dslint (one item or none)."""
    assert facts.run.script is not None
    script = facts.run.script.script
    if script.problem is None:
        return ()
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    fields = {"message": script.problem.message, "text": version, "guard": None, "on_one_rank": False}
    return (Item({**fields, "in_loop": False, "is_called": True}, script.source, script.problem.span),)

"""Facts about the form of a script's text."""

from __future__ import annotations

import ast
import sys
from typing import Any

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.facts.here import Here
from dslint.runs.script.items import spot_fields
from dslint.runs.unknown import UNDECIDABLE

MOVED = {"transformers.deepspeed": "transformers.integrations.deepspeed"}
"""Modules that Transformers 5 has under another name only, with that name."""


def moved_imports(facts: Facts) -> tuple[Item, ...]:
    """Imports that fail under Transformers 5, and whose failure nothing catches."""
    assert facts.run.script is not None
    deeds = facts.run.script
    found = []
    for old, new in MOVED.items():
        made = deeds.imports.get(old)
        if made is not None and not made.is_tried and not made.spot.guards:
            source, span = deeds.script.place(made.node)
            fields = {**spot_fields(deeds.script, made.spot), "text": old, "old": old, "new": new}
            fields |= _moved(Here(deeds, made.node), old, new)
            found.append(Item(fields, source, span))
    return tuple(found)


def _moved(here: Here, old: str, new: str) -> dict[str, Any]:
    """`from OLD import …` from the new module; `import OLD` would have to change wherever its name is used."""
    node = here.node
    if not isinstance(node, ast.ImportFrom) or node.module != old or node.level:
        return {"statement": UNDECIDABLE, "moved": UNDECIDABLE}
    return {"statement": here.span(node), "moved": here.code(node).replace(old, new, 1)}


def syntax_problems(facts: Facts) -> tuple[Item, ...]:
    """Why the script can't be parsed, by the Python that runs dslint (one item or none)."""
    assert facts.run.script is not None
    script = facts.run.script.script
    if script.problem is None:
        return ()
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    fields = {"message": script.problem.message, "text": version, "guard": None, "on_one_rank": False}
    return (Item({**fields, "in_loop": False, "is_called": True}, script.source, script.problem.span),)

"""Where a loss is divided, so that a fix can take the division out."""

from __future__ import annotations

import ast
from typing import Any

from dslint.runs.script.facts.here import Here
from dslint.runs.script.values import Thing
from dslint.runs.unknown import UNDECIDABLE


def division_fields(here: Here, division: Thing) -> dict[str, Any]:
    """What stands in the way of an undivided loss.

    `division` is the place of `loss / steps` and `dividend` what comes instead of it; `idle` is the place of a
    statement that does nothing else (`loss = loss / steps`, `loss /= steps`), so that it can go as a whole.
    """
    node = division.node
    if isinstance(node, ast.AugAssign):
        return {"division": None, "dividend": UNDECIDABLE, "idle": here.span(node)}
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
        return {"division": UNDECIDABLE, "dividend": UNDECIDABLE, "idle": None}
    target = here.target(node)
    if target is not None and here.code(target) == here.code(node.left):
        return {"division": None, "dividend": UNDECIDABLE, "idle": here.span(here.statement(node))}
    return {"division": here.span(node), "dividend": _in_place(here, node), "idle": None}


def _in_place(here: Here, node: ast.BinOp) -> str:
    """The dividend, in brackets where something else is worked out with it."""
    above = next(here.above(node), None)
    is_alone = not isinstance(above, (ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Subscript))
    return here.code(node.left) if is_alone else here.operand(node.left)

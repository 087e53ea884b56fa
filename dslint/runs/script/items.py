"""Makes items of list facts from what a script does."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dslint.documents.python_reader import Script
from dslint.documents.source import Source, Span
from dslint.runs.item import Item
from dslint.runs.script.events import Call, Jump, Read, Spot, Store
from dslint.runs.script.guards import one_rank_guard
from dslint.runs.script.values import Named, Table, Thing, Value, is_known
from dslint.runs.unknown import UNDECIDABLE, Unknown, needs

THE_ARGUMENTS = "the script's arguments (a launch command)"


def item(
    script: Script,
    event: Call | Store | Read | Jump,
    fields: Mapping[str, Any],
    related: tuple[tuple[ast.AST, str], ...] = (),
    elsewhere: tuple[tuple[Source, Span, str], ...] = (),
) -> Item:
    """An item at the place of a step; `related` are further places of the script."""
    source, span = script.place(event.node)
    places = [(*script.place(node), text) for node, text in related]
    return Item(
        {**spot_fields(script, event.spot), **_texts(script, event.node), **fields},
        source,
        span,
        tuple((there, text) for other, there, text in places if other is source),
        (*(place for place in places if place[0] is not source), *elsewhere),
    )


def item_at(
    script: Script,
    event: Call | Store | Read | Jump,
    node: ast.AST,
    fields: Mapping[str, Any],
    related: tuple[tuple[ast.AST, str], ...] = (),
) -> Item:
    """An item at another node than the step's own: at one of its arguments."""
    found = item(script, event, fields, related)
    source, span = script.place(node)
    whole = {**found.fields, "span": script.owner(node).whole_span(node)}
    return replace(
        found, fields=whole, source=source, span=span, related=found.related if source is found.source else ()
    )


def _texts(script: Script, node: ast.AST) -> dict[str, Any]:
    return {"text": text_at(script, node), "span": script.owner(node).whole_span(node)}


def spot_fields(script: Script, spot: Spot) -> dict[str, Any]:
    """What surrounds a step."""
    guard = one_rank_guard(spot)
    return {
        "on_one_rank": guard is not None,
        "guard": None if guard is None else _guard_text(script, guard.node),
        "in_loop": bool(spot.loops),
        "is_called": spot.is_called,
    }


def text_at(script: Script, node: ast.AST) -> str:
    """The text of a node in one line; of a call, the function's."""
    part = node.func if isinstance(node, ast.Call) else node
    owner = script.owner(node)
    text = " ".join(owner.source.slice(owner.whole_span(part)).split())
    return text if len(text) <= 60 else text[:57] + "..."


def code_at(script: Script, node: ast.AST) -> str:
    """The whole text of a node, as the file has it."""
    owner = script.owner(node)
    return owner.source.slice(owner.whole_span(node))


def _guard_text(script: Script, node: ast.AST) -> str:
    test: ast.AST = getattr(node, "test", node)
    return text_at(script, test)


def plain(value: Value) -> Any:
    """A value as rules may use it: a constant, or Unknown."""
    if isinstance(value, (tuple, list)):
        parts = [plain(part) for part in value]
        return UNDECIDABLE if any(isinstance(part, Unknown) for part in parts) else parts
    if is_known(value):
        return value
    if isinstance(value, Table):
        return UNDECIDABLE
    if isinstance(value, Thing) and value.kind == "argument":
        return needs(THE_ARGUMENTS)
    return UNDECIDABLE


def what(value: Value) -> str | None:
    """The dotted name of something imported, or of what made a thing; None for everything else."""
    return value.name if isinstance(value, (Named, Thing)) else None

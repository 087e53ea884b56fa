"""Facts about batches that one rank may skip by what it alone sees."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.events import Call, Guard, Jump
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.items import item
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Thing, comes_from, origins

_CHECKS = frozenset(
    ["isnan", "isinf", "isfinite", "is_nan", "is_inf", "is_finite"],
)
_FORWARDS = ("engine.__call__", "engine.forward")
_MEETS = ("engine.backward", "engine.step", "accelerator.backward")
_AGREES = frozenset(
    [
        "all_gather",
        "all_gather_into_tensor",
        "all_gather_object",
        "all_reduce",
        "broadcast",
        "broadcast_object_list",
        "gather",
        "reduce",
        "gather_for_metrics",
    ]
)
"""Calls by which the ranks may have decided together."""

_CAUGHT = frozenset(
    ["Exception", "BaseException", "RuntimeError", "OutOfMemoryError", "ValueError", "AssertionError"]
)


def skipped_batches(facts: Facts) -> tuple[Item, ...]:
    """Jumps between forward and backward that a rank takes by itself: `why` is "loss" or "exception"."""
    deeds = deeds_of(facts)
    found: list[Item] = []
    seen: set[int] = set()
    for jump in deeds.jumps:
        if jump.kind not in ("continue", "break") or not jump.spot.loops or id(jump.node) in seen:
            continue
        why = _reason(deeds, jump)
        if why is None or _ranks_agree(deeds, jump):
            continue
        seen.add(id(jump.node))
        guard = jump.spot.guards[-1]
        place = getattr(guard.node, "test", None)
        related = ((place, "each rank decides by itself"),) if place is not None else ()
        found.append(item(deeds.script, jump, {"why": why}, related))
    return tuple(found)


def _reason(deeds: Deeds, jump: Jump) -> str | None:
    if not jump.spot.guards or not any(_meets_later(call, jump) for call in deeds.calls):
        return None
    guards = _inner_guards(jump)
    if any(_is_check_of_loss(guard) for guard in guards):
        return "loss"
    if any(_catches_step(deeds, guard, jump) for guard in guards):
        return "exception"
    return None


def _inner_guards(jump: Jump) -> list[Guard]:
    """The conditions inside of the innermost loop."""
    loop = jump.spot.loops[-1].node
    inside = set(map(id, ast.walk(loop)))
    return [guard for guard in jump.spot.guards if id(guard.node) in inside]


def _meets_later(call: Call, jump: Jump) -> bool:
    """Whether ranks meet in a call of the same loop, which the jump skips."""
    if call.name not in _MEETS or not call.spot.loops:
        return False
    return call.spot.loops[-1].node is jump.spot.loops[-1].node and call.spot.order > jump.spot.order


def _is_check_of_loss(guard: Guard) -> bool:
    """Whether a condition asks whether this rank's loss is a number."""
    parts = list(origins(guard.test, 60))
    has_check = any(
        part.call is not None
        and part.call.dotted.rpartition(".")[2] in _CHECKS
        and any(comes_from(value, "engine") for value in (part.call.receiver, *part.call.positional))
        for part in parts
    )
    return has_check and not any(_agrees(part) for part in parts)


def _agrees(thing: Thing) -> bool:
    return thing.call is not None and thing.call.dotted.rpartition(".")[2] in _AGREES


def _ranks_agree(deeds: Deeds, jump: Jump) -> bool:
    """Whether the ranks talk to one another in the same loop before the jump."""
    loop = jump.spot.loops[-1].node
    return any(
        call.dotted.rpartition(".")[2] in _AGREES
        and any(one.node is loop for one in call.spot.loops)
        and call.spot.order < jump.spot.order
        for call in deeds.calls
    )


def _catches_step(deeds: Deeds, guard: Guard, jump: Jump) -> bool:
    """Whether a condition is an exception that the pass through the engine raised on this rank."""
    handler = guard.node
    if not isinstance(handler, ast.ExceptHandler) or not _is_wide(handler):
        return False
    tree = deeds.script.owner(handler).tree
    body = next(_bodies(tree, handler), []) if tree is not None else []
    inside = {id(node) for statement in body for node in ast.walk(statement)}
    return any(id(call.node) in inside and call.name in _FORWARDS for call in deeds.calls)


def _bodies(tree: ast.AST, handler: ast.ExceptHandler) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and handler in node.handlers:
            yield node.body


def _is_wide(handler: ast.ExceptHandler) -> bool:
    """Whether a handler catches what a forward pass raises on one rank, say out of memory."""
    caught = handler.type
    kinds = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    names = {kind.attr if isinstance(kind, ast.Attribute) else getattr(kind, "id", None) for kind in kinds if kind}
    return caught is None or bool(names & _CAUGHT)

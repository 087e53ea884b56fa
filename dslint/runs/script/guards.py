"""Which conditions let only some of the ranks through."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dslint.runs.script.events import Guard, Spot
from dslint.runs.script.values import Thing, Value, is_known

MOST_PARTS = 50
"""Parts of a condition that are looked at."""

_RANK_NAMES = frozenset(
    ["rank", "local_rank", "global_rank", "process_index", "local_process_index", "proc_id", "world_rank"]
)
_RANK_CALLS = ("get_rank", "get_local_rank", "get_global_rank", "get_world_rank", "get_data_parallel_rank")
_RANK_VARIABLES = frozenset(["RANK", "LOCAL_RANK", "SLURM_PROCID", "SLURM_LOCALID", "OMPI_COMM_WORLD_RANK"])
_MAIN_NAMES = frozenset(
    [
        "is_main",
        "is_main_process",
        "is_local_main_process",
        "is_world_process_zero",
        "is_local_process_zero",
        "is_global_zero",
        "is_master",
        "is_master_process",
        "is_rank_0",
        "is_rank0",
        "is_rank_zero",
        "main_process",
        "master_process",
    ]
)


def one_rank_guard(spot: Spot) -> Guard | None:
    """The condition that lets only rank 0 (or one rank a node) come to this place; None if there is none."""
    return next((guard for guard in spot.guards if is_of_one_rank(guard.test, guard.holds)), None)


def is_of_one_rank(test: Value, holds: bool) -> bool:
    """Whether a condition that is true (or, where `holds` is False, false) means that this is the main rank."""
    if not isinstance(test, Thing):
        return False
    if test.kind == "not":
        return is_of_one_rank(test.inputs[0], not holds)
    if test.kind == "logic":
        parts = [is_of_one_rank(part, holds) for part in test.inputs]
        return any(parts) if (test.name == "and") is holds else all(parts)
    if test.kind == "comparison" and len(test.inputs) == 2:
        return _compares_rank(test, holds)
    if is_rank(test):
        return not holds
    return holds and _last_name(test) in _MAIN_NAMES


def _compares_rank(test: Thing, holds: bool) -> bool:
    left, right = test.inputs
    if is_rank(right) and not is_rank(left):
        left, right = right, left
    if is_rank(left) and is_known(right):
        if test.name in ("==", "!="):
            return isinstance(right, int) and right >= 0 and (test.name == "==") is holds
        if test.name in ("in", "not in"):
            return isinstance(right, (list, tuple)) and 0 in right and (test.name == "in") is holds
        return (test.name in ("<=", "<") and holds and right in (0, 1)) or (
            test.name in (">", ">=") and not holds and right in (0, 1)
        )
    if isinstance(right, bool) and test.name in ("==", "is") and isinstance(left, Thing):
        return is_of_one_rank(left, holds is right)
    return False


def is_rank(value: Value) -> bool:
    """Whether a value is the number of this rank, over all nodes or on this one."""
    if not isinstance(value, Thing):
        return False
    if value.kind == "environment":
        return value.name in _RANK_VARIABLES
    if value.name == "int" and value.inputs:
        return is_rank(value.inputs[0])
    if value.kind == "either":
        things = [part for part in value.inputs if isinstance(part, Thing)]
        return bool(things) and all(is_rank(part) for part in things)
    last = _last_name(value)
    return last in _RANK_CALLS or (last in _RANK_NAMES and value.kind != "operation")


def parts_of(test: Value) -> Iterator[Thing]:
    """What a condition is made of, without what the engines and models in it were made of."""
    waiting, seen = [test], 0
    while waiting and seen < MOST_PARTS:
        value = waiting.pop()
        if isinstance(value, (tuple, list)):
            waiting += value
        elif isinstance(value, Thing):
            seen += 1
            yield value
            if value.kind in ("attribute", "comparison", "logic", "not", "operation", "either", "element"):
                waiting += value.inputs


def _last_name(value: Thing) -> str:
    return value.name.rpartition(".")[2]


def text_of(guard: Guard, text: str) -> str:
    """The condition as the script has it."""
    node = getattr(guard.node, "test", guard.node)
    found = ast.get_source_segment(text, node) if isinstance(node, ast.AST) else None
    return " ".join((found or "this condition").split())

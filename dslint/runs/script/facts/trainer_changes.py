"""Changes of arguments and configs that come after these were copied."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from dslint.runs.auto_filling import FILLED_LATE, SOURCES
from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.config_use import config_uses
from dslint.runs.script.events import Store
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.here import Here
from dslint.runs.script.facts.trainer_objects import gives_config
from dslint.runs.script.items import item, plain
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Entry, Table
from dslint.runs.trainer_arguments import TrainerArguments
from dslint.runs.unknown import UNDECIDABLE

CHANGEABLE = frozenset(
    [
        "learning_rate",
        "max_grad_norm",
        "weight_decay",
        "adam_beta1",
        "adam_beta2",
        "adam_epsilon",
        "fp16",
        "bf16",
        "fp16_full_eval",
        "bf16_full_eval",
    ]
)
"""Arguments that only the config hands on, so that assigning them later has no effect. The batch sizes are not
among them: the Trainer itself goes by these as well."""


def changed_arguments(facts: Facts) -> tuple[Item, ...]:
    """Assignments to arguments that have been written into the config already."""
    arguments = facts.arguments
    if arguments is None or not gives_config(facts):
        return ()
    found = []
    for store in deeds_of(facts).stores:
        if (
            store.target is not arguments.thing
            or store.name not in CHANGEABLE
            or "__post_init__" in store.spot.functions
        ):
            continue
        paths = [path for path, names in SOURCES.items() if store.name in names and path not in FILLED_LATE]
        filled = [path for path in paths if facts.config.written(path) == "auto"]
        if not filled or not store.spot.is_called or plain(store.value) == _made_with(arguments, store.name):
            continue
        fields = {"name": store.name, "key": ".".join(filled[0]), **_assignment(deeds_of(facts), store)}
        elsewhere = (*facts.config.place(filled[0]), "was filled when the arguments were made")
        script = deeds_of(facts).script
        made = item(script, store, fields)
        inside = elsewhere[0] is made.source
        found.append(
            Item(
                made.fields,
                made.source,
                made.span,
                ((elsewhere[1], elsewhere[2]),) if inside else (),
                () if inside else (elsewhere,),
            )
        )
    return tuple(found)


def _assignment(deeds: Deeds, store: Store) -> dict[str, Any]:
    """What is assigned, where that doesn't depend on anything, and the statement that does nothing else."""
    here = Here(deeds, store.node)
    statement = here.statement()
    is_plain = isinstance(statement, ast.Assign) and statement.targets == [store.node]
    is_sure = is_plain and not store.spot.guards and not store.spot.loops
    return {
        "value": plain(store.value) if is_sure else UNDECIDABLE,
        "statement": here.span(statement) if is_sure else UNDECIDABLE,
    }


def _made_with(arguments: TrainerArguments, name: str) -> Any:
    return None if arguments.thing.call is None else arguments.value(name)


def changed_configs(facts: Facts) -> tuple[Item, ...]:
    """Assignments into a dict that was copied before, as a TrainingArguments or an HfDeepSpeedConfig took it."""
    deeds = deeds_of(facts)
    found = []
    for use in config_uses(deeds):
        if use.taker not in ("trainer", "hf_config") or not isinstance(use.value, Table):
            continue
        for path, entry in _entries(use.value, ()):
            node = entry.key_node
            if isinstance(node, ast.Subscript) and _comes_after(deeds.script.tree, use.call.node, node):
                step = Store(use.value, path[-1], entry.value, node, use.call.spot)
                fields = {"key": ".".join(path), "taker": use.call.dotted.rpartition(".")[2]}
                found.append(item(deeds.script, step, fields, ((use.call.node, "the dict is copied here"),)))
    return tuple(found)


def _entries(table: Table, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Entry]]:
    for key, entry in table.entries.items():
        path = (*above, str(key))
        yield path, entry
        if isinstance(entry.value, Table):
            yield from _entries(entry.value, path)


def _comes_after(tree: ast.Module | None, earlier: ast.AST, later: ast.AST) -> bool:
    """Whether two nodes stand in one block without a loop around it, one below the other."""
    if tree is None or getattr(later, "lineno", 0) <= (getattr(earlier, "end_lineno", None) or 0):
        return False
    around = _statements_around(tree, earlier)
    return (
        bool(around)
        and around[:-1] == _statements_around(tree, later)[:-1]
        and not any(isinstance(node, (ast.For, ast.While, ast.AsyncFor)) for node in around)
    )


def _statements_around(tree: ast.Module, wanted: ast.AST) -> list[ast.AST]:
    """The compound statements around a node, from the outside, and the statement that holds it."""
    line = getattr(wanted, "lineno", 0)
    path: list[ast.AST] = []
    body: list[ast.stmt] = tree.body
    while True:
        inner = [one for one in body if one.lineno <= line <= (one.end_lineno or one.lineno)]
        if not inner:
            return path
        path.append(inner[0])
        blocks = [getattr(inner[0], name, []) for name in ("body", "orelse", "finalbody")]
        body = [one for block in blocks if isinstance(block, list) for one in block if isinstance(one, ast.stmt)]

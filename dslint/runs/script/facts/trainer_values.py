"""What the config and the Trainer's arguments say about the same thing."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from dslint.runs.accelerate import IN_DEEPSPEED_TERMS, SECTION, config_file, section_of
from dslint.runs.auto_filling import BATCH_SIZES, COMPARED, FILLED, FILLED_LATE, SOURCES
from dslint.runs.effective import span_of_entry
from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.keys import NamePath
from dslint.runs.script.config_use import config_uses
from dslint.runs.script.events import Store
from dslint.runs.script.facts.accelerator import deeds_of
from dslint.runs.script.facts.trainer_objects import gives_config
from dslint.runs.script.items import item, plain
from dslint.runs.script.values import NOTHING, Entry, Table
from dslint.runs.trainer_arguments import TrainerArguments
from dslint.runs.unknown import UNDECIDABLE, Unknown

ADAM = ("adam", "adamw")
"""Optimizers of a config whose defaults UNHEARD speaks of, in lower case."""

UNHEARD: Mapping[str, tuple[NamePath, tuple[Any, ...]]] = {
    "learning_rate": (("optimizer", "params", "lr"), (0.001,)),
    "weight_decay": (("optimizer", "params", "weight_decay"), (0.0, 0.01)),
    "adam_beta1": (("optimizer", "params", "betas"), (0.9,)),
    "adam_beta2": (("optimizer", "params", "betas"), (0.999,)),
    "adam_epsilon": (("optimizer", "params", "eps"), (1e-8,)),
    "warmup_steps": (("scheduler", "params", "warmup_num_steps"), (0, 1000)),
    "warmup_ratio": (("scheduler", "params", "warmup_num_steps"), (0.0,)),
}
"""By argument, the key that hands it on, and the values with which its absence makes no difference."""

WARMUPS = ("warmup_steps", "warmup_ratio")
"""Arguments that ask for a warm-up."""

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


# --- compared values ---


def mismatches(facts: Facts) -> tuple[Item, ...]:
    """Values of the config that differ from what the Trainer's arguments say."""
    arguments = facts.arguments
    if arguments is None:
        return ()
    found = (_mismatch(facts, arguments, path) for path in COMPARED)
    return tuple(one for one in found if one is not None)


def _mismatch(facts: Facts, arguments: TrainerArguments, path: NamePath) -> Item | None:
    written = facts.config.written(path)
    if not _is_compared(facts, path, written) or _may_be_changed(facts, arguments, path):
        return None
    expected = _expected(facts, path, written)
    if isinstance(expected, Unknown) or written == expected:
        return None
    source, span = facts.config.place(path)
    places = [
        (*arguments.place(name), f"{name} is given here")
        for name in SOURCES[path]
        if arguments.given(name) is True
    ]
    places = [place for place in places if (place[0], place[1]) != (source, span)]
    fields = {
        "key": ".".join(path),
        "value": written,
        "argument": _said(facts, path),
        "expected": expected,
        "kind": _kind(path),
    }
    return Item(
        {**fields, **_NO_STEP},
        source,
        span,
        tuple((there, text) for other, there, text in places if other is source),
        tuple(place for place in places if place[0] is not source),
    )


def _expected(facts: Facts, path: NamePath, written: Any) -> Any:
    """What the Trainer compares a value with; no warm-up is 0 or 1, according to the release of Transformers."""
    expected = FILLED[path](facts)
    is_warmup = path == ("scheduler", "params", "warmup_num_steps")
    if isinstance(expected, Unknown) and is_warmup and written > 1 and without_warmup(facts) is True:
        return 0
    return expected


_NO_STEP = {"text": "", "guard": None, "on_one_rank": False, "in_loop": False, "is_called": True}
"""What an item says of its surroundings that stands in a config."""


def _is_compared(facts: Facts, path: NamePath, written: Any) -> bool:
    """Whether a value is one that the Trainer compares, and that no other rule tells of."""
    if written is None or isinstance(written, Unknown) or (isinstance(written, str) and written == "auto"):
        return False
    if path in BATCH_SIZES and facts.value("arguments.auto_find_batch_size") is not False:
        return False
    if path[-1] == "enabled":
        return isinstance(written, bool) and not _is_said_by_launcher(facts, "mixed_precision")
    if path[-1] == "betas":
        return isinstance(written, list)
    if path == ("train_batch_size",) and _is_told_as_product(facts, written):
        return False
    if _is_said_by_launcher(facts, path[-1]):
        return False
    if path[-1] == "total_num_steps" and isinstance(written, (int, float)) and written < 1:
        return False
    return isinstance(written, (int, float))  # texts are the business of other rules


def _is_said_by_launcher(facts: Facts, name: str) -> bool:
    """Whether a flag of `accelerate launch` counts more than what the Accelerate file of the run says."""
    launch = facts.run.launch
    is_inline = facts.run.accelerate is not None and facts.document.source is facts.run.accelerate.source
    return is_inline and launch is not None and name in launch.options


def _is_told_as_product(facts: Facts, written: Any) -> bool:
    """Whether the rules about the three batch sizes of a config (DS201, DS205, DS701) already fire."""
    micro, steps = (
        facts.value("config.train_micro_batch_size_per_gpu"),
        facts.value("config.gradient_accumulation_steps"),
    )
    names = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    given = [facts.given(f"config.{name}") is True for name in names]
    numbers = [value for value, is_there in zip((micro, steps), given, strict=True) if is_there]
    if not all(isinstance(number, int) and number > 0 for number in numbers) or not isinstance(written, int):
        return False
    if any(written % number for number in numbers):
        return True
    ranks = facts.value("ranks")
    has_auto = any(facts.config.written((name,)) == "auto" for name in names)
    return all(given) or (has_auto and isinstance(ranks, int) and written % ranks != 0)


def _may_be_changed(facts: Facts, arguments: TrainerArguments, path: NamePath) -> bool:
    """Whether the script assigns an argument before the comparison reads it."""
    reads_late = path in FILLED_LATE or not gives_config(facts)
    return reads_late and any(name in arguments.changed for name in SOURCES[path])


def _kind(path: NamePath) -> str:
    if path[-1] == "enabled":
        return "precision"
    return "product" if path == ("train_batch_size",) else "value"


def _said(facts: Facts, path: NamePath) -> str:
    """The arguments behind a value, in words."""
    names = SOURCES[path]
    if path == ("train_batch_size",):
        return " × ".join(names) + " × ranks"
    if path[-1] == "enabled":
        given = [name for name in names if facts.value(f"arguments.{name}") is True]
        return given[0] if given else names[0]
    return " and ".join(names)


# --- arguments that nothing hands on ---


def unheard(facts: Facts) -> tuple[Item, ...]:
    """Arguments of an optimizer or scheduler that the config makes, without the key that would hand them on."""
    arguments = facts.arguments
    if arguments is None:
        return ()
    return tuple(_unheard(facts, arguments))


def _unheard(facts: Facts, arguments: TrainerArguments) -> Iterator[Item]:
    for name, (path, harmless) in UNHEARD.items():
        value = facts.value(f"arguments.{name}")
        if arguments.given(name) is not True or not isinstance(value, (int, float)) or value in harmless:
            continue
        if facts.config.given(path) is not False or not _makes(facts, path[0]):
            continue
        if name == "learning_rate" and facts.config.given(("scheduler",)) is not False:
            continue  # the scheduler may well set the rate
        fields = {"name": name, "value": value, "key": ".".join(path), "section": path[0]}
        place = facts.config.place(path)
        source, span = arguments.place(name)
        other = (*place, "the key is missing here")
        related = ((other[1], other[2]),) if place[0] is source else ()
        yield Item({**fields, **_NO_STEP}, source, span, related, () if place[0] is source else (other,))


def _makes(facts: Facts, section: str) -> bool:
    """Whether the config makes an optimizer, or scheduler, of a kind whose defaults are known."""
    kind = facts.config.written((section, "type"))
    if not isinstance(kind, str):
        return False
    return kind.lower() in ADAM if section == "optimizer" else kind.startswith("Warmup")


def without_warmup(facts: Facts) -> bool | Unknown:
    """Whether the Trainer's arguments ask for no warm-up, by saying so or by saying nothing."""
    arguments = facts.arguments
    if arguments is None or any(map(arguments.sets_itself, WARMUPS)) or arguments.changed & set(WARMUPS):
        return UNDECIDABLE
    for name in WARMUPS:
        stated = arguments.stated(name)
        value = arguments.given(name) if stated is NOTHING else plain(stated)
        if isinstance(value, Unknown):
            return value
        if value:
            return False
    return True


# --- two configs ---


def settings_beside_config(facts: Facts) -> tuple[Item, ...]:
    """Settings of an Accelerate file that it refuses where TrainingArguments name a config."""
    document = facts.run.accelerate
    if document is None or not gives_config(facts) or config_file(document) is not None:
        return ()
    if document.value.get("distributed_type") != "DEEPSPEED":
        return ()
    section = section_of(document)
    paths: list[NamePath] = [(SECTION, name) for name in IN_DEEPSPEED_TERMS if section.get(name) is not None]
    if document.value.get("mixed_precision") is not None:
        paths.append(("mixed_precision",))
    return tuple(
        Item({"name": path[-1], **_NO_STEP}, document.source, span_of_entry(document, path)) for path in paths
    )


# --- changes that come too late ---


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
        fields = {"name": store.name, "key": ".".join(filled[0])}
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

"""Values that the config and the Trainer's arguments both give, and that the Trainer compares."""

from __future__ import annotations

from typing import Any

from dslint.runs.accelerate import IN_DEEPSPEED_TERMS, SECTION, config_file, section_of
from dslint.runs.auto_filling import BATCH_SIZES, COMPARED, FILLED, FILLED_LATE, SOURCES
from dslint.runs.effective import span_of_entry
from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.keys import NamePath
from dslint.runs.script.facts.trainer_objects import NO_STEP, gives_config
from dslint.runs.script.facts.unheard_arguments import without_warmup
from dslint.runs.trainer_arguments import TrainerArguments
from dslint.runs.unknown import Unknown


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
        {**fields, **NO_STEP},
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
        Item({"name": path[-1], **NO_STEP}, document.source, span_of_entry(document, path)) for path in paths
    )

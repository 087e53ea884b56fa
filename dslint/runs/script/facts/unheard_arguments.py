"""Arguments of the Trainer that no key of the config hands on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.keys import NamePath
from dslint.runs.script.facts.trainer_objects import NO_STEP
from dslint.runs.script.items import plain
from dslint.runs.script.values import NOTHING
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
        yield Item({**fields, **NO_STEP}, source, span, related, () if place[0] is source else (other,))


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

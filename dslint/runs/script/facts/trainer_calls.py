"""What a script asks of its Trainers."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from itertools import pairwise

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.events import Call, Guard
from dslint.runs.script.facts.accelerator import ASKS, asks
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.here import Here
from dslint.runs.script.facts.trainer_objects import (
    argument_span,
    is_taken_elsewhere,
    keyword_node,
    overrides,
    step_at,
    surely_comes_here,
    trainers,
)
from dslint.runs.script.guards import one_rank_guard, text_of
from dslint.runs.script.items import item
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Thing
from dslint.runs.unknown import UNDECIDABLE, Unknown

_MADE = frozenset(["optimizer", "scheduler"])

WITH_ALL_RANKS = {
    "trainer.train": False,
    "trainer.evaluate": False,
    "trainer.predict": False,
    "trainer.save_model": True,
    "trainer.push_to_hub": True,
}
"""Methods in which the ranks wait for one another; whether they do so under ZeRO stage 3 only."""


def dropped_optimizers(facts: Facts) -> tuple[Item, ...]:
    """Optimizers and schedulers that a script makes and hands to a Trainer."""
    found = []
    for call in trainers(facts):
        pair = call.argument(None, "optimizers")
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            continue
        made = [value.kind for value in pair if isinstance(value, Thing) and value.kind in _MADE]
        if made and not overrides(call.result, "__init__", "create_optimizer", "create_optimizer_and_scheduler"):
            step = step_at(call, keyword_node(call, "optimizers"))
            place = argument_span(Here(deeds_of(facts), call.node), call, "optimizers")
            found.append(item(deeds_of(facts).script, step, {"what": " and ".join(made), "argument": place}))
    return tuple(found)


def evaluations_without_training(facts: Facts) -> tuple[Item, ...]:
    """Evaluations of a Trainer that has surely not trained before."""
    deeds = deeds_of(facts)
    found = []
    for made in trainers(facts):
        trainer = made.result
        if is_taken_elsewhere(trainer, facts) or overrides(
            trainer, "evaluate", "predict", "evaluation_loop", "prediction_loop", "__init__"
        ):
            continue
        first = next((call for call in deeds.calls if call.receiver is trainer and call.dotted in _USES), None)
        if first is not None and first.dotted in ("evaluate", "predict") and surely_comes_here(first.spot):
            found.append(item(deeds.script, first, {"method": first.dotted}))
    return tuple(found)


_USES = frozenset(["train", "evaluate", "predict", "hyperparameter_search"])


def second_uses(facts: Facts) -> tuple[Item, ...]:
    """Trainings by a Trainer whose engine an earlier training, or an evaluation before any, has made."""
    deeds = deeds_of(facts)
    found = []
    for made in trainers(facts):
        trainer = made.result
        if made.has(None, "model_init") or not made.is_complete or _may_be_reset(trainer, facts):
            continue
        uses = [call for call in deeds.calls if call.receiver is trainer and call.dotted in _USES]
        sure = [call for call in uses if surely_comes_here(call.spot) and call.spot.loops == made.spot.loops]
        if len(sure) < 2 or sure[0] is not uses[0]:
            continue
        second = next((call for call in sure[1:] if call.dotted == "train"), None)
        if second is not None:
            related = ((sure[0].node, "makes the engine"),)
            found.append(item(deeds.script, second, {"after": sure[0].dotted}, related))
    return tuple(found)


def second_trainers(facts: Facts) -> tuple[Item, ...]:
    """Trainers that are made from the TrainingArguments of an earlier one."""
    deeds = deeds_of(facts)
    arguments = facts.arguments
    sharing = [
        call
        for call in trainers(facts)
        if arguments is not None and call.argument(1, "args") is arguments.thing and surely_comes_here(call.spot)
    ]
    found = []
    for first, second in pairwise(sharing):
        if not overrides(first.result, "__init__") and not overrides(second.result, "__init__"):
            fields = {"again": _arguments_again(deeds, arguments.thing.call, second) if arguments else UNDECIDABLE}
            found.append(item(deeds.script, second, fields, ((first.node, "has the same arguments"),)))
    return tuple(found)


def _arguments_again(deeds: Deeds, made: Call | None, second: Call) -> str | Unknown:
    """The statement that makes the TrainingArguments, where it can be said once more before a second Trainer."""
    here = Here(deeds, second.node)
    given = [keyword.value for keyword in second.node.keywords if keyword.arg == "args"] or second.node.args[1:2]
    target = None if made is None else here.target(made.node)
    if made is None or len(given) != 1 or not isinstance(given[0], ast.Name) or not isinstance(target, ast.Name):
        return UNDECIDABLE
    is_seen = given[0].id == target.id and here.function(made.node) is here.function()
    code = here.code(made.node)
    return f"{target.id} = {code}" if is_seen and "\n" not in code else UNDECIDABLE


def _may_be_reset(trainer: Thing, facts: Facts) -> bool:
    """Whether something other than the Trainer's stock methods may give it a new model to wrap."""
    own = ("__init__", "train", "evaluate", "predict", "_inner_training_loop", "_wrap_model", "evaluation_loop")
    is_changed = any(store.target is trainer for store in deeds_of(facts).stores)
    return is_changed or is_taken_elsewhere(trainer, facts) or overrides(trainer, *own)


def on_one_rank(facts: Facts) -> tuple[Item, ...]:
    """Calls of a Trainer that all ranks have to make, where only one rank comes."""
    deeds = deeds_of(facts)
    found = []
    for call in deeds.calls:
        guard = one_rank_guard(call.spot)
        if call.name not in WITH_ALL_RANKS or guard is None or not call.spot.is_called:
            continue
        if _asks_more(deeds, call, guard) or _has_counterpart(deeds, call, guard):
            continue
        if isinstance(call.receiver, Thing) and overrides(call.receiver, call.dotted):
            continue
        place = getattr(guard.node, "test", guard.node)
        here = Here(deeds, call.node)
        fields = {
            "api": call.name,
            "only_stage_3": WITH_ALL_RANKS[call.name],
            "asks_rank_only": _asks_rank_only(here, guard),
            "is_alone": _is_alone(here, call),
        }
        found.append(item(deeds.script, call, fields, ((place, "only one rank gets past this"),)))
    return tuple(found)


def _asks_more(deeds: Deeds, call: Call, guard: Guard) -> bool:
    """Whether the conditions around a call may ask for DeepSpeed, too: the names of ranks speak of a zero."""
    test = getattr(guard.node, "test", guard.node)
    words = _RANK_ZERO.sub("", text_of(guard, deeds.script.owner(test).source.text))
    others = replace(call.spot, guards=tuple(one for one in call.spot.guards if one is not guard))
    return ASKS.search(words) is not None or _PEERS.search(words) is not None or asks(deeds, others)


def _asks_rank_only(here: Here, guard: Guard) -> bool:
    """Whether the innermost `if` around a call asks for the rank, and for nothing else."""
    statement = here.statement()
    is_innermost = statement is not None and next(here.above(statement), None) is guard.node
    return is_innermost and guard.holds and isinstance(guard.test, Thing) and guard.test.kind != "logic"


def _is_alone(here: Here, call: Call) -> bool:
    """Whether a statement does nothing but call, and keep the result."""
    return here.is_statement() or here.target(call.node) is not None


def _has_counterpart(deeds: Deeds, call: Call, guard: Guard) -> bool:
    """Whether the other ranks make the same call where the condition is false."""
    return any(
        other.name == call.name and one.node is guard.node and one.holds is not guard.holds
        for other in deeds.calls
        for one in other.spot.guards
    )


_PEERS = re.compile(r"world_?size|num_processes|n_gpu")
_RANK_ZERO = re.compile(r"(process|rank|global|local|world)_?(is_)?zero")


def resumes(facts: Facts) -> tuple[Item, ...]:
    """Trainings that surely begin with a checkpoint: the newest (`where` is True), or the one in a folder."""
    deeds = deeds_of(facts)
    found = []
    for call in deeds.calls:
        where = call.argument(0, "resume_from_checkpoint") if call.name == "trainer.train" else None
        if where is True or (isinstance(where, str) and where):
            node = keyword_node(call, "resume_from_checkpoint")
            place = argument_span(Here(deeds, call.node), call, "resume_from_checkpoint", 0)
            found.append(item(deeds.script, step_at(call, node), {"where": where, "argument": place}))
    return tuple(found)

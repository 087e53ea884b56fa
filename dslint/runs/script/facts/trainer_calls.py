"""What a script asks of its Trainers."""

from __future__ import annotations

from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.events import Call
from dslint.runs.script.facts.accelerator import asks, deeds_of
from dslint.runs.script.facts.trainer_objects import (
    is_taken_elsewhere,
    keyword_node,
    overrides,
    step_at,
    surely_comes_here,
    trainers,
)
from dslint.runs.script.guards import one_rank_guard
from dslint.runs.script.items import item
from dslint.runs.script.values import Thing, Value

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
            found.append(item(deeds_of(facts).script, step, {"what": " and ".join(made)}))
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


def on_one_rank(facts: Facts) -> tuple[Item, ...]:
    """Calls of a Trainer that all ranks have to make, where only one rank comes."""
    deeds = deeds_of(facts)
    found = []
    for call in deeds.calls:
        guard = one_rank_guard(call.spot)
        if call.name not in WITH_ALL_RANKS or guard is None or asks(deeds, call.spot) or not call.spot.is_called:
            continue
        if isinstance(call.receiver, Thing) and overrides(call.receiver, call.dotted):
            continue
        place = getattr(guard.node, "test", guard.node)
        fields = {"api": call.name, "only_stage_3": WITH_ALL_RANKS[call.name]}
        found.append(item(deeds.script, call, fields, ((place, "only one rank gets past this"),)))
    return tuple(found)


def resumes(facts: Facts) -> tuple[Item, ...]:
    """Trainings that surely begin with a checkpoint: the newest (`where` is True), or the one in a folder."""
    deeds = deeds_of(facts)
    found = []
    for call in deeds.calls:
        where = call.argument(0, "resume_from_checkpoint") if call.name == "trainer.train" else None
        if where is True or (isinstance(where, str) and where):
            node = keyword_node(call, "resume_from_checkpoint")
            found.append(item(deeds.script, step_at(call, node), {"where": where}))
    return tuple(found)


# --- training steps of one's own ---


def own_backwards(facts: Facts) -> tuple[Item, ...]:
    """`loss.backward()` in a Trainer's own training_step, past the engine."""
    found = []
    for call in _in_training_steps(facts):
        is_of_tensor = isinstance(call.receiver, Thing) and call.receiver.kind in (
            "result",
            "operation",
            "attribute",
        )
        if call.dotted == "backward" and is_of_tensor and not call.positional and _has_no_guard_of_its_own(call):
            found.append(item(deeds_of(facts).script, call, {}))
    return tuple(found)


def twice_divided(facts: Facts) -> tuple[Item, ...]:
    """Losses that a Trainer's own training_step divides by the accumulation steps before the engine does so too."""
    found = []
    for call in _in_training_steps(facts):
        if call.dotted != "backward" or not call.is_complete or "scale_wrt_gas" in call.keywords:
            continue
        is_accelerators = isinstance(call.receiver, Thing) and call.receiver.kind == "accelerator"
        division = _division_by_steps(call.argument(0, "loss"))
        if (
            is_accelerators
            and division is not None
            and division.node is not None
            and _has_no_guard_of_its_own(call)
        ):
            related = ((division.node, "the loss is divided here"),)
            found.append(item(deeds_of(facts).script, call, {}, related))
    return tuple(found)


def _in_training_steps(facts: Facts) -> list[Call]:
    """The calls in training_step methods of those Trainers that the script makes."""
    steps = {}
    for made in trainers(facts):
        made_of = made.result.attributes.get("__class__")
        method = None if made_of is None else made_of.members.get("training_step")
        if method is not None and hasattr(method, "node"):
            steps[method.node] = method
    return [
        call
        for call in deeds_of(facts).calls
        if call.spot.functions[-1:] == ("training_step",) and any(_is_inside(call, node) for node in steps)
    ]


def _is_inside(call: Call, definition: object) -> bool:
    first, last = getattr(definition, "lineno", 0), getattr(definition, "end_lineno", 0)
    return first <= call.node.lineno <= last


def _has_no_guard_of_its_own(call: Call) -> bool:
    """Whether nothing in the method decides on the call: `if self.use_apex: … else: …` knows what it does."""
    return not call.spot.guards


def _division_by_steps(loss: Value) -> Thing | None:
    """The division by gradient_accumulation_steps that a loss was made by."""
    if not isinstance(loss, Thing) or loss.kind != "operation" or loss.name not in ("/", "*"):
        return None
    if loss.name == "/" and isinstance(loss.inputs[1], Thing) and _is_steps(loss.inputs[1]):
        return loss
    return next((found for part in loss.inputs if (found := _division_by_steps(part)) is not None), None)


def _is_steps(value: Thing) -> bool:
    return value.name.rpartition(".")[2] in ("gradient_accumulation_steps", "current_gradient_accumulation_steps")

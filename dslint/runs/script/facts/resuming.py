"""Checkpoints that a script surely loads, with what the names of their files tell of how they were saved."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dslint.documents.source import Span
from dslint.runs.facts import Facts
from dslint.runs.files import Place
from dslint.runs.item import Item
from dslint.runs.saved_checkpoint import LATEST, LATEST_UNIVERSAL, CheckpointFolder, SavedCheckpoint
from dslint.runs.script.config_use import node_of
from dslint.runs.script.events import Call, Spot
from dslint.runs.script.facts.accelerator import calls_of_accelerator, preparations
from dslint.runs.script.facts.before import is_changed_before, is_prepared, is_there
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.engine_use import calls_on, engines, initialize_of, is_absent, is_reached
from dslint.runs.script.facts.here import Here
from dslint.runs.script.facts.trainer_objects import overrides, surely_comes_here, trainers, uses_deepspeed
from dslint.runs.script.items import item, plain
from dslint.runs.script.values import Thing, origins
from dslint.runs.unknown import UNDECIDABLE, Unknown

TAG_OF_ACCELERATE = "pytorch_model"
"""The tag under which Accelerate saves and loads a script's only model (accelerate/accelerator.py, load_state)."""

STATE = "trainer_state.json"
"""The Trainer's own part of a checkpoint."""

NEWEST = re.compile(r"checkpoint-([0-9]{1,12})")
"""The Trainer's folders (transformers/trainer_utils.py, get_last_checkpoint)."""

LOADING = ("train", "_inner_training_loop", "_load_from_checkpoint", "_prepare_for_training")
"""Methods of a Trainer in which it comes to its checkpoint."""

DEFAULTS: Mapping[str, bool] = {"load_optimizer_states": True, "load_module_only": False}
"""Arguments of load_checkpoint that say what is loaded."""

SAVED = ("partitioned", "saved_ranks", "saved_bf16", "universal", "saved_at", "optimizer_kind", "way_out")
"""Fields of an item that tell how a checkpoint was saved."""

PLAIN = re.compile(r"[A-Za-z0-9_.-]+")
"""Tags that code can name without further ado."""

POSITIONS: Mapping[str, int] = {"load_optimizer_states": 3, "load_module_only": 5}


@dataclass(frozen=True)
class Load:
    """A call that loads a checkpoint.

    Attributes:
        call: the call.
        by: "engine", "trainer" or "accelerator".
        folder: the path that it names.
        tag: the tag that it names; None without one.
        spot: what surrounds the call, without conditions that surely hold.
    """

    call: Call
    by: str
    folder: str
    tag: str | None
    spot: Spot

    def option(self, name: str) -> Any:
        """An argument of load_checkpoint: a value, or Unknown."""
        position = POSITIONS[name] if self.by == "engine" else None
        return plain(self.call.argument(position, name)) if self.call.has(position, name) else DEFAULTS[name]


# --- loads of any checkpoint ---


def checkpoint_loads(facts: Facts) -> tuple[Item, ...]:
    """`engine.load_checkpoint` on the engines of a raw loop, whatever is in the folder."""
    found = []
    for engine in engines(facts):
        for call in calls_on(facts, engine, "load_checkpoint"):
            if call.is_complete and is_absent(call.argument(6, "custom_load_fn")):
                load = Load(call, "engine", "", None, call.spot)
                found.append(item(deeds_of(facts).script, call, _asked(facts, load)))
    return tuple(found)


def _asked(facts: Facts, load: Load) -> dict[str, Any]:
    """What a call asks for."""
    optimizer, module_only = load.option("load_optimizer_states"), load.option("load_module_only")
    return {
        "by": load.by,
        "wants_optimizer": optimizer,
        "module_only": module_only,
        "has_optimizer": load.by != "engine" or _has_optimizer(facts, load.call),
        "tag_is_given": load.call.has(1, "tag") if load.by == "engine" else load.tag is not None,
        "takes_keywords": load.by == "engine" and len(load.call.node.args) <= 2,
    }


def _has_optimizer(facts: Facts, call: Call) -> bool:
    """Whether the engine surely has an optimizer: the config's, or one that initialize is given."""
    if facts.value("config.optimizer.type"):
        return not isinstance(facts.value("config.optimizer.type"), Unknown)
    made = initialize_of(call.receiver) if isinstance(call.receiver, Thing) else None
    return made is not None and isinstance(made.argument(2, "optimizer"), Thing)


# --- loads of checkpoints that are there ---


def resumes(facts: Facts) -> tuple[Item, ...]:
    """Loads of checkpoints whose folders are there, and which nothing in the run seems to change before."""
    place = facts.run.place
    loads = [] if place is None else [*_of_engines(facts), *_of_trainers(facts), *_of_accelerators(facts)]
    if place is None or not loads or is_prepared(facts.run.launch):
        return ()
    return tuple(found for load in loads if (found := _resumed(facts, load, place)) is not None)


def _resumed(facts: Facts, load: Load, place: Place) -> Item | None:
    path = place.folder(load.folder)
    universal = facts.value("config.checkpoint.load_universal")
    has_own_store = facts.given("config.nebula") is not False
    if path is None or has_own_store or isinstance(universal, Unknown) or load.spot.is_tried or load.spot.loops:
        return None
    if is_changed_before(deeds_of(facts), load.call, load.folder):
        return None
    folder = CheckpointFolder(path, place)
    name = LATEST_UNIVERSAL if universal else LATEST
    latest = folder.named_by(name)
    if latest is None and name in folder.names:
        return None
    tag = load.tag or latest
    newest = next(iter(sorted(folder.checkpoints, key=_number)[-1:]), None)
    fields = {
        **_asked(facts, load),
        "folder": load.folder,
        "tag": tag,
        "tag_place": _place_of_tag(facts, load),
        "tag_from": "the call" if load.tag is not None else f"the file {name}",
        "latest": latest,
        "latest_is_there": latest is not None and folder.checkpoint(latest) is not None,
        "latest_universal": folder.named_by(LATEST_UNIVERSAL),
        "has_tag": tag is not None and folder.has(tag),
        "newest": newest if newest is None or PLAIN.fullmatch(newest) else UNDECIDABLE,
        "without_latest": _without_latest(load.folder, newest, is_tag=folder.own is not None),
        "is_tag_itself": folder.own is not None,
        "is_looked_at": _is_looked_at(facts, load.call),
        **_saved(facts, folder.checkpoint(tag) if tag is not None else None),
    }
    return item(deeds_of(facts).script, load.call, fields)


def _without_latest(folder: str, newest: str | None, *, is_tag: bool) -> str:
    """What a folder holds instead of a file that names the tag."""
    if is_tag:
        return f"{folder} is the folder of a checkpoint itself, and not the one above"
    return f"{folder} holds the checkpoint {newest}, but no file latest, and the call names no tag"


def _place_of_tag(facts: Facts, load: Load) -> Span | Unknown:
    """Where the call names the tag."""
    node = node_of(load.call, 1, "tag")
    is_own = load.by == "engine" and load.tag is not None and node is not load.call.node
    return Here(deeds_of(facts), load.call.node).span(node) if is_own else UNDECIDABLE


def _number(tag: str) -> tuple[int, str]:
    """Orders tags by the number at their end."""
    digits = re.search(r"[0-9]{1,18}$", tag)
    return (int(digits[0]) if digits else -1), tag


def _saved(facts: Facts, saved: SavedCheckpoint | None) -> dict[str, Any]:
    """How a checkpoint was saved; Unknown where there is none, or where its names don't tell."""
    if saved is None:
        return dict.fromkeys(SAVED, UNDECIDABLE)
    kind, way_out = _in_words(saved)
    return {
        "saved_at": "at ZeRO stage 3" if saved.is_partitioned else "below ZeRO stage 3",
        "optimizer_kind": kind,
        "way_out": way_out,
        "partitioned": saved.is_partitioned,
        "saved_ranks": _ranks_of(facts, saved),
        "saved_bf16": saved.is_bf16,
        "universal": saved.is_universal,
    }


def _in_words(saved: SavedCheckpoint) -> tuple[str, str]:
    """What can be said of the optimizer's states in a checkpoint, and how a run finds them."""
    if saved.is_universal:
        return "is a universal checkpoint", "Set checkpoint.load_universal"
    if saved.ranks == 0:
        kind = "has no optimizer states in files of their own, as one that was saved without ZeRO"
        return kind, "Resume at stage 0 if it was saved so"
    if saved.is_bf16:
        return "was saved in bf16, and this run is not in bf16", "Resume in bf16"
    return "was not saved in bf16, and this run is in bf16", "Resume in the precision in which it was saved"


def _ranks_of(facts: Facts, saved: SavedCheckpoint) -> int | Unknown:
    """The ranks that saved it; where several nodes take part, the disk of one may hold the parts of its own."""
    ranks = facts.value("ranks")
    if isinstance(ranks, Unknown) or saved.ranks in (0, ranks) or saved.ranks > ranks:
        return saved.ranks
    return saved.ranks if _nodes(facts) == 1 else UNDECIDABLE


def _nodes(facts: Facts) -> Any:
    """The number of nodes, one where nobody speaks of any."""
    if facts.run.launch is not None:
        return facts.value("launch.nodes")
    started_by = facts.run.accelerate
    return facts.run.options.nodes or (1 if started_by is None else started_by.value.get("num_machines", 1))


def _is_looked_at(facts: Facts, call: Call) -> bool:
    """Whether a later condition asks what was loaded."""
    parts = call.result if isinstance(call.result, tuple) else (call.result,)
    loaded = {id(part) for part in parts if isinstance(part, Thing)}
    deeds = deeds_of(facts)
    spots = [*(step.spot for step in deeds.calls), *(step.spot for step in deeds.jumps)]
    guards = {id(guard): guard for spot in spots for guard in spot.guards}
    return any(id(thing) in loaded for guard in guards.values() for thing in origins(guard.test, 60))


# --- who loads ---


def _without_met(facts: Facts, call: Call) -> Spot:
    """What surrounds a call, without the conditions that ask for files that are there."""
    place = facts.run.place
    guards = tuple(one for one in call.spot.guards if place is None or not is_there(one, place))
    return replace(call.spot, guards=guards)


def _of_engines(facts: Facts) -> Iterator[Load]:
    """`engine.load_checkpoint(folder, tag)` on the engine of a raw loop."""
    for engine in engines(facts):
        for call in calls_on(facts, engine, "load_checkpoint"):
            folder, tag, spot = call.argument(0, "load_dir"), call.argument(1, "tag"), _without_met(facts, call)
            is_known = isinstance(folder, str) and folder and (tag is None or (isinstance(tag, str) and tag))
            is_plain = call.is_complete and is_absent(call.argument(6, "custom_load_fn"))
            if is_known and is_plain and spot.is_called and is_reached(spot, initialize_of(engine).spot):
                yield Load(call, "engine", str(folder), tag and str(tag), spot)


def _of_trainers(facts: Facts) -> Iterator[Load]:
    """Trainings by a Trainer that go on with an engine's checkpoint."""
    for load, names in _resumed_trainings(facts):
        if LATEST in names and _has_engine(names):
            yield load


def trainings_without_engine(facts: Facts) -> tuple[Item, ...]:
    """Trainings that go on with a folder in which a Trainer without DeepSpeed has left its state."""
    deeds = deeds_of(facts)
    loads = [load for load, names in _resumed_trainings(facts) if STATE in names and not _has_engine(names)]
    return tuple(
        item(deeds.script, load.call, {"folder": load.folder})
        for load in loads
        if not load.spot.is_tried and not is_prepared(facts.run.launch)
        if not is_changed_before(deeds, load.call, load.folder)
    )


def _has_engine(names: frozenset[str]) -> bool:
    """Whether the Trainer finds an engine's part (deepspeed_load_checkpoint in its integrations/deepspeed.py)."""
    return any(name.startswith("global_step") for name in names)


def _resumed_trainings(facts: Facts) -> Iterator[tuple[Load, frozenset[str]]]:
    """`trainer.train(resume_from_checkpoint)` with a folder, or the newest one in output_dir; what is in it."""
    place = facts.run.place
    if uses_deepspeed(facts) is not True or len(trainers(facts)) != 1 or place is None:
        return
    if any(overrides(one.result, *LOADING) for one in trainers(facts)):
        return
    for call in deeds_of(facts).calls:
        where = call.argument(0, "resume_from_checkpoint") if call.name == "trainer.train" else None
        folder = _newest(facts, place) if where is True else where
        spot = _without_met(facts, call)
        path = place.folder(folder) if isinstance(folder, str) and folder else None
        if isinstance(folder, str) and path is not None and surely_comes_here(spot):
            yield Load(call, "trainer", folder, None, spot), place.names(path) or frozenset()


def _newest(facts: Facts, place: Place) -> str | None:
    """The newest of the folders that earlier trainings have left in the Trainer's output_dir."""
    output = facts.value("arguments.output_dir")
    path = place.folder(output) if isinstance(output, str) and output else None
    names = (place.names(path) if path is not None else None) or frozenset()
    numbers = {int(match[1]): name for name in names if (match := NEWEST.fullmatch(name))}
    return os.path.join(output, numbers[max(numbers)]) if numbers else None


def _of_accelerators(facts: Facts) -> Iterator[Load]:
    """`accelerator.load_state(folder)` of a script with one model."""
    if len([model for one in preparations(facts) for model in one.of("model")]) != 1:
        return
    for call in calls_of_accelerator(facts, "load_state"):
        folder, spot = call.argument(0, "input_dir"), _without_met(facts, call)
        if isinstance(folder, str) and folder and call.is_complete and surely_comes_here(spot):
            yield Load(call, "accelerator", str(folder), TAG_OF_ACCELERATE, spot)

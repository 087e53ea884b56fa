"""The Trainers of a script, their models, and whether they train with DeepSpeed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dslint.documents.source import Span
from dslint.runs.facts import Facts
from dslint.runs.script.events import Call, Spot, Store
from dslint.runs.script.facts.accelerator import is_started_with_deepspeed
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.here import Here
from dslint.runs.script.items import THE_ARGUMENTS
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import NOTHING, Class, Table, Thing, Value, origins
from dslint.runs.unknown import UNDECIDABLE, Unknown, needs

_SAME_MODEL = frozenset(
    ["to", "cuda", "cpu", "half", "bfloat16", "float", "train", "eval", "requires_grad_", "double", "xpu"]
)
_MAKES_ADAPTERS = ("peft", "add_adapter", "load_adapter", "get_peft", "lora")


NO_STEP = {"text": "", "guard": None, "on_one_rank": False, "in_loop": False, "is_called": True}
"""What an item says of its surroundings that isn't a step of the script."""


def uses_deepspeed(facts: Facts) -> bool | Unknown:
    """Whether the script's one TrainingArguments is given a config, or DeepSpeed is on by `accelerate launch`."""
    if facts.framework != "trainer" or facts.arguments is None:
        return UNDECIDABLE
    stated = facts.arguments.stated("deepspeed")
    if isinstance(stated, Table) or (isinstance(stated, str) and stated):
        return True
    if isinstance(stated, Thing) and stated.kind == "json":
        return True
    if isinstance(stated, Thing) and stated is not NOTHING:
        return needs(THE_ARGUMENTS) if stated.kind == "argument" else UNDECIDABLE
    if is_started_with_deepspeed(facts):
        return True
    value = facts.arguments.value("deepspeed")
    return value if isinstance(value, Unknown) else bool(value)


def gives_config(facts: Facts) -> bool:
    """Whether the TrainingArguments themselves surely name the config."""
    if facts.arguments is None:
        return False
    stated = facts.arguments.stated("deepspeed")
    return isinstance(stated, Table) or (isinstance(stated, str) and bool(stated))


def made(deeds: Deeds, kind: str) -> Iterator[Call]:
    """The calls that make things of a kind, in order."""
    for call in deeds.calls:
        if isinstance(call.result, Thing) and call.result.kind == kind and call.result.call is call:
            yield call


def trainers(facts: Facts) -> list[Call]:
    """The calls that make Trainers."""
    return list(made(deeds_of(facts), "trainer"))


def class_of(thing: Value) -> Class | None:
    """The class of the file that a thing is an object of."""
    found = thing.attributes.get("__class__") if isinstance(thing, Thing) else None
    return found if isinstance(found, Class) else None


def overrides(trainer: Thing, *methods: str) -> bool:
    """Whether a Trainer's class, being of this file, has one of these methods itself."""
    made_of = class_of(trainer)
    return made_of is not None and any(method in made_of.members for method in methods)


def model_itself(value: Value) -> Value:
    """The module behind `model.cuda()` and the like, which give the module itself."""
    while isinstance(value, Thing) and value.inputs and value.name.rpartition(".")[2] in _SAME_MODEL:
        value = value.inputs[0]
    return value


def trainer_of(model: Value, facts: Facts) -> Call | None:
    """The call that makes the Trainer of a model; None where the model is no Trainer's, or nobody can tell."""
    wanted = model_itself(model)
    if not isinstance(wanted, Thing):
        return None
    for call in trainers(facts):
        if wanted is call.result.attributes.get("model") or wanted is model_itself(call.argument(0, "model")):
            return call
    return None


def is_adapted(trainer: Call, facts: Facts) -> bool:
    """Whether a Trainer's model has, or may have, adapters: these are small, so ZeRO often keeps them whole."""
    if trainer.has(None, "peft_config") or not trainer.is_complete:
        return True
    model = trainer.argument(0, "model")
    if not isinstance(model_itself(model), Thing) or model_itself(model).kind != "model":
        return True
    names = [thing.name.lower() for thing in origins(model)]
    names += [
        call.name.lower() for call in deeds_of(facts).calls if model_itself(call.receiver) is model_itself(model)
    ]
    return any(word in name for name in names for word in _MAKES_ADAPTERS)


def step_at(call: Call, node: ast.AST) -> Store:
    """A step that stands for a part of a call, so that an item can be made of it."""
    return Store(call.receiver, call.dotted, None, node, call.spot)


def keyword_node(call: Call, name: str) -> ast.AST:
    """`name=value` in a call; the call itself where the argument isn't written so."""
    return next((keyword for keyword in call.node.keywords if keyword.arg == name), call.node)


def argument_span(here: Here, call: Call, name: str, position: int | None = None) -> Span | Unknown:
    """Where an argument is written in a call, by keyword or by position; Unknown where a dict brings it."""
    node: ast.AST | None = next((keyword for keyword in call.node.keywords if keyword.arg == name), None)
    before = call.node.args[: position + 1] if position is not None else []
    if node is None and position is not None and len(before) > position:
        node = None if any(isinstance(one, ast.Starred) for one in before) else before[position]
    return here.span(node)


def surely_comes_here(spot: Spot) -> bool:
    """Whether a run of the script takes a step without any condition."""
    return spot.is_called and not spot.guards and "__post_init__" not in spot.functions


def is_taken_elsewhere(thing: Thing, facts: Facts) -> bool:
    """Whether a thing is handed to some function of another file, which may do anything with it."""
    return any(
        value is thing and call.dotted not in ("print", "repr", "str", "type", "isinstance", "len", "hasattr")
        for call in deeds_of(facts).calls
        for value in (*call.positional, *call.keywords.values())
    )

"""The arguments of Hugging Face's Trainer in a run: from the script's constructor or from the launch command."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from dslint.documents.source import Source, Span
from dslint.runs.script.arguments import field_default
from dslint.runs.script.items import THE_ARGUMENTS, plain
from dslint.runs.script.known_apis import TRAINING_ARGUMENTS
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import NOTHING, Class, Thing, Value
from dslint.runs.unknown import UNDECIDABLE, Unknown, needs

DEFAULTS: Mapping[str, Any] = {
    "adam_beta1": 0.9,
    "adam_beta2": 0.999,
    "adam_epsilon": 1e-8,
    "auto_find_batch_size": False,
    "bf16": False,
    "bf16_full_eval": False,
    "deepspeed": None,
    "fp16": False,
    "fp16_full_eval": False,
    "gradient_accumulation_steps": 1,
    "gradient_checkpointing": False,
    "learning_rate": 5e-5,
    "load_best_model_at_end": False,
    "max_grad_norm": 1.0,
    "max_steps": -1,
    "num_train_epochs": 3.0,
    "per_device_train_batch_size": 8,
    "resume_from_checkpoint": None,
    "save_only_model": False,
    "save_on_each_node": False,
    "torch_compile": False,
    "weight_decay": 0.0,
}
"""Defaults that Transformers has had from 4.30 to 5 (transformers/training_args.py, TrainingArguments)."""

OTHER_IN_RELATIVES = frozenset(["bf16", "gradient_checkpointing", "learning_rate"])
"""Arguments for which TRL's classes, and others made from TrainingArguments, have defaults of their own."""

WITHOUT_DEFAULT = frozenset(
    [
        "fsdp",
        "gradient_checkpointing_kwargs",
        "lr_scheduler_type",
        "lr_scheduler_kwargs",
        "optim",
        "output_dir",
        "save_strategy",
        "eval_strategy",
        "warmup_ratio",
        "warmup_steps",
    ]
)
"""Further arguments that rules speak of, whose defaults differ between releases or are hard to write down."""

NAMES = frozenset(DEFAULTS) | WITHOUT_DEFAULT

OLD_NAMES: Mapping[str, str] = {
    "per_gpu_train_batch_size": "per_device_train_batch_size",
    "evaluation_strategy": "eval_strategy",
}
"""Names that older releases of Transformers take for the same thing."""


class TrainerArguments:
    """What a script and its command say for TrainingArguments.

    Attributes:
        thing: the object in the script.
    """

    def __init__(self, thing: Thing, deeds: Deeds, run: Any) -> None:
        self.thing = thing
        self._deeds = deeds
        self._run = run

    def value(self, name: str) -> Any:
        """The value of an argument as the object is made: as given, or its default; Unknown if neither is told."""
        if self.sets_itself(name) or (self.thing.call is None and name in self.changed):
            return UNDECIDABLE  # what constructor or command said is overwritten
        found = self.stated(name)
        if found is not NOTHING:
            return plain(found)
        if self._is_open:
            return needs(THE_ARGUMENTS)
        if self._has_other_name(name):
            return UNDECIDABLE
        is_inherited = self._package == "transformers" or (self._package and name not in OTHER_IN_RELATIVES)
        return DEFAULTS[name] if is_inherited and name in DEFAULTS else UNDECIDABLE

    def stated(self, name: str) -> Value:
        """What constructor, command or a class of the script say of an argument; NOTHING where they are silent."""
        call = self.thing.call
        if call is None:
            return self.thing.attributes.get(name, NOTHING)
        if name in call.keywords:
            return call.keywords[name]
        if name == "output_dir" and call.positional:
            return call.positional[0]
        made_of = self._class
        return field_default(made_of.fields[name]) if made_of is not None and name in made_of.fields else NOTHING

    def given(self, name: str) -> bool | Unknown:
        """Whether constructor or command give an argument; the default of a class of one's own doesn't count."""
        call = self.thing.call
        if call is not None:
            if call.has(0 if name == "output_dir" else None, name):
                return True
            return UNDECIDABLE if self._is_open else False
        value = self.thing.attributes.get(name)
        if value is not None and not (isinstance(value, Thing) and value.kind == "argument"):
            return self._has_word(name)
        return needs(THE_ARGUMENTS) if self._is_open else name in self.thing.attributes

    def place(self, name: str) -> tuple[Source, Span]:
        """Where an argument stands: in the constructor, in the command, or else the call that makes the object."""
        script = self._deeds.script
        if self.thing.call is not None:
            node: ast.AST = self.thing.call.node
            found = [keyword for keyword in self.thing.call.node.keywords if keyword.arg == name]
            return script.place(found[0] if found else self.thing.call.spread.get(name, node))
        word = self._word(name)
        if word is not None:
            return word
        return script.place(self.thing.node) if self.thing.node is not None else (script.source, Span(0, 0))

    @cached_property
    def changed(self) -> frozenset[str]:
        """The arguments that the script assigns after the object was made."""
        return frozenset(store.name for store in self._deeds.stores if store.target is self.thing)

    def _word(self, name: str) -> tuple[Source, Span] | None:
        """Where the launch command gives an argument, with its value."""
        launch = self._run.launch
        words = [] if launch is None else list(launch.arguments)
        for index, word in enumerate(words):
            text = word.text if isinstance(word.text, str) else word.prefix
            option, has_value, _ = text.partition("=")
            if not option.startswith("--") or option[2:].replace("-", "_") != name:
                continue
            following = words[index + 1] if index + 1 < len(words) and not has_value else None
            is_value = following is not None and not (
                isinstance(following.text, str) and following.text.startswith("--")
            )
            data = launch.source.data[word.span.end : following.span.start] if is_value and following else b"\n"
            end = following.span.end if following is not None and b"\n" not in data else word.span.end
            return launch.source, Span(word.span.start, end)
        return None

    def _has_word(self, name: str) -> bool:
        return self._word(name) is not None or self._class is None

    @property
    def _is_open(self) -> bool:
        """Whether more may be given than this file and the command show."""
        if self.thing.call is not None:
            return not self.thing.call.is_complete or len(self.thing.call.positional) > 1
        return "*" in self.thing.attributes

    def _has_other_name(self, name: str) -> bool:
        """Whether an older name, or on the command line the beginning of the name, may give the argument."""
        if self.thing.call is not None:
            given = self.thing.call.keywords
            return any(new == name and old in given for old, new in OLD_NAMES.items())
        return any(
            OLD_NAMES.get(other) == name or (len(other) > 2 and other != name and name.startswith(other))
            for other in self.thing.attributes
        )

    @property
    def _class(self) -> Class | None:
        """The class of the script that the object is made of."""
        made_of = self.thing.attributes.get("__class__")
        return made_of if isinstance(made_of, Class) else None

    def sets_itself(self, name: str) -> bool:
        """Whether a class of the script may assign an argument in its own methods."""
        made_of = self._class
        if made_of is None:
            return False
        nodes = list(ast.walk(made_of.node))
        assigned = {
            node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        }
        return name in assigned or any(isinstance(node, ast.Name) and node.id == "setattr" for node in nodes)

    @property
    def _package(self) -> str:
        made_of = self._class
        names = made_of.bases if made_of is not None else (self.thing.name,)
        found = [
            TRAINING_ARGUMENTS[last] for name in names if (last := name.rpartition(".")[2]) in TRAINING_ARGUMENTS
        ]
        return found[0] if found else ""


def find_trainer_arguments(deeds: Deeds | None, run: Any) -> TrainerArguments | None:
    """The arguments of the run's Trainer; None where there are none, or several."""
    if deeds is None:
        return None
    found: dict[int, Thing] = {}
    for call in deeds.calls:
        for thing in call.result if isinstance(call.result, tuple) else (call.result,):
            if isinstance(thing, Thing) and thing.kind == "training_args" and (thing.call in (None, call)):
                found[id(thing)] = thing
    with_config = [thing for thing in found.values() if "deepspeed" in thing.attributes]
    chosen = with_config if len(with_config) == 1 else list(found.values())
    return TrainerArguments(chosen[0], deeds, run) if len(chosen) == 1 else None

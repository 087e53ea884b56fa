"""The arguments of Hugging Face's Trainer in a run: from the script's constructor or from the launch command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dslint.documents.source import Source, Span
from dslint.runs.script.config_use import node_of
from dslint.runs.script.items import THE_ARGUMENTS, plain
from dslint.runs.script.known_apis import TRAINING_ARGUMENTS
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Class, Thing
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
        """The value of an argument: as given, else its default; Unknown where neither can be told."""
        if self.thing.call is not None and name in self.thing.call.keywords:
            return plain(self.thing.call.keywords[name])
        if self.thing.call is None and name in self.thing.attributes:
            return plain(self.thing.attributes[name])
        if self._is_open:
            return needs(THE_ARGUMENTS)
        if name in DEFAULTS and self._package == "transformers":
            return DEFAULTS[name]
        return UNDECIDABLE

    def given(self, name: str) -> bool | Unknown:
        """Whether an argument is given at all."""
        if self.thing.call is not None:
            if name in self.thing.call.keywords:
                return True
            return UNDECIDABLE if self._is_open else False
        value = self.thing.attributes.get(name)
        if value is not None and not (isinstance(value, Thing) and value.kind == "argument"):
            return True
        return needs(THE_ARGUMENTS) if self._is_open else name in self.thing.attributes

    def place(self, name: str) -> tuple[Source, Span]:
        """Where an argument stands: in the constructor, in the command, or else the call that makes the object."""
        script = self._deeds.script
        if self.thing.call is not None:
            return script.place(node_of(self.thing.call, None, name))
        launch = self._run.launch
        if launch is not None:
            for one in launch.arguments:
                text = one.text if isinstance(one.text, str) else ""
                if text.split("=")[0].lstrip("-").replace("-", "_") == name:
                    return launch.source, one.span
        return (script.source, Span(0, 0)) if self.thing.node is None else script.place(self.thing.node)

    @property
    def _is_open(self) -> bool:
        """Whether more may be given than this file and the command show."""
        if self.thing.call is not None:
            return not self.thing.call.is_complete
        return "*" in self.thing.attributes

    @property
    def _package(self) -> str:
        made_of = self.thing.attributes.get("__class__")
        names = made_of.bases if isinstance(made_of, Class) else (self.thing.name,)
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

"""Keeps a Hugging Face Trainer in a smoke run short and to itself."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Protocol


class Hearer(Protocol):
    """Who is told of what is seen: a Reporter, for one."""

    def tell(self, **seen: Any) -> None:
        """Something seen, by name."""


LENGTHS = ("total_num_steps", "warmup_num_steps")
"""Parameters of a config's scheduler that the Trainer holds against its own length."""


def keep_quiet(module: ModuleType) -> None:
    """Let no TrainingArguments send anything anywhere (transformers/training_args.py).

    `report_to` and `push_to_hub` are looked at by Trainer.__init__ (transformers/trainer.py), so they are emptied
    as soon as the arguments are made, subclasses' too, which all end in this `__post_init__`.
    """
    arguments: Any = module.TrainingArguments
    check = arguments.__post_init__

    @functools.wraps(check)
    def checked(self: Any) -> None:
        check(self)
        self.report_to = []
        self.push_to_hub = False

    arguments.__post_init__ = checked


def shorten_trainings(module: ModuleType, steps: int, patience: int, reporter: Hearer) -> None:
    """Let each Trainer train for `steps` (transformers/trainer.py, Trainer.train).

    The length is set when a training begins and not in TrainingArguments: only then it is known whether it goes on
    from a checkpoint, whose step count may be beyond `steps`, which would end it before its first one. The
    strategy to save is set there too, when the checks that relate it to evaluation are behind: a checkpoint in
    the user's own folder, after a step before the last, is not what a smoke run is asked for.
    """
    trainer: Any = module.Trainer
    train = trainer.train

    @functools.wraps(train)
    def shortened(self: Any, resume_from_checkpoint: Any = None, *args: Any, **kwargs: Any) -> Any:
        self.args.save_strategy = type(self.args.save_strategy)("no")
        if not resume_from_checkpoint and not _has_fixed_length(self.args):
            self.args.max_steps = steps + (patience if _is_fp16(self.args) else 0)
            reporter.tell(max_steps=self.args.max_steps)
        return train(self, resume_from_checkpoint, *args, **kwargs)

    trainer.train = shortened


def _config(arguments: Any) -> Mapping[str, Any]:
    """The DeepSpeed config of TrainingArguments, also where `accelerate launch` gave it."""
    plugin = getattr(arguments, "deepspeed_plugin", None)
    config = getattr(getattr(plugin, "hf_ds_config", None), "config", None)
    return config if isinstance(config, Mapping) else {}


def _has_fixed_length(arguments: Any) -> bool:
    """Whether the config names a number that the Trainer compares with one that follows from `max_steps`.

    transformers/integrations/deepspeed.py, HfTrainerDeepSpeedConfig.trainer_config_finalize, raises where they
    differ, which would be no fault of the user's.
    """
    scheduler = _config(arguments).get("scheduler")
    parameters = scheduler.get("params") if isinstance(scheduler, Mapping) else None
    return isinstance(parameters, Mapping) and any(
        isinstance(parameters.get(name), int | float) for name in LENGTHS
    )


def _is_fp16(arguments: Any) -> bool:
    """Whether first steps may overflow, so that it takes more of them to see one that counts."""
    section = _config(arguments).get("fp16")
    enabled = section.get("enabled") if isinstance(section, Mapping) else None
    return enabled is True or bool(getattr(arguments, "fp16", False))

"""What Hugging Face's Trainer writes over "auto" (HfTrainerDeepSpeedConfig in transformers/integrations)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dslint.runs.keys import NamePath
from dslint.runs.unknown import UNDECIDABLE, Unknown, product

if TYPE_CHECKING:
    from dslint.runs.facts import Facts

Filling = Callable[["Facts"], Any]


def _argument(name: str) -> Filling:
    return lambda facts: facts.value(f"arguments.{name}")


def _betas(facts: Facts) -> Any:
    betas = [facts.value("arguments.adam_beta1"), facts.value("arguments.adam_beta2")]
    return next((beta for beta in betas if isinstance(beta, Unknown)), betas)


def _train_batch(facts: Facts) -> Any:
    """All ranks count, those of a tensor-parallel group too (trainer_config_process)."""
    names = ("ranks", "arguments.per_device_train_batch_size", "arguments.gradient_accumulation_steps")
    return product(facts.value(name) for name in names)


def _either(first: str, second: str) -> Filling:
    def fill(facts: Facts) -> Any:
        values = [facts.value(f"arguments.{first}"), facts.value(f"arguments.{second}")]
        if any(value is True for value in values):
            return True
        return next((value for value in values if isinstance(value, Unknown)), False)

    return fill


def _steps(facts: Facts) -> Any:
    """The number of steps is known before the data only where max_steps says it."""
    steps = facts.value("arguments.max_steps")
    if isinstance(steps, Unknown):
        return steps
    return steps if isinstance(steps, int) and steps > 0 else UNDECIDABLE


def _warmup_steps(facts: Facts) -> Any:
    """A number of at least 1 counts steps in every release (TrainingArguments.get_warmup_steps).

    What nothing means, and what a fraction means, differs between releases.
    """
    steps = facts.value("arguments.warmup_steps")
    if isinstance(steps, Unknown):
        return steps
    is_count = isinstance(steps, (int, float)) and math.isfinite(steps) and steps >= 1
    return int(steps) if is_count and steps == int(steps) else UNDECIDABLE


FILLED: Mapping[NamePath, Filling] = {
    ("train_micro_batch_size_per_gpu",): _argument("per_device_train_batch_size"),
    ("gradient_accumulation_steps",): _argument("gradient_accumulation_steps"),
    ("train_batch_size",): _train_batch,
    ("gradient_clipping",): _argument("max_grad_norm"),
    ("optimizer", "params", "lr"): _argument("learning_rate"),
    ("optimizer", "params", "betas"): _betas,
    ("optimizer", "params", "eps"): _argument("adam_epsilon"),
    ("optimizer", "params", "weight_decay"): _argument("weight_decay"),
    ("scheduler", "params", "warmup_min_lr"): lambda facts: 0,
    ("scheduler", "params", "warmup_max_lr"): _argument("learning_rate"),
    ("scheduler", "params", "total_num_steps"): _steps,
    ("scheduler", "params", "warmup_num_steps"): _warmup_steps,
    ("fp16", "enabled"): _either("fp16", "fp16_full_eval"),
    ("bf16", "enabled"): _either("bf16", "bf16_full_eval"),
}
"""By key, what the Trainer fills in."""

COMPARED = tuple(path for path in FILLED if path[-1] != "warmup_min_lr")
"""The keys whose written value has to equal what would be filled in."""

SOURCES: Mapping[NamePath, tuple[str, ...]] = {
    ("train_micro_batch_size_per_gpu",): ("per_device_train_batch_size",),
    ("gradient_accumulation_steps",): ("gradient_accumulation_steps",),
    ("train_batch_size",): ("per_device_train_batch_size", "gradient_accumulation_steps"),
    ("gradient_clipping",): ("max_grad_norm",),
    ("optimizer", "params", "lr"): ("learning_rate",),
    ("optimizer", "params", "betas"): ("adam_beta1", "adam_beta2"),
    ("optimizer", "params", "eps"): ("adam_epsilon",),
    ("optimizer", "params", "weight_decay"): ("weight_decay",),
    ("scheduler", "params", "warmup_max_lr"): ("learning_rate",),
    ("scheduler", "params", "total_num_steps"): ("max_steps",),
    ("scheduler", "params", "warmup_num_steps"): ("warmup_steps",),
    ("fp16", "enabled"): ("fp16", "fp16_full_eval"),
    ("bf16", "enabled"): ("bf16", "bf16_full_eval"),
}
"""By compared key, the arguments that its value comes from."""

BATCH_SIZES = frozenset({("train_micro_batch_size_per_gpu",), ("train_batch_size",)})
"""Keys that are not compared where the Trainer looks for a batch size by itself (auto_find_batch_size)."""

FILLED_LATE = frozenset({("scheduler", "params", "total_num_steps"), ("scheduler", "params", "warmup_num_steps")})
"""Keys that are filled when the training begins (trainer_config_finalize); the others, with the arguments."""

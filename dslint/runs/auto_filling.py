"""What Hugging Face's Trainer writes over "auto".

Source: transformers/integrations/deepspeed.py, HfTrainerDeepSpeedConfig.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dslint.runs.keys import NamePath
from dslint.runs.unknown import UNDECIDABLE, Unknown

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
    factors = [
        facts.value("ranks"),
        facts.value("arguments.per_device_train_batch_size"),
        facts.value("arguments.gradient_accumulation_steps"),
    ]
    doubts = [factor for factor in factors if isinstance(factor, Unknown)]
    if doubts:
        return Unknown(frozenset().union(*(doubt.needs for doubt in doubts)))
    if not all(isinstance(factor, int) for factor in factors):
        return UNDECIDABLE
    return factors[0] * factors[1] * factors[2]


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
    return steps if isinstance(steps, int) and steps > 0 else UNDECIDABLE


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
    ("fp16", "enabled"): _either("fp16", "fp16_full_eval"),
    ("bf16", "enabled"): _either("bf16", "bf16_full_eval"),
}
"""By key, what the Trainer fills in."""

COMPARED = tuple(path for path in FILLED if path[-1] != "warmup_min_lr")
"""The keys whose written value has to equal what would be filled in."""

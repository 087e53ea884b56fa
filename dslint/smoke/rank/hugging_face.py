"""A DeepSpeed engine as Hugging Face's Trainer makes it: the Trainer itself, up to its first step."""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

PRELOADED = ("transformers.trainer", "transformers.integrations.deepspeed")
"""What the server imports before it forks; 1.5 s beyond torch and DeepSpeed, which each trial would pay else."""

TRAINING_STEPS = 100
"""The length of the training, which the Trainer gives to the schedulers, where the config doesn't fix it."""

QUIET: Mapping[str, Any] = {"report_to": "none", "disable_tqdm": True, "save_strategy": "no"}

_kept: list[
    Any
] = []  # Transformers refers weakly to the config, which thus lives as long as its TrainingArguments


class _ReadyError(BaseException):
    """The Trainer has its engine and would now train; no `except Exception` on the way shall catch it."""


# --- arguments that agree with a config ---


def agreeing_arguments(config: Mapping[str, Any], ranks: int, *, bf16: bool = True) -> dict[str, Any]:
    """Arguments for TrainingArguments by which the Trainer agrees with a config, as far as any can.

    What the config leaves open or gives in a form that no argument can have is left at a default, so that the
    Trainer itself says what it thinks of it.

    Args:
        config: a DeepSpeed config, as read from its file.
        ranks: number of ranks, by which a fixed train_batch_size is divided.
        bf16: whether the device knows bfloat16, in which the training is where the config doesn't say.
    """
    return {
        **_batch_arguments(config, ranks),
        **_optimizer_arguments(config),
        "warmup_steps": _whole(config, "scheduler.params.warmup_num_steps", at_least=0, default=_warmup(config)),
        "max_steps": _whole(config, "scheduler.params.total_num_steps", at_least=1, default=TRAINING_STEPS),
        **_precision_arguments(config, bf16),
    }


def _warmup(config: Mapping[str, Any]) -> int:
    """The shortest warm-up: none by the Trainer's own schedule, which would begin with a learning rate of 0."""
    return 1 if "scheduler" in config else 0


def _batch_arguments(config: Mapping[str, Any], ranks: int) -> dict[str, Any]:
    """Micro batch and accumulation; where one of them is open, what a fixed train_batch_size leaves for it."""
    total = _whole(config, "train_batch_size")
    micro = _whole(config, "train_micro_batch_size_per_gpu")
    steps = _whole(config, "gradient_accumulation_steps")
    if steps is None and _value(config, "gradient_accumulation_steps") is None:
        steps = 1  # Accelerate's value for an absent key (accelerate/utils/dataclasses.py, DeepSpeedPlugin)
    if micro is None:
        micro = _share(total, ranks * (steps or 1))
    if steps is None:
        steps = _share(total, ranks * micro)
    return {"per_device_train_batch_size": micro, "gradient_accumulation_steps": steps}


def _share(total: int | None, parts: int) -> int:
    return total // parts if total and parts > 0 and total % parts == 0 else 1


def _optimizer_arguments(config: Mapping[str, Any]) -> dict[str, Any]:
    peak = _number(config, "scheduler.params.warmup_max_lr", 5e-5)
    betas = _value(config, "optimizer.params.betas")
    known = isinstance(betas, list) and len(betas) == 2 and all(map(_is_number, betas))
    beta1, beta2 = betas if known else (0.9, 0.999)
    return {
        "max_grad_norm": _number(config, "gradient_clipping", 1.0),
        "learning_rate": _number(config, "optimizer.params.lr", peak),
        "adam_beta1": beta1,
        "adam_beta2": beta2,
        "adam_epsilon": _number(config, "optimizer.params.eps", 1e-8),
        "weight_decay": _number(config, "optimizer.params.weight_decay", 0.0),
    }


def _precision_arguments(config: Mapping[str, Any], bf16: bool) -> dict[str, bool]:
    fp16, wanted = (_value(config, f"{name}.enabled") for name in ("fp16", "bf16"))
    if _is_number(fp16) and fp16:
        return {"fp16": True, "bf16": False}
    if _is_number(wanted):  # a switch may be written as 0 or 1
        return {"fp16": False, "bf16": bool(wanted)}
    is_open = wanted is None or wanted == "auto"
    return {"fp16": is_open and not bf16 and fp16 == "auto", "bf16": bf16 if is_open else True}


def _value(config: Any, key: str) -> Any:
    """What stands at a dotted key; None if there is no such place."""
    for name in key.split("."):
        config = config.get(name) if isinstance(config, Mapping) else None
    return config


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _number(config: Mapping[str, Any], key: str, default: float) -> Any:
    value = _value(config, key)
    return value if _is_number(value) else default


def _whole(config: Mapping[str, Any], key: str, *, at_least: float = -math.inf, default: Any = None) -> Any:
    """A whole number, which may be written as 4.0 or true; the default for anything else or below the limit."""
    value = _value(config, key)
    if not _is_number(value) or (isinstance(value, float) and not value.is_integer()) or value < at_least:
        return default
    return int(value)


# --- the engine ---


def initialize(path: Path, model: Any, arguments: Mapping[str, Any]) -> Any:
    """The DeepSpeed engine that the Trainer trains with.

    This runs `Trainer.train()`, which builds TrainingArguments' config, Accelerate's plugin, the optimizer, the
    scheduler and the engine (transformers/trainer.py, Trainer._prepare_for_training), and leaves it where the
    training would begin. What is raised on the way comes out as it is.

    Args:
        path: the config's file.
        model: a module; its `config`, if it has one, is an object that takes further attributes and tells
            `hidden_size`, from which "auto" bucket sizes are computed.
        arguments: for TrainingArguments.
    """
    from transformers import Trainer, TrainingArguments

    simulate_gpu_for_accelerate()
    simulate_gpu_for_transformers()
    with tempfile.TemporaryDirectory() as folder:  # the Trainer makes its output folder
        args = TrainingArguments(**{"output_dir": folder, **QUIET, **arguments, "deepspeed": str(path)})
        trainer: Any = Trainer(model=model, args=args, train_dataset=[{}])
        trainer.callback_handler.on_train_begin = _stop
        with contextlib.suppress(_ReadyError):
            trainer.train()
    _kept.append(trainer)
    return trainer.model_wrapped


def _stop(*_: object) -> NoReturn:
    raise _ReadyError


# --- a machine without GPU ---


def simulate_gpu_for_accelerate() -> None:
    """On a machine without GPU, make Accelerate take the way it takes on one.

    Without a GPU it finds no backend, and every process believes that it is the only one (accelerate/state.py,
    PartialState). Here it is told that this process is a rank of several GPUs, in the group that has been joined
    or in one through gloo that it makes itself, and that its tensors live on the CPU.
    """
    import torch

    if torch.cuda.is_available():
        return
    import accelerate.state

    os.environ["ACCELERATE_TORCH_DEVICE"] = "cpu"
    state: Any = accelerate.state
    state.PartialState._prepare_backend = _group_of_gpus


def simulate_launched_gpu() -> None:
    """The same for a script of its own, which joins its group later, if its launcher told it its rank.

    Whether there is a group at all, and which, is decided where the script, or Accelerate, asks for one.
    """
    import torch

    if torch.cuda.is_available():
        return
    import accelerate.state
    from accelerate.utils import DistributedType

    os.environ["ACCELERATE_TORCH_DEVICE"] = "cpu"
    state: Any = accelerate.state
    prepare = state.PartialState._prepare_backend

    def chosen(self: Any, cpu: bool = False, sagemaker_dp: bool = False, backend: str | None = None) -> Any:
        if cpu or int(os.environ.get("LOCAL_RANK", -1)) == -1:
            return prepare(self, cpu, sagemaker_dp, backend)
        return backend or "gloo", DistributedType.MULTI_GPU

    state.PartialState._prepare_backend = chosen


def _group_of_gpus(*_: object, **__: object) -> tuple[str, Any]:
    import torch
    from accelerate.utils import DistributedType

    joined = torch.distributed.is_initialized()
    return torch.distributed.get_backend() if joined else "gloo", DistributedType.MULTI_GPU


def simulate_gpu_for_transformers() -> None:
    """On a machine without GPU, give TrainingArguments the answer of DeepSpeed's accelerator about bf16.

    That object may have been told what to say. fp16 is not asked about (transformers/training_args.py,
    TrainingArguments._validate_args).
    """
    import torch

    if torch.cuda.is_available():
        return
    import transformers.training_args
    from deepspeed.accelerator import get_accelerator

    training_args: Any = transformers.training_args
    training_args.is_torch_bf16_gpu_available = lambda: bool(get_accelerator().is_bf16_supported())

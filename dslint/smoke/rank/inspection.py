"""What a DeepSpeed engine tells of itself: its settings, its parameters, what it saved."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

Shapes = dict[str, list[int]]
"""The shape of each parameter, by name."""

ECHOES = frozenset({"_param_dict", "mesh_device", "optimizer_params", "scheduler_params"})
"""What a DeepSpeedConfig keeps as it was written; what became of it, the optimizer and the scheduler tell."""

MASTERS = (
    "fp32_partitioned_groups_flat",  # stage 3
    "single_partition_of_fp32_groups",  # stages 1 and 2
    "fp32_groups_flat_partition",  # bf16 without ZeRO (BF16_Optimizer)
    "fp32_groups_flat",  # fp16 without ZeRO
)
"""Where DeepSpeed's optimizers keep the parameters that are really stepped."""


def shapes_of(model: torch.nn.Module) -> Shapes:
    """The shapes of a model that is still whole."""
    return {name: list(parameter.shape) for name, parameter in model.named_parameters()}


def engine_facts(engine: Any) -> dict[str, Any]:
    """How the engine was set up, in plain data."""
    batch = (
        engine.train_batch_size(),
        engine.train_micro_batch_size_per_gpu(),
        engine.gradient_accumulation_steps(),
    )
    scheduler = engine.lr_scheduler
    return {
        "batch": [int(size) for size in batch],
        "zero_stage": int(engine.zero_optimization_stage()),
        "optimizer": type(engine.basic_optimizer).__name__,
        "wrapper": type(engine.optimizer).__name__,
        "dtype": str(next(engine.module.parameters()).dtype).removeprefix("torch."),
        "scheduler": None if scheduler is None else type(scheduler).__name__,
    }


def engine_settings(engine: Any) -> dict[str, Any]:
    """Every setting that the engine took from its config, flat, without the config as it was written."""
    config = {
        name: value for name, value in vars(engine._config).items() if not callable(value) and name not in ECHOES
    }
    groups = getattr(engine.basic_optimizer, "param_groups", [])
    told_groups = {
        number: {name: value for name, value in group.items() if name != "params"}
        for number, group in enumerate(groups)
    }
    settings = {
        "config": config,
        "optimizer": {**_simple_attributes(engine.basic_optimizer), "groups": told_groups},
        "scheduler": _simple_attributes(engine.lr_scheduler),
    }
    return {**dict(flat(plain(settings))), **engine_facts(engine), **_inner_facts(engine)}


def _simple_attributes(value: Any) -> dict[str, Any]:
    """An object's attributes that are numbers, texts, or lists of such."""
    simple = (bool, int, float, str)
    return {
        name: item
        for name, item in getattr(value, "__dict__", {}).items()
        if isinstance(item, simple)
        or (isinstance(item, list | tuple) and all(isinstance(each, simple) for each in item))
    }


def _inner_facts(engine: Any) -> dict[str, Any]:
    """What the engine made of its settings and doesn't tell by a method."""
    return {
        "masters": _type_of_masters(engine),
        "partitioned": _partitioned_parameters(engine),
        "placed": _devices(engine.module.parameters()),
        "sent_as": str(engine.communication_data_type).removeprefix("torch."),
        "secondary_ranks": _secondary_ranks(engine),
        "sequence_ranks": int(getattr(engine, "sequence_parallel_size", 1)),
        "timers": len(engine.engine_timers.micro_timers + engine.engine_timers.global_timers),
        "deepcompiled": bool(getattr(engine, "_deepcompile_active", False)),
        "built_partitioned": _transformers_partitions(),
    }


def _type_of_masters(engine: Any) -> str | None:
    """The type of the parameters that the optimizer steps; None if they can't be seen."""
    tensors = masters(engine)
    return str(tensors[0].dtype).removeprefix("torch.") if tensors else None


def _partitioned_parameters(engine: Any) -> int:
    """How many parameters aren't kept whole on every rank.

    Stage 3 marks those that are (deepspeed/runtime/zero/parameter_offload.py, mark_persistent_parameters).
    """
    return sum(getattr(each, "ds_persist", True) is False for each in engine.module.parameters())


def _secondary_ranks(engine: Any) -> int | None:
    """Over how many ranks ZeRO++ lays a secondary partition; None if there is none.

    Source: deepspeed/runtime/zero/partition_parameters.py, Init.
    """
    for each in engine.module.parameters():
        if getattr(each, "ds_zero_param_process_group", None) is not None:
            return int(each.ds_secondary_tensor_group_size)
    return None


def _devices(parameters: Iterable[torch.nn.Parameter]) -> list[str]:
    """The kinds of devices that parameters, or this rank's parts of them, lie on."""
    return sorted({getattr(each, "ds_tensor", each).device.type for each in parameters})


def _transformers_partitions() -> bool:
    """Whether Transformers would build a model in partitions (transformers/integrations/deepspeed.py)."""
    integration = sys.modules.get("transformers.integrations.deepspeed")
    return integration is not None and bool(integration.is_deepspeed_zero3_enabled())


def plain(value: Any) -> Any:
    """A value as data for JSON: models by their fields, everything else unknown by its text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(item) for item in value]
    if hasattr(value, "model_dump"):
        return plain(value.model_dump())
    if vars_of_its_own(value):
        return plain({name: item for name, item in vars(value).items() if not callable(item)})
    has_address = getattr(type(value), "__repr__", None) == object.__repr__
    return type(value).__name__ if has_address else str(value)


def vars_of_its_own(value: Any) -> bool:
    """Whether an object tells what it is by its attributes."""
    return bool(getattr(value, "__dict__", None)) and not isinstance(value, type)


def flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of plain data with their dotted paths."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from flat(item, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def follow_type(layer: torch.nn.Module) -> set[str]:
    """The types of what a layer gives out: a set that grows while it is used."""
    types: set[str] = set()

    def note(_module: torch.nn.Module, _inputs: Any, output: torch.Tensor) -> None:
        types.add(str(output.dtype).removeprefix("torch."))

    layer.register_forward_hook(note)
    return types


def traces(own: Iterable[Path]) -> dict[str, Any]:
    """What training leaves behind beside the engine.

    Args:
        own: the files in the working folder that DeepSpeed didn't write.
    """
    return {
        "recorded": _recorded_collectives(),
        "written": sorted(path.name for path in Path().iterdir() if path not in set(own)),
    }


def _recorded_collectives() -> bool:
    """Whether DeepSpeed's logger of collectives has recorded any (deepspeed/comm/comm.py, timed_op)."""
    from deepspeed.comm.comm import comms_logger

    return bool(comms_logger.comms_dict)


def masters(engine: Any) -> list[torch.Tensor] | None:
    """Copies of this rank's part of the parameters that the optimizer steps; None if they can't be seen."""
    for name in MASTERS:
        kept = getattr(engine.optimizer, name, None)
        if kept:
            tensors = [each for each in kept if isinstance(each, torch.Tensor) and each.numel()]
            return [each.detach().clone() for each in tensors] or None
    return local_parameters(engine)


def local_parameters(engine: Any) -> list[torch.Tensor] | None:
    """Copies of this rank's part of the module's parameters; None where they are swapped out."""
    tensors = [getattr(each, "ds_tensor", each.data) for each in engine.module.parameters()]
    copies = [each.detach().clone() for each in tensors if each.numel()]
    return copies or None


def differ(before: list[torch.Tensor] | None, after: list[torch.Tensor] | None) -> bool | None:
    """Whether any element differs; None if it can't be told."""
    if before is None or after is None or len(before) != len(after):
        return None
    return any(not torch.equal(old.cpu(), new.cpu()) for old, new in zip(before, after, strict=True))


def norm(tensors: list[torch.Tensor] | None) -> float | str | None:
    """The Euclidean norm of all elements to six digits: text if it isn't finite, None if they can't be seen."""
    if tensors is None:
        return None
    value = math.sqrt(sum(float(each.double().square().sum()) for each in tensors))
    return float(f"{value:.6g}") if math.isfinite(value) else str(value)


def compare_weights(file: Path, shapes: Shapes) -> dict[str, Any]:
    """What a file of weights holds, against the model's own shapes.

    Returns:
        `missing` names, `misshapen` ones with the shape found, the numbers of `tensors` and of `elements`.
    """
    saved = torch.load(file, map_location="cpu", weights_only=True)
    found = {name: list(tensor.shape) for name, tensor in saved.items() if isinstance(tensor, torch.Tensor)}
    return {
        "missing": [name for name in shapes if name not in found],
        "misshapen": {name: found[name] for name in shapes if name in found and found[name] != shapes[name]},
        "tensors": len(found),
        "elements": sum(tensor.numel() for tensor in saved.values() if isinstance(tensor, torch.Tensor)),
        "expected_elements": sum(math.prod(shape) for shape in shapes.values()),
    }


def rate(engine: Any) -> float | None:
    """The learning rate of the first parameter group; None if there is none to see."""
    groups = getattr(engine.optimizer, "param_groups", None) or [{}]
    with contextlib.suppress(TypeError, ValueError):
        return float(groups[0]["lr"]) if "lr" in groups[0] else None
    return None


def loss_scale(engine: Any) -> float | None:
    """The factor by which losses are scaled; None if there is none to see."""
    scale: Any = getattr(engine.optimizer, "cur_scale", getattr(engine.optimizer, "loss_scale", None))
    with contextlib.suppress(TypeError, ValueError):
        return float(scale)
    return None


def versions() -> dict[str, Any]:
    """What trains here."""
    import deepspeed

    cuda = torch.cuda.is_available()
    return {
        "device": torch.cuda.get_device_name() if cuda else "CPU",
        "torch": torch.__version__,
        "deepspeed": deepspeed.__version__,
        "python": ".".join(map(str, sys.version_info[:3])),
    }

"""The one try to save what a user's script trains, into a folder that is gone afterwards."""

from __future__ import annotations

import importlib
import math
import shutil
from pathlib import Path
from typing import Any

import torch

from dslint.smoke.rank.inspection import Shapes, compare_weights
from dslint.smoke.reporting import Reporter

WEIGHTS, CHECKPOINT, TAG = "weights", "checkpoint", "smoke"
CHECKPOINT_BYTES = 16
"""Bytes a parameter in a checkpoint: weights, and in 32 bits each a master copy and the two states of Adam."""
MARGIN = 2**30
"""Bytes that shall stay free."""


def whole_shapes(model: Any) -> Shapes:
    """The shapes of a model's parameters; those made under zero.Init are partitioned already.

    There `ds_shape` is the shape that the whole has (deepspeed/runtime/zero/partition_parameters.py).
    """
    if not isinstance(model, torch.nn.Module):
        return {}
    return {name: list(getattr(each, "ds_shape", each.shape)) for name, each in model.named_parameters()}


def try_saves(engine: Any, shapes: Shapes, folder: Path, reporter: Reporter) -> None:
    """Save the weights and compare them, then save a checkpoint; what there is no room for is left out, and told.

    All ranks come here after the same step, so that the collective operations of a save meet.
    """
    parameters = sum(math.prod(shape) for shape in shapes.values())
    room = _room(engine, folder)
    weights = parameters * _bytes_of_weights(engine)
    if _saves_weights(engine):
        if weights < room:
            _save_weights(engine, shapes, folder / WEIGHTS, reporter)
        else:
            reporter.tell(weights_skipped=_no_room(weights, room, folder))
        room -= weights
    checkpoint = parameters * CHECKPOINT_BYTES
    if checkpoint < room:
        engine.save_checkpoint(str(folder / CHECKPOINT), tag=TAG)
        reporter.tell(checkpoint_saved=True)
    else:
        reporter.tell(checkpoint_skipped=_no_room(checkpoint, room, folder))


def _room(engine: Any, folder: Path) -> int:
    """Bytes that may be written; the least that any rank sees, since all have to decide alike."""
    room = torch.tensor(
        [float(shutil.disk_usage(folder).free - MARGIN)], dtype=torch.float32, device=engine.device
    )
    if torch.distributed.is_initialized():
        torch.distributed.all_reduce(room, torch.distributed.ReduceOp.MIN)
    return int(room.item())


def _no_room(needed: int, room: int, folder: Path) -> str:
    return (
        f"it needs about {needed / 2**30:.1f} GiB, and {folder.parent} has {max(room, 0) / 2**30:.1f} GiB to spare"
    )


def _saves_weights(engine: Any) -> bool:
    """Whether the engine knows save_16bit_model; a pipeline's has no state_dict of the whole model for it."""
    return not hasattr(type(engine), "train_batch")


def _bytes_of_weights(engine: Any) -> int:
    first = next(engine.module.parameters(), None)
    return 4 if first is None else int(first.element_size())


def _save_weights(engine: Any, shapes: Shapes, folder: Path, reporter: Reporter) -> None:
    saved = engine.save_16bit_model(str(folder))
    file = folder / "pytorch_model.bin"
    written = file.exists()
    reporter.tell(saved=bool(saved) if saved is not None else written)
    if not written or engine.global_rank != 0:
        return
    reason = _why_not_read(engine, file)
    if reason:
        reporter.tell(weights_skipped=reason)
    else:
        reporter.tell(weights=compare_weights(file, shapes))


def _why_not_read(engine: Any, file: Path) -> str | None:
    """Why saved weights can't be compared with the model's shapes, if they can't."""
    psutil: Any = importlib.import_module("psutil")  # DeepSpeed requires it; it ships no types
    if int(getattr(engine, "mp_world_size", 1)) > 1:
        return "each rank has only its part of the tensors"
    if file.stat().st_size > psutil.virtual_memory().available // 2:
        return "they would take more than half of the free memory"
    return None

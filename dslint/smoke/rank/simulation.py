"""One process as a rank of any number of ranks, on a device that answers as it is asked to."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any


def set_rank_environment(
    *, gpus: int, ranks: int, rank: int = 0, launcher: str = "torchrun", port: int = 29500
) -> None:
    """What a launcher sets for a rank; DeepSpeed's own tells the node too (deepspeed/launcher/launch.py, main).

    Args:
        gpus: ranks a node.
        ranks: number of ranks.
        rank: which one of them this process is.
        launcher: "torchrun" or "deepspeed".
        port: where the ranks meet on this machine.
    """
    if launcher == "deepspeed":
        os.environ.update(CROSS_RANK=str(rank // gpus), CROSS_SIZE=str(ranks // gpus))
    os.environ.update(
        RANK=str(rank),
        WORLD_SIZE=str(ranks),
        LOCAL_RANK=str(rank % gpus),
        LOCAL_WORLD_SIZE=str(gpus),
        LOCAL_SIZE=str(gpus),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
    )


def share_gpus() -> None:
    """Let this rank, whose environment is set, share its GPU with others, through gloo: NCCL refuses that."""
    import torch

    from dslint.smoke.rank.process_groups import groups_through_gloo

    groups_through_gloo()
    here = torch.cuda.device_count()
    if not here:
        return
    os.environ["LOCAL_RANK"] = str(int(os.environ.get("LOCAL_RANK", "0")) % here)
    choose = torch.cuda.set_device
    torch.cuda.set_device = lambda device: choose(device % here if isinstance(device, int) else device)


def join_fake_group(ranks: int) -> None:
    """Make this process rank 0 of `ranks`.

    Partition sizes and config checks are real, sums are not: in torch's fake backend a gather repeats the own part
    and a reduction leaves it as it is (torch/csrc/distributed/c10d/FakeProcessGroup.hpp).
    """
    import torch
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())


def without_shared_memory_collective() -> None:
    """Leave out the CPU's collective over shared memory (deepspeed/comm/torch.py, build_shm_op).

    It needs a build of minutes, real peers, and leaves a file in /dev/shm; a GPU has nothing like it.
    """
    # Not `import deepspeed.comm.torch`: that name is the real torch there.
    backend: Any = importlib.import_module("deepspeed.comm.torch")
    if hasattr(backend, "build_shm_op"):
        backend.build_shm_op = lambda: None


def skip_check_of_peers(engine: Any) -> None:
    """Leave out AutoTP's check that all ranks of its group got the same batch.

    It counts the ranks by a sum, which a fake group doesn't make (deepspeed/runtime/engine.py,
    DeepSpeedEngine._configure_tensor_parallel_states).
    """
    check = getattr(engine, "first_dataloader_check", None)
    if check is not None:
        check.remove()


def set_abilities(*, fp16: bool | None, bf16: bool | None) -> None:
    """Make DeepSpeed's accelerator answer like a device with, or without, these types; None leaves the truth."""
    import torch
    from deepspeed.accelerator import get_accelerator

    accelerator: Any = get_accelerator()
    fp16 = bool(accelerator.is_fp16_supported()) if fp16 is None else fp16
    bf16 = bool(accelerator.is_bf16_supported()) if bf16 is None else bf16
    types = [torch.float, *([torch.half] if fp16 else []), *([torch.bfloat16] if bf16 else [])]
    accelerator.is_fp16_supported = lambda: fp16
    accelerator.is_bf16_supported = lambda: bf16
    accelerator.supported_dtypes = lambda: list(types)


def hide_packages(names: tuple[str, ...]) -> None:
    """Make packages seem not to be installed."""
    sys.modules.update(dict.fromkeys(names))  # type: ignore[arg-type]  # None stops an import

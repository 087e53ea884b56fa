"""The environment of the processes that train."""

from __future__ import annotations

import os
from pathlib import Path


class SmokeError(Exception):
    """Smoke can't do its job here; the message says why and what to do."""


def training_environment(python: str, device: str, folder: str) -> dict[str, str]:
    """The environment for a process that runs dslint's own trials.

    What the caller has set wins, but for the paths to ninja and to dslint, and for what keeps it on the CPU.

    Args:
        python: the interpreter that will run.
        device: "cpu" to leave GPUs alone, otherwise "cuda" or "auto".
        folder: where temporary files go, so that they vanish with it.
    """
    defaults = {
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",  # asking for CUDA must not start it before a fork
        "OMP_NUM_THREADS": "1",
        "NCCL_NVLS_ENABLE": "0",  # NVLink multicast can hang a shared host, and two steps need no speed
        "KINETO_LOG_LEVEL": "5",  # else torch's profiler, which counts memory on the CPU, prints when it starts
        "MAX_JOBS": str(os.cpu_count() or 1),
        "WANDB_MODE": "disabled",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    set_here = {
        "TMPDIR": folder,
        # DeepSpeed runs ninja by its name (torch/utils/cpp_extension.py), which lies beside the interpreter.
        "PATH": _joined(str(Path(python).parent), os.environ.get("PATH", os.defpath)),
        "PYTHONPATH": _joined(home_of_dslint(), os.environ.get("PYTHONPATH", "")),
    }
    if device == "cpu":
        set_here |= {"DS_ACCELERATOR": "cpu", "CUDA_VISIBLE_DEVICES": ""}
    return {**defaults, **os.environ, **set_here}


def home_of_dslint() -> str:
    """The folder that holds the package, for an interpreter that doesn't have it installed."""
    return str(Path(__file__).parents[2])


def _joined(first: str, rest: str) -> str:
    return os.pathsep.join(filter(None, [first, rest]))

"""Machines that nothing is wrong with; tests replace what they are about."""

from __future__ import annotations

import pytest

from dslint.doctor.environment import (
    DeepSpeed,
    Driver,
    Environment,
    Gpu,
    Interpreter,
    Limits,
    Op,
    OpsFolder,
    Requirement,
    Toolchain,
    Torch,
)

GIB = 1024**3
PYTHON = Interpreter(
    path="/env/bin/python",
    version="3.11.7",
    scripts="/env/bin",
    versions={
        "torch": "2.11.0+cu130",
        "deepspeed": "0.19.8",
        "transformers": "5.17.0",
        "accelerate": "1.15.0",
        "numpy": "2.4.6",
        "pydantic": "2.12.0",
        "ninja": "1.13.0",
    },
    requirements=(
        Requirement("deepspeed", "torch", ">=2.0.0"),
        Requirement("deepspeed", "pydantic", ">=2.0.0"),
        Requirement("deepspeed", "ninja", ""),
        Requirement("transformers", "accelerate", ">=1.1.0"),
        Requirement("transformers", "deepspeed", ">=0.9.3"),
        Requirement("accelerate", "deepspeed", ">=0.9.3"),
    ),
)
TOOLS = Toolchain(
    compiler_path="/usr/bin/c++",
    gcc=(13, 2, 0),
    ninja="/env/bin/ninja",
    nvcc="/usr/local/cuda/bin/nvcc",
    nvcc_version="13.0",
)
LIMITS = Limits(shared_memory=16 * GIB, locked_memory=None)


@pytest.fixture
def gpu_machine() -> Environment:
    return Environment(
        python=PYTHON,
        torch=Torch(
            version="2.11.0+cu130",
            cuda="13.0",
            sees_gpu=True,
            architectures=("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120", "compute_120"),
            cuda_home="/usr/local/cuda",
            newest_gcc=(16, 0),
        ),
        deepspeed=DeepSpeed(
            accelerator="cuda",
            ops=(
                Op("fused_adam", "FusedAdamBuilder", takes_cuda=True),
                Op("cpu_adam", "CPUAdamBuilder"),
            ),
            heeds_arch_list=True,
        ),
        gpus=(Gpu("NVIDIA H200", (9, 0)),),
        driver=Driver("580.159", "13.0"),
        tools=TOOLS,
        ops_folder=OpsFolder("/home/me/.cache/torch_extensions/py311_cu130"),
        limits=LIMITS,
    )


@pytest.fixture
def cpu_machine() -> Environment:
    return Environment(
        python=PYTHON,
        torch=Torch(version="2.13.0+cpu"),
        deepspeed=DeepSpeed(
            accelerator="cpu",
            ops=(
                Op("fused_adam", "FusedAdamBuilder"),
                Op("cpu_adam", "CPUAdamBuilder"),
                Op("deepspeed_shm_comm", "ShareMemCommBuilder"),
            ),
            heeds_arch_list=True,
        ),
        tools=TOOLS,
        ops_folder=OpsFolder("/home/me/.cache/torch_extensions/py311_cpu"),
        limits=LIMITS,
    )

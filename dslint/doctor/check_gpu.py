"""Troubles between the GPUs, their driver and torch."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from dslint.doctor.check_packages import pip
from dslint.doctor.environment import Capability, Environment, Gpu
from dslint.doctor.trouble import Trouble


def cpu_build_of_torch(env: Environment) -> Iterator[Trouble]:
    """A torch without CUDA beside an NVIDIA GPU.

    get_accelerator in deepspeed/accelerator/real_accelerator.py then takes the CPU.
    """
    if not env.gpus or env.torch is None or env.torch.cuda or env.torch.hip or _wants_cpu(env):
        return
    cuda = (env.driver.cuda if env.driver else None) or "yours"
    yield Trouble(
        "cpu-build-of-torch",
        "error",
        "torch",
        f"torch {env.torch.version} is built without CUDA, and this machine has {env.gpus[0].name}: "
        "DeepSpeed trains on the CPU",
        f"{pip(env, '--force-reinstall', 'torch')} --index-url https://download.pytorch.org/whl/cuXYZ, "
        f"with XYZ for a CUDA release that the driver can run (up to {cuda})",
    )


def unusable_gpu(env: Environment) -> Iterator[Trouble]:
    """torch.cuda.is_available() is false although torch has CUDA and the machine a GPU.

    A driver older than torch's CUDA is one reason: _check_driver in torch/cuda/__init__.py.
    """
    if not env.gpus or env.torch is None or not env.torch.cuda or env.torch.sees_gpu or _wants_cpu(env):
        return
    if env.variables.get("CUDA_VISIBLE_DEVICES") in ("", "-1", "NoDevFiles"):
        yield _hidden(env)
    elif env.driver is not None and env.driver.cuda and _major(env.driver.cuda) < _major(env.torch.cuda):
        yield _old_driver(env, env.driver.version, env.driver.cuda)
    else:
        said = f" ({env.torch.complaint})" if env.torch.complaint else ""
        fact = f"nvidia-smi lists {env.gpus[0].name}, but torch finds no usable GPU{said}"
        yield Trouble(
            "gpu-not-usable",
            "error",
            "GPU",
            f"{fact}: DeepSpeed trains on the CPU",
            f"see what torch says: {shlex.quote(env.python.path)} -c 'import torch; torch.zeros(1).cuda()'",
        )


def _hidden(env: Environment) -> Trouble:
    return Trouble(
        "gpu-hidden",
        "warning",
        "GPU",
        f"CUDA_VISIBLE_DEVICES is '{env.variables['CUDA_VISIBLE_DEVICES']}', which hides every GPU: "
        "DeepSpeed trains on the CPU",
        "unset CUDA_VISIBLE_DEVICES",
    )


def _old_driver(env: Environment, version: str, cuda: str) -> Trouble:
    assert env.torch is not None
    return Trouble(
        "driver-too-old",
        "error",
        "GPU",
        f"the driver {version} runs CUDA up to {cuda}, and torch {env.torch.version} is built for CUDA "
        f"{env.torch.cuda}: torch finds no GPU, and DeepSpeed trains on the CPU",
        "update the driver, or install torch for an older CUDA: "
        f"{pip(env, '--force-reinstall', 'torch')} --index-url https://download.pytorch.org/whl/cuXYZ",
    )


def gpu_that_torch_is_not_built_for(env: Environment) -> Iterator[Trouble]:
    """A GPU whose compute capability none of torch's kernels covers (torch.cuda.get_arch_list).

    See _check_capability in torch/cuda/__init__.py, which warns; the first kernel then stops.
    """
    if env.torch is None or not env.torch.architectures or env.torch.hip:
        return
    for gpu in dict.fromkeys(env.gpus):
        if gpu.capability is None or _runs_any(gpu.capability, env.torch.architectures):
            continue
        yield Trouble(
            "gpu-not-in-torch",
            "error",
            "GPU",
            f"{gpu.name} has compute capability {_dotted(gpu.capability)}, and torch {env.torch.version} is built "
            f"for {', '.join(env.torch.architectures)}: the first kernel stops (no kernel image is available)",
            f"install a torch that has kernels for it: {pip(env, '--upgrade', 'torch')}",
        )


def arch_list_without_this_gpu(env: Environment) -> Iterator[Trouble]:
    """TORCH_CUDA_ARCH_LIST names only architectures whose code this machine's GPU can't run.

    CUDAOpBuilder.compute_capability_args in deepspeed/ops/op_builder/builder.py builds for these alone, and adds
    PTX for the highest, which newer GPUs can run. Tried on an H200 (9.0): FusedAdam built for 8.0 steps, built
    for 10.0 it stops with "no kernel image is available".
    """
    listed = env.variables.get("TORCH_CUDA_ARCH_LIST", "").strip()
    if not listed or env.deepspeed is None or not env.deepspeed.heeds_arch_list or env.deepspeed.arch_list_error:
        return
    architectures = _architectures(listed)
    for gpu in _cuda_gpus(env):
        if architectures is None or gpu.capability is None or _runs_any(gpu.capability, architectures):
            continue
        yield Trouble(
            "arch-list-without-this-gpu",
            "error",
            "CUDA",
            f"TORCH_CUDA_ARCH_LIST is '{listed}', and {gpu.name} has compute capability "
            f"{_dotted(gpu.capability)}: the ops that DeepSpeed builds can't run on it "
            "(no kernel image is available)",
            f"export TORCH_CUDA_ARCH_LIST={_dotted(gpu.capability)}, or unset it to build for the GPUs at hand",
        )


def _cuda_gpus(env: Environment) -> Iterable[Gpu]:
    return dict.fromkeys(env.gpus) if env.torch is not None and env.torch.sees_gpu and env.torch.cuda else ()


def _architectures(listed: str) -> tuple[str, ...] | None:
    """The list in torch's own words (sm_90, compute_90); None for a form that is not plain numbers."""
    entries = [entry for entry in listed.replace(" ", ";").split(";") if entry]
    numbers: list[tuple[int, int, bool]] = []
    for entry in entries:
        version, _, suffix = entry.partition("+")
        major, _, minor = version.partition(".")
        if not (major.isdecimal() and minor.isdecimal()):
            return None
        numbers.append((int(major), int(minor), suffix == "PTX"))
    if numbers and not any(has_ptx for _, _, has_ptx in numbers):
        major_, minor_, _ = max(numbers)
        numbers.append((major_, minor_, True))
    return tuple(f"{'compute' if has_ptx else 'sm'}_{major}{minor}" for major, minor, has_ptx in numbers)


def _runs_any(capability: Capability, architectures: Iterable[str]) -> bool:
    """Whether a GPU runs code for one of these; also true where one of them can't be read."""
    return any(_runs(capability, architecture) for architecture in architectures)


def _runs(capability: Capability, architecture: str) -> bool:
    """Machine code runs on GPUs of the same major number, PTX on every newer one."""
    kind, _, digits = architecture.partition("_")
    digits = digits.rstrip("af")
    if not digits.isdecimal():
        return True
    major, minor = divmod(int(digits), 10)
    if kind == "compute":
        return (major, minor) <= capability
    return major == capability[0] and minor <= capability[1]


def _wants_cpu(env: Environment) -> bool:
    return env.variables.get("DS_ACCELERATOR") == "cpu"


def _major(version: str) -> int:
    first = version.split(".")[0]
    return int(first) if first.isdecimal() else 0


def _dotted(capability: Capability) -> str:
    return f"{capability[0]}.{capability[1]}"

from __future__ import annotations

from dataclasses import replace

import pytest

from dslint.doctor import check_gpu as checks
from dslint.doctor.environment import Driver, Environment, Gpu, Torch

CPU_TORCH = Torch(version="2.13.0+cpu")


def test_a_cpu_build_of_torch_beside_a_gpu(gpu_machine: Environment, cpu_machine: Environment) -> None:
    (trouble,) = checks.cpu_build_of_torch(replace(gpu_machine, torch=CPU_TORCH))
    assert (trouble.name, trouble.severity) == ("cpu-build-of-torch", "error")
    assert "NVIDIA H200" in trouble.message
    assert "13.0" in trouble.remedy
    assert list(checks.cpu_build_of_torch(cpu_machine)) == []


def test_who_asks_for_the_cpu_gets_it_without_a_word(gpu_machine: Environment) -> None:
    env = replace(gpu_machine, torch=CPU_TORCH, variables={"DS_ACCELERATOR": "cpu"})
    assert list(checks.cpu_build_of_torch(env)) == []


def without_gpu(env: Environment, complaint: str = "") -> Environment:
    assert env.torch is not None
    return replace(env, torch=replace(env.torch, sees_gpu=False, complaint=complaint, architectures=()))


def test_a_driver_older_than_torchs_cuda(gpu_machine: Environment) -> None:
    env = replace(without_gpu(gpu_machine), driver=Driver("535.104", "12.2"))
    (trouble,) = checks.unusable_gpu(env)
    assert (trouble.name, trouble.severity) == ("driver-too-old", "error")
    assert "535.104" in trouble.message
    assert "12.2" in trouble.message
    assert "13.0" in trouble.message


def test_an_older_driver_that_works_is_fine(gpu_machine: Environment) -> None:
    assert list(checks.unusable_gpu(replace(gpu_machine, driver=Driver("535.104", "12.2")))) == []


def test_hidden_gpus_are_told_apart_from_broken_ones(gpu_machine: Environment) -> None:
    (hidden,) = checks.unusable_gpu(replace(without_gpu(gpu_machine), variables={"CUDA_VISIBLE_DEVICES": ""}))
    assert (hidden.name, hidden.severity) == ("gpu-hidden", "warning")
    (broken,) = checks.unusable_gpu(without_gpu(gpu_machine, "CUDA unknown error"))
    assert (broken.name, broken.severity) == ("gpu-not-usable", "error")
    assert "CUDA unknown error" in broken.message


@pytest.mark.parametrize(
    ("capability", "architectures", "is_fine"),
    [
        ((9, 0), ("sm_80", "sm_90"), True),
        ((8, 9), ("sm_80", "sm_86"), True),
        ((7, 0), ("sm_75", "sm_80", "compute_80"), False),
        ((12, 0), ("sm_80", "sm_90"), False),
        ((12, 0), ("sm_80", "sm_90", "compute_90"), True),
        ((9, 0), ("sm_90a",), True),
        ((9, 0), ("gfx942",), True),
    ],
)
def test_machine_code_runs_within_a_generation_and_ptx_on_newer_ones(
    gpu_machine: Environment, capability: tuple[int, int], architectures: tuple[str, ...], is_fine: bool
) -> None:
    assert gpu_machine.torch is not None
    torch = replace(gpu_machine.torch, architectures=architectures)
    env = replace(gpu_machine, torch=torch, gpus=(Gpu("a GPU", capability), Gpu("a GPU", capability)))
    assert [one.name for one in checks.gpu_that_torch_is_not_built_for(env)] == (
        [] if is_fine else ["gpu-not-in-torch"]
    )


def test_a_gpu_of_unknown_capability_is_passed_over(gpu_machine: Environment) -> None:
    env = replace(gpu_machine, gpus=(Gpu("a GPU", None),), variables={"TORCH_CUDA_ARCH_LIST": "10.0"})
    assert list(checks.gpu_that_torch_is_not_built_for(env)) == []
    assert list(checks.arch_list_without_this_gpu(env)) == []


@pytest.mark.parametrize(
    ("listed", "is_fine"),
    [
        ("9.0", True),
        ("8.0;9.0+PTX", True),
        ("8.0", True),
        ("8.0 8.6", True),
        ("10.0", False),
        ("10.0;12.0+PTX", False),
        ("8.0+PTX;10.0", True),
        ("8.0;10.0", False),
        ("Hopper", True),
        ("", True),
    ],
)
def test_an_arch_list_must_cover_the_gpu_at_hand(gpu_machine: Environment, listed: str, is_fine: bool) -> None:
    env = replace(gpu_machine, variables={"TORCH_CUDA_ARCH_LIST": listed})
    found = [one.name for one in checks.arch_list_without_this_gpu(env)]
    assert found == ([] if is_fine else ["arch-list-without-this-gpu"])


def test_older_deepspeed_sets_the_arch_list_aside(gpu_machine: Environment) -> None:
    assert gpu_machine.deepspeed is not None
    older = replace(gpu_machine.deepspeed, heeds_arch_list=False)
    env = replace(gpu_machine, deepspeed=older, variables={"TORCH_CUDA_ARCH_LIST": "10.0"})
    assert list(checks.arch_list_without_this_gpu(env)) == []

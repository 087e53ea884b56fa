from __future__ import annotations

from dataclasses import replace

import pytest

from dslint.doctor import check_limits as checks
from dslint.doctor.environment import Environment, Limits
from dslint.doctor.needs import Needs

MIB = 1024**2
PINS = Needs({}, pinned_memory="ds.json: offload_param.pin_memory")


@pytest.mark.parametrize(
    ("size", "is_fine"), [(64 * MIB, False), (131 * MIB, False), (132 * MIB, True), (None, True)]
)
def test_shared_memory_must_hold_two_ranks(gpu_machine: Environment, size: int | None, is_fine: bool) -> None:
    env = replace(gpu_machine, limits=Limits(shared_memory=size))
    assert [one.name for one in checks.small_shared_memory(env)] == ([] if is_fine else ["small-shared-memory"])


def test_small_shared_memory_says_who_uses_it(gpu_machine: Environment, cpu_machine: Environment) -> None:
    small = Limits(shared_memory=64 * MIB)
    (on_gpu,) = checks.small_shared_memory(replace(gpu_machine, limits=small))
    (on_cpu,) = checks.small_shared_memory(replace(cpu_machine, limits=small))
    assert "64 MiB" in on_gpu.message
    assert "NCCL" in on_gpu.message
    assert "66 MiB a rank" in on_cpu.message
    assert "--shm-size" in on_gpu.remedy


def test_locked_memory_matters_only_to_who_locks_it(gpu_machine: Environment) -> None:
    little = replace(gpu_machine, limits=Limits(locked_memory=8 * MIB))
    assert list(checks.little_locked_memory(little)) == []
    assert list(checks.little_locked_memory(replace(little, needs=Needs({})))) == []
    (pinned,) = checks.little_locked_memory(replace(little, needs=PINS))
    assert pinned.severity == "hint"
    assert "8 MiB" in pinned.message
    (swapped,) = checks.little_locked_memory(
        replace(little, needs=Needs({}, nvme="ds.json: offload_param.device nvme"))
    )
    assert swapped.severity == "hint"
    (native,) = checks.little_locked_memory(
        replace(little, needs=PINS, variables={"DS_PIN_MEMORY_BACKEND": "native"})
    )
    assert native.severity == "warning"
    assert list(checks.little_locked_memory(replace(gpu_machine, needs=PINS))) == []


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (64 * MIB, "64 MiB"),
        (24 * 1024 * MIB, "24 GiB"),
        (1536 * MIB, "1.5 GiB"),
        (512 * MIB, "512 MiB"),
        (100, "100 bytes"),
        (8 * 1024, "8 KiB"),
    ],
)
def test_sizes_are_told_in_the_largest_unit(size: int, words: str) -> None:
    assert checks.in_words(size) == words

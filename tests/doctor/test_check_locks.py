from __future__ import annotations

from dataclasses import replace

import pytest

from dslint.doctor import check_locks as checks
from dslint.doctor.environment import BuildLock, Environment
from dslint.doctor.needs import Needs

PATH = "/home/me/my ops/fused_adam/lock"


def with_lock(env: Environment, lock: BuildLock) -> Environment:
    assert env.ops_folder is not None
    return replace(env, ops_folder=replace(env.ops_folder, locks=(lock,)))


def test_an_old_lock_that_nobody_holds_is_stale(gpu_machine: Environment) -> None:
    (trouble,) = checks.stale_locks(with_lock(gpu_machine, BuildLock(PATH, 3 * 86400.0)))
    assert (trouble.name, trouble.severity) == ("stale-build-lock", "error")
    assert "3 days old" in trouble.message
    assert trouble.remedy == "rm '/home/me/my ops/fused_adam/lock'"


def test_a_lock_that_a_build_holds_is_left_alone(gpu_machine: Environment) -> None:
    for age in (3.0, 86400.0):
        assert list(checks.stale_locks(with_lock(gpu_machine, BuildLock(PATH, age, "ninja (4711)")))) == []


def test_a_young_lock_may_belong_to_another_machine(gpu_machine: Environment) -> None:
    (trouble,) = checks.stale_locks(with_lock(gpu_machine, BuildLock(PATH, 60.0)))
    assert (trouble.name, trouble.severity) == ("unattended-build-lock", "warning")
    assert "unless another machine" in trouble.remedy


def test_a_stale_lock_of_an_op_that_no_config_needs_stops_nothing(gpu_machine: Environment) -> None:
    env = replace(with_lock(gpu_machine, BuildLock("/ops/async_io/lock", 1e6)), needs=Needs({}))
    (trouble,) = checks.stale_locks(env)
    assert trouble.severity == "warning"
    needed = replace(with_lock(gpu_machine, BuildLock(PATH, 1e6)), needs=Needs({"FusedAdamBuilder": "ds.json"}))
    (trouble,) = checks.stale_locks(needed)
    assert trouble.severity == "error"


def test_ops_of_another_environment_are_a_hint(gpu_machine: Environment) -> None:
    assert gpu_machine.ops_folder is not None
    folder = replace(gpu_machine.ops_folder, foreign={"cpu_adam": "/other/torch", "async_io": "/other/torch"})
    (trouble,) = checks.foreign_ops(replace(gpu_machine, ops_folder=folder))
    assert trouble.severity == "hint"
    assert "async_io, cpu_adam" in trouble.message
    assert list(checks.foreign_ops(gpu_machine)) == []


def test_a_folder_that_cannot_be_written_to(gpu_machine: Environment) -> None:
    assert gpu_machine.ops_folder is not None
    folder = replace(gpu_machine.ops_folder, is_writable=False)
    (trouble,) = checks.unwritable_folder(replace(gpu_machine, ops_folder=folder))
    assert trouble.severity == "error"
    assert "TORCH_EXTENSIONS_DIR" in trouble.remedy


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "less than a minute"), (60, "1 minute"), (7199, "1 hour"), (7200, "2 hours"), (86400 * 2.5, "2 days")],
)
def test_ages_are_told_in_the_largest_unit(seconds: float, words: str) -> None:
    assert checks.age_in_words(seconds) == words

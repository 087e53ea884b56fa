from __future__ import annotations

from dataclasses import replace

from dslint.doctor.checks import CHECKS, troubles_of
from dslint.doctor.environment import BuildLock, Environment, Interpreter, Limits
from dslint.doctor.needs import Needs
from dslint.doctor.trouble import SEVERITIES


def test_nothing_is_wrong_with_a_machine_that_is_fine(gpu_machine: Environment, cpu_machine: Environment) -> None:
    assert troubles_of(gpu_machine) == ()
    assert troubles_of(cpu_machine) == ()
    needs = Needs({"FusedAdamBuilder": "ds.json: AdamW"}, pinned_memory="ds.json: offload_param.pin_memory")
    assert troubles_of(replace(gpu_machine, needs=needs)) == ()


def test_the_worst_comes_first(gpu_machine: Environment) -> None:
    assert gpu_machine.ops_folder is not None
    locks = (BuildLock("/x/cpu_adam/lock", 86400.0), BuildLock("/x/fused_adam/lock", 5.0))
    env = replace(
        gpu_machine,
        limits=Limits(shared_memory=64 * 1024**2),
        ops_folder=replace(gpu_machine.ops_folder, locks=locks, foreign={"fused_adam": "/other/torch"}),
    )
    severities = [trouble.severity for trouble in troubles_of(env)]
    assert severities == sorted(severities, key=SEVERITIES.index)
    assert severities == ["error", "warning", "warning", "hint"]


def test_where_nothing_is_known_only_the_missing_packages_are_named() -> None:
    bare = Environment(python=Interpreter("/env/bin/python", "3.12.1"))
    assert {trouble.name for trouble in troubles_of(bare)} == {"no-torch", "no-deepspeed"}


def test_every_check_cites_its_source_and_is_run_once() -> None:
    assert len(set(CHECKS)) == len(CHECKS)
    assert all((check.__doc__ or "").strip() for check in CHECKS)

from __future__ import annotations

from dataclasses import replace

import pytest

from dslint.doctor import check_packages as checks
from dslint.doctor.environment import Environment, Failure, Op, Requirement


def with_versions(env: Environment, **versions: str | None) -> Environment:
    merged = {**env.python.versions, **versions}
    kept = {name: version for name, version in merged.items() if version is not None}
    return replace(env, python=replace(env.python, versions=kept))


def test_a_missing_torch_names_the_extra(gpu_machine: Environment) -> None:
    env = with_versions(replace(gpu_machine, torch=None, deepspeed=None), torch=None, deepspeed=None)
    troubles = list(checks.missing_packages(env))
    assert [(one.name, one.severity) for one in troubles] == [("no-torch", "error"), ("no-deepspeed", "error")]
    assert all(
        "pip install 'deepspeed-lint[smoke]'" in one.remedy and "--python" in one.remedy for one in troubles
    )


def test_a_torch_that_fails_to_load_is_not_called_missing(gpu_machine: Environment) -> None:
    env = replace(
        gpu_machine, torch=None, deepspeed=None, failures=(Failure("torch", "OSError: libcudart.so.13"),)
    )
    assert list(checks.missing_packages(env)) == []
    (trouble,) = checks.failed_imports(env)
    assert (trouble.name, trouble.severity) == ("torch-import-fails", "error")
    assert "libcudart.so.13" in trouble.message
    assert "--force-reinstall torch" in trouble.remedy


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        (
            "ImportError: cannot import name 'log' from 'torch.distributed.elastic.agent.server.api'",
            "--upgrade deepspeed",
        ),
        ("ModuleNotFoundError: No module named 'torch._six'", "--upgrade deepspeed"),
        ("ModuleNotFoundError: No module named 'hjson'", "pip install hjson"),
        ("killed by SIGSEGV", "--upgrade deepspeed"),
    ],
)
def test_a_failed_import_of_deepspeed_says_what_to_install(
    gpu_machine: Environment, reason: str, remedy: str
) -> None:
    env = replace(gpu_machine, deepspeed=None, failures=(Failure("deepspeed", reason),))
    (trouble,) = checks.failed_imports(env)
    assert trouble.severity == "error"
    assert reason in trouble.message
    assert remedy in trouble.remedy


def test_an_import_that_does_not_end_proves_nothing(gpu_machine: Environment) -> None:
    env = replace(gpu_machine, failures=(Failure("torch", "it took more than 180 s", is_timeout=True),))
    (trouble,) = checks.failed_imports(env)
    assert (trouble.name, trouble.severity) == ("torch-import-slow", "warning")


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ({"torch": "1.13.1"}, "torch is 1.13.1"),
        ({"pydantic": "1.10.2"}, "pydantic is 1.10.2"),
        ({"pydantic": None}, "pydantic is not installed"),
    ],
)
def test_what_deepspeed_demands_and_lacks_is_named(
    gpu_machine: Environment, versions: dict[str, str | None], said: str
) -> None:
    (trouble,) = checks.unmet_requirements(with_versions(gpu_machine, **versions))
    assert said in trouble.message
    assert trouble.remedy.startswith("/env/bin/python -m pip install ")


def test_a_ninja_from_the_system_will_do(gpu_machine: Environment) -> None:
    assert list(checks.unmet_requirements(with_versions(gpu_machine, ninja=None))) == []


def test_a_demand_that_cannot_be_read_is_passed_over(gpu_machine: Environment) -> None:
    odd = Requirement("deepspeed", "pydantic", ">=two")
    env = replace(gpu_machine, python=replace(gpu_machine.python, requirements=(odd,)))
    assert list(checks.unmet_requirements(env)) == []


def test_a_torch_without_its_numpy(gpu_machine: Environment) -> None:
    assert gpu_machine.torch is not None
    assert list(checks.numpy_without_torch(gpu_machine)) == []
    torch = replace(gpu_machine.torch, numpy_error="RuntimeError: Numpy is not available")
    (trouble,) = checks.numpy_without_torch(replace(gpu_machine, torch=torch))
    assert "NumPy 2.4.6" in trouble.message
    assert "numpy<2" in trouble.remedy


def test_prebuilt_ops_must_be_of_this_torch(gpu_machine: Environment) -> None:
    assert gpu_machine.deepspeed is not None
    ops = (Op("fused_adam", "FusedAdamBuilder", takes_cuda=True, is_prebuilt=True),)
    fitting = replace(gpu_machine.deepspeed, ops=ops, prebuilt_for="2.11")
    assert list(checks.foreign_prebuilt_ops(replace(gpu_machine, deepspeed=fitting))) == []
    other = replace(gpu_machine.deepspeed, ops=ops, prebuilt_for="2.6")
    (trouble,) = checks.foreign_prebuilt_ops(replace(gpu_machine, deepspeed=other))
    assert (trouble.name, trouble.severity) == ("ops-prebuilt-for-other-torch", "error")
    unused = replace(gpu_machine.deepspeed, prebuilt_for="2.6")
    (trouble,) = checks.foreign_prebuilt_ops(replace(gpu_machine, deepspeed=unused))
    assert trouble.severity == "warning"


@pytest.mark.parametrize(
    ("torch", "deepspeed", "fails"),
    [
        ("2.13.0+cpu", "0.15.4", True),
        ("2.6.0", "0.15.4", True),
        ("2.5.1", "0.15.4", False),
        ("2.13.0+cpu", "0.16.0", False),
        (None, "0.15.4", False),
        ("2.13.0", "somebody's own", False),
    ],
)
def test_checkpoints_of_an_old_deepspeed_do_not_load_under_a_new_torch(
    gpu_machine: Environment, torch: str | None, deepspeed: str, fails: bool
) -> None:
    env = with_versions(gpu_machine, torch=torch, deepspeed=deepspeed)
    assert bool(list(checks.checkpoints_that_do_not_load(env))) is fails

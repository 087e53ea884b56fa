from __future__ import annotations

from dataclasses import replace

import pytest

from dslint.doctor import check_huggingface as checks
from dslint.doctor.environment import Environment
from dslint.doctor.needs import Needs


def with_versions(env: Environment, **versions: str) -> Environment:
    return replace(env, python=replace(env.python, versions={**env.python.versions, **versions}))


def without(env: Environment, package: str) -> Environment:
    versions = {name: version for name, version in env.python.versions.items() if name != package}
    return replace(env, python=replace(env.python, versions=versions))


def test_an_accelerate_that_transformers_refuses(gpu_machine: Environment) -> None:
    (trouble,) = checks.refused_versions(with_versions(gpu_machine, accelerate="0.34.2"))
    assert (trouble.name, trouble.severity) == ("version-refused", "error")
    assert "accelerate>=1.1.0" in trouble.message
    assert "0.34.2" in trouble.message
    assert list(checks.refused_versions(gpu_machine)) == []


def test_a_deepspeed_that_both_refuse_may_still_serve_alone(gpu_machine: Environment) -> None:
    troubles = list(checks.refused_versions(with_versions(gpu_machine, deepspeed="0.9.2")))
    assert [one.severity for one in troubles] == ["warning", "warning"]


def test_a_package_that_is_missing_is_refused_by_nobody(gpu_machine: Environment) -> None:
    assert list(checks.refused_versions(without(gpu_machine, "accelerate"))) == []


@pytest.mark.parametrize(
    ("transformers", "deepspeed", "is_fine"),
    [
        ("4.46.3", "0.16.0", False),
        ("4.47.0", "0.19.8", False),
        ("4.47.1", "0.19.8", True),
        ("4.45.2", "0.19.8", True),
        ("4.46.3", "0.15.4", True),
    ],
)
def test_accumulation_that_deepspeed_refuses(
    gpu_machine: Environment, transformers: str, deepspeed: str, is_fine: bool
) -> None:
    env = with_versions(gpu_machine, transformers=transformers, deepspeed=deepspeed)
    expected = [] if is_fine else ["accumulation-refused"]
    assert [one.name for one in checks.accumulation_refused(env)] == expected
    at_stage_2 = replace(env, needs=Needs({}, partitioned_gradients="ds.json: stage 2"))
    assert [one.name for one in checks.accumulation_refused(at_stage_2)] == expected
    assert list(checks.accumulation_refused(replace(env, needs=Needs({})))) == []


@pytest.mark.parametrize(
    ("transformers", "deepspeed", "is_fine"),
    [("4.44.2", "0.15.0", False), ("4.44.2", "0.14.5", True), ("4.45.2", "0.19.8", True)],
)
def test_a_fraction_for_the_prefetch_bucket(
    gpu_machine: Environment, transformers: str, deepspeed: str, is_fine: bool
) -> None:
    env = with_versions(gpu_machine, transformers=transformers, deepspeed=deepspeed)
    asked = replace(env, needs=Needs({}, auto_prefetch="ds.json: stage3_prefetch_bucket_size"))
    assert [one.severity for one in checks.fractional_prefetch_bucket(asked)] == ([] if is_fine else ["error"])
    assert [one.severity for one in checks.fractional_prefetch_bucket(env)] == ([] if is_fine else ["hint"])
    assert list(checks.fractional_prefetch_bucket(replace(env, needs=Needs({})))) == []


def test_without_transformers_there_is_nothing_to_say(gpu_machine: Environment) -> None:
    env = without(gpu_machine, "transformers")
    assert list(checks.accumulation_refused(env)) == []
    assert list(checks.fractional_prefetch_bucket(env)) == []

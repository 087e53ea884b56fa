from __future__ import annotations

from dataclasses import replace

import pytest

from dslint.doctor import check_build as checks
from dslint.doctor.environment import Environment, Op, Toolchain
from dslint.doctor.needs import Needs

ADAM = Needs({"FusedAdamBuilder": "ds.json: optimizer.type AdamW"})
NO_TOOLS = Toolchain()


def with_built(env: Environment, *names: str) -> Environment:
    assert env.ops_folder is not None
    return replace(env, ops_folder=replace(env.ops_folder, built=frozenset(names)))


def with_ops(env: Environment, *ops: Op) -> Environment:
    assert env.deepspeed is not None
    return replace(env, deepspeed=replace(env.deepspeed, ops=ops))


def test_a_missing_compiler_is_an_error_only_where_an_op_is_surely_used(gpu_machine: Environment) -> None:
    env = replace(gpu_machine, tools=replace(gpu_machine.tools, compiler_path=None))
    (usual,) = checks.missing_compiler(env)
    assert (usual.name, usual.severity) == ("no-compiler", "warning")
    assert "fused_adam, cpu_adam" in usual.message
    (sure,) = checks.missing_compiler(replace(env, needs=ADAM))
    assert sure.severity == "error"
    assert "fused_adam (ds.json: optimizer.type AdamW)" in sure.message
    assert "cpu_adam" not in sure.message
    assert list(checks.missing_compiler(gpu_machine)) == []


def test_an_op_that_is_built_already_needs_no_compiler_for_sure(gpu_machine: Environment) -> None:
    env = replace(with_built(gpu_machine, "fused_adam"), tools=NO_TOOLS, needs=ADAM)
    (trouble,) = checks.missing_compiler(env)
    assert trouble.severity == "warning"
    (ninja,) = checks.missing_ninja(env)
    assert ninja.severity == "error"


def test_prebuilt_ops_need_nothing(gpu_machine: Environment) -> None:
    env = with_ops(gpu_machine, Op("fused_adam", "FusedAdamBuilder", takes_cuda=True, is_prebuilt=True))
    env = replace(env, tools=NO_TOOLS, needs=ADAM)
    assert list(checks.missing_compiler(env)) == []
    assert list(checks.missing_ninja(env)) == []
    assert list(checks.missing_cuda_toolkit(env)) == []


def test_on_a_cpu_every_run_builds_the_collective(cpu_machine: Environment) -> None:
    (trouble,) = checks.missing_ninja(replace(cpu_machine, tools=replace(cpu_machine.tools, ninja=None)))
    assert (trouble.name, trouble.severity) == ("no-ninja", "error")
    assert "deepspeed_shm_comm" in trouble.message


def test_a_collective_that_cannot_be_built_is_done_without(cpu_machine: Environment) -> None:
    env = with_ops(cpu_machine, Op("deepspeed_shm_comm", "ShareMemCommBuilder", error="Linux only"))
    env = replace(env, tools=NO_TOOLS)
    assert list(checks.missing_ninja(env)) == []
    assert list(checks.refused_ops(env)) == []


def test_another_compiler_is_offered(gpu_machine: Environment) -> None:
    tools = replace(gpu_machine.tools, compiler_path=None, other_compiler="g++")
    (trouble,) = checks.missing_compiler(replace(gpu_machine, tools=tools))
    assert trouble.remedy == "export CXX=g++"


def test_a_ninja_beside_python_but_off_the_path(gpu_machine: Environment) -> None:
    tools = replace(gpu_machine.tools, ninja=None, ninja_off_path="/env/bin/ninja")
    (trouble,) = checks.missing_ninja(replace(gpu_machine, tools=tools))
    assert trouble.name == "ninja-not-on-path"
    assert 'export PATH="/env/bin:$PATH"' in trouble.remedy


def test_missing_headers_of_python(gpu_machine: Environment) -> None:
    env = replace(gpu_machine, python=replace(gpu_machine.python, has_headers=False))
    (trouble,) = checks.missing_python_headers(env)
    assert "python3.11-dev" in trouble.remedy
    assert list(checks.missing_python_headers(gpu_machine)) == []


def test_torchs_builder_without_setuptools(gpu_machine: Environment) -> None:
    assert gpu_machine.torch is not None
    torch = replace(gpu_machine.torch, extensions_error="ModuleNotFoundError: No module named 'setuptools'")
    (trouble,) = checks.missing_extension_builder(replace(gpu_machine, torch=torch, needs=ADAM))
    assert trouble.severity == "error"
    assert "setuptools" in trouble.remedy
    assert list(checks.missing_extension_builder(gpu_machine)) == []


@pytest.mark.parametrize(("home", "said"), [(None, "no CUDA toolkit"), ("/opt/cuda", "/opt/cuda")])
def test_a_missing_toolkit_concerns_the_ops_built_with_cuda(
    gpu_machine: Environment, cpu_machine: Environment, home: str | None, said: str
) -> None:
    assert gpu_machine.torch is not None
    tools = replace(gpu_machine.tools, nvcc=None, nvcc_version=None)
    torch = replace(gpu_machine.torch, cuda_home=home)
    (trouble,) = checks.missing_cuda_toolkit(replace(gpu_machine, tools=tools, torch=torch))
    assert said in trouble.message
    assert "fused_adam" in trouble.message
    assert "cpu_adam" not in trouble.message
    assert list(checks.missing_cuda_toolkit(replace(cpu_machine, tools=tools))) == []


def test_a_cuda_mismatch_stops_a_build_only_in_releases_that_ask(gpu_machine: Environment) -> None:
    assert gpu_machine.deepspeed is not None
    tools = replace(gpu_machine.tools, nvcc_version="11.8")
    newer = replace(gpu_machine.deepspeed, cuda_mismatch="CUDAMismatchException: ...")
    env = replace(gpu_machine, tools=tools, deepspeed=newer, needs=ADAM)
    (trouble,) = checks.mismatched_cuda(env)
    assert (trouble.name, trouble.severity) == ("cuda-mismatch", "warning")
    assert "11.8" in trouble.message
    assert "13.0" in trouble.message
    (older,) = checks.mismatched_cuda(replace(env, deepspeed=replace(newer, checks_cuda_when_building=True)))
    assert older.severity == "error"
    assert list(checks.mismatched_cuda(gpu_machine)) == []


@pytest.mark.parametrize(
    ("gcc", "is_fine"), [((15, 2, 0), True), ((16, 0, 0), False), ((16, 1, 0), False), (None, True)]
)
def test_a_compiler_too_new_for_nvcc(gpu_machine: Environment, gcc: tuple[int, ...] | None, is_fine: bool) -> None:
    env = replace(gpu_machine, tools=replace(gpu_machine.tools, gcc=gcc))
    assert [one.name for one in checks.compiler_too_new_for_nvcc(env)] == ([] if is_fine else ["compiler-too-new"])


def test_an_arch_list_that_is_refused_is_an_error_on_a_gpu(
    gpu_machine: Environment, cpu_machine: Environment
) -> None:
    for env, severity in ((gpu_machine, "error"), (cpu_machine, "warning")):
        assert env.deepspeed is not None
        refused = replace(
            env.deepspeed, arch_list_error="ValueError: invalid literal for int() with base 10: '0a'"
        )
        env = replace(env, deepspeed=refused, variables={"TORCH_CUDA_ARCH_LIST": "9.0a"})
        (trouble,) = checks.refused_arch_list(env)
        assert (trouble.name, trouble.severity) == ("arch-list-refused", severity)
        assert "'9.0a'" in trouble.message
    assert list(checks.refused_arch_list(gpu_machine)) == []


def test_libaio_is_asked_for_only_by_who_swaps(gpu_machine: Environment) -> None:
    op = Op("async_io", "AsyncIOBuilder", takes_cuda=True, error="async_io: please install the libaio-dev package")
    env = with_ops(gpu_machine, op)
    assert list(checks.refused_ops(env)) == []
    needs = Needs({"AsyncIOBuilder": "ds.json: offload_param.device nvme"})
    (trouble,) = checks.refused_ops(replace(env, needs=needs))
    assert (trouble.name, trouble.severity) == ("no-libaio", "error")
    assert "libaio-dev" in trouble.remedy
    assert list(checks.refused_ops(replace(env, needs=needs, tools=NO_TOOLS))) == []


def test_an_op_that_its_builder_refuses(gpu_machine: Environment) -> None:
    env = with_ops(gpu_machine, Op("quantizer", "QuantizerBuilder", error="no such thing here"))
    (trouble,) = checks.refused_ops(
        replace(env, needs=Needs({"QuantizerBuilder": "ds.json: zero_quantized_weights"}))
    )
    assert trouble.name == "op-not-compatible"
    assert "no such thing here" in trouble.message

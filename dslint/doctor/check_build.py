"""Troubles with building DeepSpeed's C++ ops, which happens at the first use of each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dslint.doctor.check_packages import pip
from dslint.doctor.environment import Environment, Op
from dslint.doctor.needs import COLLECTIVE, NVME
from dslint.doctor.trouble import Severity, Subject, Trouble

_LIBAIO = "sudo apt-get install libaio-dev (dnf install libaio-devel), or point CFLAGS and LDFLAGS to it"


@dataclass(frozen=True)
class Build:
    """An op that this environment must build or load.

    Attributes:
        op: the op.
        reason: what uses it for certain; None where it is only one that is usually used.
        is_built: whether a library of it lies in the ops folder, so that there may be nothing to compile.
    """

    op: Op
    reason: str | None
    is_built: bool

    def __str__(self) -> str:
        return f"{self.op.name} ({self.reason})" if self.reason else self.op.name


def builds(env: Environment) -> tuple[Build, ...]:
    """The ops that are loaded from the ops folder, or built into it.

    Where the collective can't be built, DeepSpeed does without it (build_shm_op in deepspeed/comm/torch.py).
    """
    if env.deepspeed is None:
        return ()
    built = env.ops_folder.built if env.ops_folder is not None else frozenset[str]()
    return tuple(
        Build(op, _reason(env, op), op.name in built)
        for op in env.deepspeed.ops
        if not op.is_prebuilt and not (op.builder == COLLECTIVE and op.error)
    )


def _reason(env: Environment, op: Op) -> str | None:
    """What makes it certain that the op is used.

    The shared-memory collective is loaded whenever DeepSpeed starts torch.distributed on a CPU host (TorchBackend
    in deepspeed/comm/torch.py).
    """
    if op.builder == COLLECTIVE:
        return "every run on a CPU"
    return None if env.needs is None else env.needs.builders.get(op.builder)


def _trouble(name: str, subject: Subject, needed: Iterable[Build], fact: str, then: str, remedy: str) -> Trouble:
    """An error where an op that is certainly used is not there yet, else a warning."""
    concerned = list(needed)
    severity: Severity = "error" if any(one.reason and not one.is_built for one in concerned) else "warning"
    certain = [one for one in concerned if one.reason]
    names = ", ".join(str(one) for one in certain or concerned)
    uses = "needs it" if certain else "usually needs it"
    return Trouble(name, severity, subject, f"{fact}. DeepSpeed {uses} for {names}: {then}", remedy)


def missing_compiler(env: Environment) -> Iterator[Trouble]:
    """No C++ compiler under the name that torch runs.

    get_cxx_compiler in torch/utils/cpp_extension.py takes $CXX, else c++. Tried: without it, loading an op
    stops with a RuntimeError (Error building extension).
    """
    needed = builds(env)
    if not needed or env.tools.compiler_path is not None:
        return
    if env.tools.other_compiler is not None:
        remedy = f"export CXX={env.tools.other_compiler}"
    else:
        remedy = "sudo apt-get install g++ (dnf install gcc-c++), or name another compiler: export CXX=PATH"
    yield _trouble(
        "no-compiler",
        "build tools",
        needed,
        f"there is no C++ compiler: torch runs `{env.tools.compiler}`, which is not on the PATH",
        "building an op stops with a RuntimeError (Error building extension)",
        remedy,
    )


def missing_ninja(env: Environment) -> Iterator[Trouble]:
    """No ninja on the PATH, though perhaps beside the interpreter.

    OpBuilder.jit_load in deepspeed/ops/op_builder/builder.py asks verify_ninja_availability of
    torch/utils/cpp_extension.py, which runs `ninja`; an op that is built already needs it too. Tried with
    DeepSpeed 0.19.8: a RuntimeError (due to ninja not being installed).
    """
    needed = [Build(one.op, one.reason, is_built=False) for one in builds(env)]
    if not needed or env.tools.ninja is not None:
        return
    beside = env.tools.ninja_off_path
    then = "loading an op stops with a RuntimeError (due to ninja not being installed)"
    if beside is None:
        yield _trouble("no-ninja", "build tools", needed, "ninja is not installed", then, pip(env, "ninja"))
    else:
        fact = f"ninja is installed as {beside}, but its folder is not on the PATH"
        remedy = f'export PATH="{os.path.dirname(beside)}:$PATH", or activate the environment'
        yield _trouble("ninja-not-on-path", "build tools", needed, fact, then, remedy)


def missing_python_headers(env: Environment) -> Iterator[Trouble]:
    """No Python.h, which every op includes through torch/extension.h."""
    needed = builds(env)
    if needed and not env.python.has_headers:
        release = ".".join(env.python.version.split(".")[:2])
        yield _trouble(
            "no-python-headers",
            "build tools",
            needed,
            f"Python.h of Python {env.python.version} is missing",
            "building an op stops with a RuntimeError (fatal error: Python.h: No such file or directory)",
            f"sudo apt-get install python{release}-dev (dnf install python{release}-devel)",
        )


def missing_extension_builder(env: Environment) -> Iterator[Trouble]:
    """torch.utils.cpp_extension can't be imported: it needs setuptools, which new Pythons come without.

    Tried with DeepSpeed 0.19.8: it can be imported all the same, and OpBuilder.jit_load
    (deepspeed/ops/op_builder/builder.py) raises the ModuleNotFoundError.
    """
    needed = builds(env)
    if needed and env.torch is not None and env.torch.extensions_error is not None:
        yield _trouble(
            "no-extension-builder",
            "build tools",
            [Build(one.op, one.reason, is_built=False) for one in needed],
            f"torch.utils.cpp_extension can't be imported ({env.torch.extensions_error})",
            "loading an op stops with that error",
            pip(env, "setuptools"),
        )


def missing_cuda_toolkit(env: Environment) -> Iterator[Trouble]:
    """No CUDA toolkit for an op that is built with CUDA.

    Tried on an H200 with a CUDA_HOME that has no nvcc: FusedAdam stops with a RuntimeError. Read only: without
    any CUDA_HOME, _join_cuda_home in torch/utils/cpp_extension.py raises an OSError.
    """
    needed = [one for one in builds(env) if one.op.takes_cuda]
    if not needed or env.torch is None or env.tools.nvcc is not None:
        return
    home = env.torch.cuda_home
    where = (
        f"CUDA_HOME is {home}, and there is no bin/nvcc in it" if home else "no CUDA toolkit is found (CUDA_HOME)"
    )
    yield _trouble(
        "no-cuda-toolkit",
        "CUDA",
        needed,
        where,
        "building an op stops with "
        + ("a RuntimeError (Error building extension)" if home else "an OSError (CUDA_HOME is not set)"),
        f"install CUDA {env.torch.cuda} with nvcc and export CUDA_HOME=/usr/local/cuda{_without_op(needed)}",
    )


def _without_op(needed: Iterable[Build]) -> str:
    """The way out for Adam, which torch has too (DeepSpeedEngine.get_optimizer_configuration)."""
    if {one.op.builder for one in needed if one.reason} != {"FusedAdamBuilder"}:
        return ""
    return ', or let torch do the work: "torch_adam": true in optimizer.params'


def mismatched_cuda(env: Environment) -> Iterator[Trouble]:
    """The toolkit's CUDA release differs from torch's by more than DeepSpeed tolerates.

    assert_no_cuda_mismatch in deepspeed/ops/op_builder/builder.py is called for the answer. It is a
    CUDAMismatchException wherever ops are built with the package (DS_BUILD_OPS). In 0.10.3 OpBuilder.jit_load
    calls it at the first use of an op too; in 0.12.6 and the later ones looked at it builds without asking.
    """
    if env.deepspeed is None or env.deepspeed.cuda_mismatch is None or env.torch is None:
        return
    needed = [one for one in builds(env) if one.op.takes_cuda]
    fact = (
        f"nvcc is CUDA {env.tools.nvcc_version}, and torch {env.torch.version} is built for CUDA {env.torch.cuda}"
    )
    remedy = (
        f"install the toolkit of CUDA {env.torch.cuda} and export CUDA_HOME to it, or a torch for CUDA "
        f"{env.tools.nvcc_version}"
    )
    if env.deepspeed.checks_cuda_when_building and needed:
        then = "building an op stops with a CUDAMismatchException"
        yield _trouble("cuda-mismatch", "CUDA", needed, fact, then, remedy)
    else:
        message = f"{fact}: DeepSpeed refuses to build its ops at installation (CUDAMismatchException)"
        later = ", and does not ask when it builds one at first use, which may then fail to compile or to load"
        yield Trouble("cuda-mismatch", "warning", "CUDA", message + later, remedy)


def compiler_too_new_for_nvcc(env: Environment) -> Iterator[Trouble]:
    """A g++ that is newer than this nvcc takes: CUDA_GCC_VERSIONS in torch/utils/cpp_extension.py."""
    needed = [one for one in builds(env) if one.op.takes_cuda]
    if not needed or env.torch is None or env.tools.gcc is None or env.torch.newest_gcc is None:
        return
    if env.tools.gcc >= env.torch.newest_gcc:
        bound = env.torch.newest_gcc[0] - 1
        found = ".".join(map(str, env.tools.gcc))
        yield Trouble(
            "compiler-too-new",
            "warning",
            "build tools",
            f"g++ is {found}, and nvcc {env.tools.nvcc_version} takes g++ up to {bound}: building "
            f"{', '.join(str(one) for one in needed)} may stop (unsupported GNU version)",
            f"sudo apt-get install g++-{bound} and export CC=gcc-{bound} CXX=g++-{bound}",
        )


def refused_arch_list(env: Environment) -> Iterator[Trouble]:
    """TORCH_CUDA_ARCH_LIST has an entry that DeepSpeed or torch can't read.

    The probe calls CUDAOpBuilder.compute_capability_args (deepspeed/ops/op_builder/builder.py), which releases
    from 0.19.0 on let read the variable: '9.0a', 'Hopper' and '90' are a ValueError in 0.19.8; '9.5' passes
    there and is a ValueError in torch's _get_cuda_arch_flags.
    """
    if env.deepspeed is None or env.deepspeed.arch_list_error is None:
        return
    given = env.variables.get("TORCH_CUDA_ARCH_LIST", "")
    yield Trouble(
        "arch-list-refused",
        "error" if env.deepspeed.accelerator == "cuda" else "warning",
        "CUDA",
        f"TORCH_CUDA_ARCH_LIST is '{given}', which DeepSpeed {env.version('deepspeed')} can't build for: "
        f"building a CUDA op stops with a {env.deepspeed.arch_list_error}",
        "write plain numbers (export TORCH_CUDA_ARCH_LIST='8.0;9.0'), or unset it to build for the GPUs at hand",
    )


def refused_ops(env: Environment) -> Iterator[Trouble]:
    """An op whose builder says that it can't be built here.

    OpBuilder.jit_load raises a RuntimeError for these. For async_io the builder compiles and links a call of
    io_submit from libaio (AsyncIOBuilder.is_compatible in deepspeed/ops/op_builder/async_io.py).
    """
    for one in builds(env):
        if one.op.error is None or one.reason is None:
            continue
        if one.op.builder == NVME:
            # Its test program needs the compiler, whose absence has a message of its own.
            if env.tools.compiler_path is not None:
                yield _without_libaio(one)
            continue
        yield Trouble(
            "op-not-compatible",
            "error",
            "build tools",
            f"DeepSpeed can't build {one} here ({one.op.error}): loading it stops with a RuntimeError",
            "ds_report shows what each op lacks",
        )


def _without_libaio(build: Build) -> Trouble:
    if "distutils" in (build.op.error or ""):
        fact, remedy = "distutils is missing, with which DeepSpeed looks for libaio", "pip install setuptools"
    else:
        fact, remedy = "libaio.so or libaio.h is not found, or can't be linked", _LIBAIO
    return Trouble(
        "no-libaio",
        "error",
        "build tools",
        f"{fact}, and {build} swaps through it: DeepSpeed stops with a RuntimeError "
        "(Unable to JIT load the async_io op)",
        remedy,
    )

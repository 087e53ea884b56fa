"""What was found on a machine and in its Python, as plain data for the checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dslint.doctor.needs import Needs

Capability = tuple[int, int]


@dataclass(frozen=True)
class Requirement:
    """What one installed package demands of another.

    Attributes:
        owner: the package that demands: "deepspeed".
        package: the one that is demanded, as the index spells it: "py-cpuinfo".
        spec: the versions it takes: ">=2.0.0"; empty for any.
    """

    owner: str
    package: str
    spec: str


@dataclass(frozen=True)
class Interpreter:
    """The Python that will train.

    Attributes:
        path: its executable.
        version: "3.11.7".
        scripts: the folder of its commands, where pip puts ninja.
        has_headers: whether Python.h is there, which every C++ op includes.
        versions: installed packages that matter here, by name in lower case.
        requirements: what these packages demand of one another.
    """

    path: str
    version: str
    scripts: str = ""
    has_headers: bool = True
    versions: Mapping[str, str] = field(default_factory=dict)
    requirements: tuple[Requirement, ...] = ()


@dataclass(frozen=True)
class Torch:
    """What torch says about itself.

    Attributes:
        version: "2.13.0+cpu".
        cuda: the CUDA release it was built for; None for a CPU or ROCm build.
        hip: the ROCm release it was built for.
        sees_gpu: whether torch.cuda.is_available().
        complaint: what torch warned about while it looked for GPUs.
        architectures: torch.cuda.get_arch_list(): sm_90, compute_90.
        cuda_home: the toolkit that torch.utils.cpp_extension builds with.
        extensions_error: why torch.utils.cpp_extension can't be imported; None if it can.
        numpy_error: why a tensor can't be handed to NumPy; None if it can.
        newest_gcc: the first release of g++ that is too new for this nvcc, by torch's own table.
    """

    version: str
    cuda: str | None = None
    hip: str | None = None
    sees_gpu: bool = False
    complaint: str = ""
    architectures: tuple[str, ...] = ()
    cuda_home: str | None = None
    extensions_error: str | None = None
    numpy_error: str | None = None
    newest_gcc: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Op:
    """One of DeepSpeed's C++ ops, as its builder describes it here.

    Attributes:
        name: "fused_adam", also the name of its folder.
        builder: "FusedAdamBuilder".
        takes_cuda: whether it is built with CUDA's compiler or headers on this machine.
        is_prebuilt: whether it came built with the DeepSpeed package.
        error: why its builder says it can't be built; None if it says nothing of the kind.
    """

    name: str
    builder: str
    takes_cuda: bool = False
    is_prebuilt: bool = False
    error: str | None = None


@dataclass(frozen=True)
class DeepSpeed:
    """What DeepSpeed says about itself, once imported.

    Attributes:
        accelerator: "cuda" or "cpu".
        ops: the ops that were asked about.
        cuda_mismatch: what assert_no_cuda_mismatch raised; None if nothing.
        checks_cuda_when_building: whether an op built at first use is refused for that too.
        heeds_arch_list: whether an op built at first use is built for TORCH_CUDA_ARCH_LIST.
        arch_list_error: what DeepSpeed or torch raised at that list; None if nothing.
        prebuilt_for: torch's release that the prebuilt ops belong to; None where none is prebuilt.
    """

    accelerator: str
    ops: tuple[Op, ...] = ()
    cuda_mismatch: str | None = None
    checks_cuda_when_building: bool = False
    heeds_arch_list: bool = False
    arch_list_error: str | None = None
    prebuilt_for: str | None = None


@dataclass(frozen=True)
class Failure:
    """An import that failed, or that never ended.

    Attributes:
        package: "torch" or "deepspeed".
        reason: the exception, the signal, or the time limit.
        is_timeout: whether the time limit was the reason, which proves nothing.
    """

    package: str
    reason: str
    is_timeout: bool = False


@dataclass(frozen=True)
class Gpu:
    """A GPU as nvidia-smi lists it."""

    name: str
    capability: Capability | None


@dataclass(frozen=True)
class Driver:
    """NVIDIA's driver: its version, and the newest CUDA release it can run."""

    version: str
    cuda: str | None


@dataclass(frozen=True)
class Toolchain:
    """The programs that build an op; None for one that is missing.

    Attributes:
        compiler: the command that torch runs: $CXX, or c++.
        compiler_path: where it is.
        gcc: its release, where it is GNU's.
        other_compiler: a C++ compiler on the PATH that torch does not try.
        ninja: where ninja is.
        ninja_off_path: where ninja is, if that is in a folder that is not on the PATH.
        nvcc: the toolkit's compiler.
        nvcc_version: "13.0".
    """

    compiler: str = "c++"
    compiler_path: str | None = None
    gcc: tuple[int, ...] | None = None
    other_compiler: str | None = None
    ninja: str | None = None
    ninja_off_path: str | None = None
    nvcc: str | None = None
    nvcc_version: str | None = None


@dataclass(frozen=True)
class BuildLock:
    """The lock that torch puts into an op's folder while it builds the op.

    Attributes:
        path: the lock file.
        age: seconds since it was made.
        holder: the process of this machine that builds there, as "ninja (4711)"; None where none was seen.
    """

    path: str
    age: float
    holder: str | None = None


@dataclass(frozen=True)
class OpsFolder:
    """Where torch builds ops.

    Attributes:
        path: the folder with a folder for each op.
        built: the names of the ops that have a library there.
        locks: the build locks there.
        foreign: for ops that another Python's torch built last, that torch's folder.
        is_writable: whether ops can be built there.
    """

    path: str
    built: frozenset[str] = frozenset()
    locks: tuple[BuildLock, ...] = ()
    foreign: Mapping[str, str] = field(default_factory=dict)
    is_writable: bool = True


@dataclass(frozen=True)
class Limits:
    """What the machine grants; None where it doesn't say or sets no limit.

    Attributes:
        shared_memory: bytes of /dev/shm.
        locked_memory: bytes that a process may lock.
    """

    shared_memory: int | None = None
    locked_memory: int | None = None


@dataclass(frozen=True)
class Environment:
    """Everything that the checks look at.

    Attributes:
        python: the interpreter that will train.
        torch: None where it is missing or can't be imported.
        deepspeed: None likewise.
        failures: the imports that failed.
        gpus: the machine's NVIDIA GPUs, whatever torch makes of them.
        driver: their driver.
        tools: compilers and ninja.
        ops_folder: where ops are built; None where torch is missing.
        limits: of memory.
        variables: the environment variables that matter here.
        needs: what the given configs need; None where none was given.
    """

    python: Interpreter
    torch: Torch | None = None
    deepspeed: DeepSpeed | None = None
    failures: tuple[Failure, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    driver: Driver | None = None
    tools: Toolchain = field(default_factory=Toolchain)
    ops_folder: OpsFolder | None = None
    limits: Limits = field(default_factory=Limits)
    variables: Mapping[str, str] = field(default_factory=dict)
    needs: Needs | None = None

    def version(self, package: str) -> str | None:
        """The installed version of a package; None where it is missing."""
        return self.python.versions.get(package)

"""Looks at the machine: GPUs and their driver, compilers, limits of memory."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence

from dslint.doctor.environment import Capability, Driver, Gpu, Limits, Toolchain

VARIABLES = (
    "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES",
    "DS_ACCELERATOR",
    "DS_PIN_MEMORY_BACKEND",
    "DS_SKIP_CUDA_CHECK",
    "TORCH_CUDA_ARCH_LIST",
    "TORCH_EXTENSIONS_DIR",
)
"""The environment variables that the checks look at."""

SHARED_MEMORY = "/dev/shm"
_SECONDS = 10  # for nvidia-smi and the compilers to tell their version
_IPC_LOCK = 14  # the bit of CAP_IPC_LOCK, see capabilities(7)


def variables() -> Mapping[str, str]:
    """Those of the variables that are set."""
    return {name: os.environ[name] for name in VARIABLES if name in os.environ}


def gpus() -> tuple[tuple[Gpu, ...], Driver | None]:
    """The NVIDIA GPUs and their driver, as nvidia-smi lists them; none where it is missing or fails."""
    listing = _query("name,compute_cap,driver_version") or _query("name,driver_version")
    rows = [[field.strip() for field in line.split(",")] for line in listing.splitlines() if line.strip()]
    if not rows:
        return (), None
    found = tuple(Gpu(row[0], _capability(row[1]) if len(row) == 3 else None) for row in rows)
    shown = re.search(r"CUDA Version:\s*(\d+\.\d+)", _output(["nvidia-smi"]))
    return found, Driver(rows[0][-1], shown[1] if shown else None)


def toolchain(scripts: str, cuda_home: str | None) -> Toolchain:
    """The programs that build ops.

    Args:
        scripts: the folder of the interpreter's commands.
        cuda_home: the toolkit that torch builds with; None to take nvcc from the PATH.
    """
    command = os.environ.get("CXX", "c++")
    path = shutil.which(command.split()[0]) if command.split() else None
    ninja = shutil.which("ninja")
    nvcc = shutil.which("nvcc", path=os.path.join(cuda_home, "bin")) if cuda_home else shutil.which("nvcc")
    return Toolchain(
        compiler=command,
        compiler_path=path,
        gcc=_gcc_release(path) if path else None,
        other_compiler=None if path else next(filter(shutil.which, ("g++", "clang++")), None),
        ninja=ninja,
        ninja_off_path=None if ninja else shutil.which("ninja", path=scripts or os.devnull),
        nvcc=nvcc,
        nvcc_version=_nvcc_release(nvcc) if nvcc else None,
    )


def limits() -> Limits:
    """What the machine grants."""
    return Limits(_shared_memory(), _locked_memory())


def _query(fields: str) -> str:
    return _output(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"])


def _capability(text: str) -> Capability | None:
    major, _, minor = text.partition(".")
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else None


def _gcc_release(compiler: str) -> tuple[int, ...] | None:
    text = _output([compiler, "--version"])
    if "Free Software Foundation" not in text:
        return None
    found: list[str] = re.findall(r"\b\d+\.\d+\.\d+\b", text.splitlines()[0])
    return tuple(int(part) for part in found[-1].split(".")) if found else None


def _nvcc_release(nvcc: str) -> str | None:
    match = re.search(r"release (\d+\.\d+)", _output([nvcc, "-V"]))
    return match[1] if match else None


def _output(command: Sequence[str]) -> str:
    """What a program prints; empty where it is missing or fails."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _shared_memory() -> int | None:
    try:
        found = os.statvfs(SHARED_MEMORY)
    except (AttributeError, OSError):
        return None  # not Linux
    return found.f_frsize * found.f_blocks


def _locked_memory() -> int | None:
    try:
        import resource
    except ImportError:
        return None  # Windows
    limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return None if limit == resource.RLIM_INFINITY or _may_lock_everything() else limit


def _may_lock_everything() -> bool:
    """Whether the limit doesn't count for us, as for root outside of a container."""
    return any(int(line.split()[1], 16) >> _IPC_LOCK & 1 for line in _status_lines() if line.startswith("CapEff:"))


def _status_lines() -> Iterator[str]:
    try:
        with open("/proc/self/status", encoding="utf-8") as stream:
            yield from stream
    except OSError:
        return

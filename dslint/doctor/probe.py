"""Tells about the Python that runs it: one JSON object a line, for `dslint.doctor.asking`.

It is run by its path with the interpreter that will train, which may be any Python from 3.8 on and need not
have dslint. So it imports nothing of dslint, and nothing outside the standard library unless asked. A line is
written as soon as it is known: an import that kills the interpreter then still leaves what came before it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

PACKAGES = (
    "torch",
    "deepspeed",
    "transformers",
    "accelerate",
    "numpy",
    "pydantic",
    "hjson",
    "ninja",
    "setuptools",
)


def main(builders: list[str]) -> None:
    """Writes what there is to tell, about the builders that are named among others."""
    # The folder of this file would put its neighbours before installed packages of the same name.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != here]
    # Torch and DeepSpeed print to standard output; only this file's lines may go there.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(stage: str, work_out: Callable[[], dict[str, Any]]) -> bool:
        answers.write(json.dumps({"begins": stage}) + "\n")
        answers.flush()
        try:
            content = work_out()
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # an import may raise anything, SystemExit too
            content = {"error": _in_words(error)}
        answers.write(json.dumps({"stage": stage, **content}) + "\n")
        answers.flush()
        return "error" not in content

    tell("python", _about_python)
    if _is_installed("torch") and tell("torch", _about_torch) and _is_installed("deepspeed"):
        tell("deepspeed", lambda: _about_deepspeed(builders))
    answers.flush()
    # Some libraries crash while they are unloaded; everything is told by now.
    os._exit(0)


def _in_words(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _is_installed(package: str) -> bool:
    import importlib.util

    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def _about_python() -> dict[str, Any]:
    import platform
    import sysconfig

    folder = sysconfig.get_path("include") or ""
    versions, requirements = _packages()
    return {
        "path": sys.executable,
        "version": platform.python_version(),
        "scripts": sysconfig.get_path("scripts") or "",
        "has_headers": os.path.isfile(os.path.join(folder, "Python.h")),
        "versions": versions,
        "requirements": requirements + _transformers_demands() + _accelerate_demands(),
    }


def _packages() -> tuple[dict[str, str], list[list[str]]]:
    """Versions of installed packages, and DeepSpeed's demands as [owner, text]."""
    from importlib import metadata

    demands = []
    names = list(PACKAGES)
    try:
        for text in metadata.requires("deepspeed") or []:
            if "extra ==" not in text:
                demands.append(["deepspeed", text])
                names.append(text)
    except metadata.PackageNotFoundError:
        pass
    versions = {}
    for name in names:
        bare = _bare_name(name)
        try:
            versions[bare] = metadata.version(bare)
        except metadata.PackageNotFoundError:
            continue
    return versions, demands


def _bare_name(requirement: str) -> str:
    import re

    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    return match.group(0).lower() if match else requirement


def _transformers_demands() -> list[list[str]]:
    """The versions that transformers/dependency_versions_table.py asks for."""
    import re

    text = _source("transformers", "dependency_versions_table.py")
    found = re.findall(r'"(?:accelerate|deepspeed)": "((?:accelerate|deepspeed)[^"]*)"', text)
    return [["transformers", demand] for demand in found]


def _accelerate_demands() -> list[list[str]]:
    """The oldest DeepSpeed that Accelerator.__init__ in accelerate/accelerator.py takes."""
    import re

    match = re.search(r"DeepSpeed version must be >= ([0-9.]*[0-9])\. ", _source("accelerate", "accelerator.py"))
    return [["accelerate", f"deepspeed>={match.group(1)}"]] if match else []


def _source(package: str, name: str) -> str:
    import importlib.util

    try:
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.origin:
            return ""
        with open(os.path.join(os.path.dirname(spec.origin), name), encoding="utf-8") as stream:
            return stream.read()
    except (ImportError, OSError, ValueError):
        return ""


def _about_torch() -> dict[str, Any]:
    import warnings

    import torch

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        sees_gpu = bool(torch.cuda.is_available())
    complaints = [str(warning.message).strip().splitlines()[0] for warning in seen if str(warning.message).strip()]
    about = {
        "version": str(torch.__version__),
        "cuda": torch.version.cuda,
        "hip": getattr(torch.version, "hip", None),
        "sees_gpu": sees_gpu,
        "complaint": " ".join(complaints),
        "architectures": list(torch.cuda.get_arch_list()) if sees_gpu else [],
        "numpy_error": _numpy_error(torch),
        "folder": os.path.dirname(os.path.abspath(str(torch.__file__))),
    }
    about.update(_about_extensions())
    return about


def _numpy_error(torch: Any) -> str | None:
    if not _is_installed("numpy"):
        return None
    try:
        torch.zeros(1).numpy()
    except Exception as error:
        return _in_words(error)
    return None


def _about_extensions() -> dict[str, Any]:
    """What torch builds C++ ops with, and where."""
    try:
        from torch.utils import cpp_extension
    except Exception as error:
        return {"extensions_error": _in_words(error)}
    return {
        "cuda_home": cpp_extension.CUDA_HOME,
        "gcc_bounds": {
            cuda: list(bounds[1]) for cuda, bounds in getattr(cpp_extension, "CUDA_GCC_VERSIONS", {}).items()
        },
        "ops_folder": _ops_folder(cpp_extension),
    }


def _ops_folder(cpp_extension: Any) -> str:
    """As _get_build_directory in torch/utils/cpp_extension.py, which would create the folder."""
    import torch

    given = os.environ.get("TORCH_EXTENSIONS_DIR")
    if given is not None:
        return given
    if getattr(torch.version, "hip", None) is not None:
        device = "rocm" + str(torch.version.hip).replace(".", "")
    else:
        device = "cu" + torch.version.cuda.replace(".", "") if torch.version.cuda else "cpu"
    flags = getattr(sys, "abiflags", "")
    python = f"py{sys.version_info[0]}{sys.version_info[1]}{flags}"
    return os.path.join(cpp_extension.get_default_build_root(), f"{python}_{device}")


def _about_deepspeed(builders: list[str]) -> dict[str, Any]:
    import deepspeed
    import torch
    from deepspeed.accelerator import get_accelerator
    from deepspeed.ops.op_builder import builder as base

    accelerator = get_accelerator()
    installed, torch_info = _prebuilt()
    return {
        "version": str(deepspeed.__version__),
        "accelerator": str(accelerator._name),
        "ops": [op for name in builders for op in _about_op(name, accelerator, base, installed)],
        "cuda_mismatch": _cuda_mismatch(base) if torch.version.cuda else None,
        "checks_cuda_when_building": _mentions(base.OpBuilder.jit_load, "assert_no_cuda_mismatch"),
        "heeds_arch_list": _heeds_arch_list(base),
        "arch_list_error": _arch_list_error(base),
        "prebuilt_for": torch_info if any(installed.values()) else None,
    }


def _prebuilt() -> tuple[dict[str, bool], str | None]:
    """The ops that were built when DeepSpeed was installed, and torch's release at that time."""
    try:
        from deepspeed.git_version_info import installed_ops, torch_info

        return dict(installed_ops), str(torch_info["version"])
    except Exception:
        return {}, None


def _about_op(name: str, accelerator: Any, base: Any, installed: dict[str, bool]) -> list[dict[str, Any]]:
    """What the builder says; nothing where this accelerator has no such op."""
    import torch

    try:
        builder = accelerator.create_op_builder(name)
        if builder is None or type(builder).__name__ == "NotImplementedBuilder":
            return []
    except Exception:
        return []
    takes_cuda = isinstance(builder, base.CUDAOpBuilder) and torch.cuda.is_available()
    return [
        {
            "name": builder.name,
            "builder": name,
            "takes_cuda": bool(takes_cuda and not base.OpBuilder.is_rocm_pytorch()),
            "is_prebuilt": bool(installed.get(builder.name)),
            "error": _incompatible(builder),
        }
    ]


def _incompatible(builder: Any) -> str | None:
    """Why the builder refuses, as OpBuilder.jit_load asks it."""
    try:
        if builder.is_compatible(verbose=True):
            return None
    except Exception as error:
        return _in_words(error)
    return str(builder.error_log or "its builder gives no reason")


def _cuda_mismatch(base: Any) -> str | None:
    try:
        base.assert_no_cuda_mismatch("doctor")
    except Exception as error:
        # A toolkit that is missing is told apart from one that doesn't match.
        return _in_words(error) if "Mismatch" in type(error).__name__ else None
    return None


def _mentions(function: Any, name: str) -> bool:
    return name in function.__code__.co_names


def _heeds_arch_list(base: Any) -> bool:
    """Releases before 0.19 set TORCH_CUDA_ARCH_LIST aside while they build an op at first use."""
    return "_jit_arch_list" in base.CUDAOpBuilder.compute_capability_args.__code__.co_consts


def _arch_list_error(base: Any) -> str | None:
    """What FusedAdam's builder does with TORCH_CUDA_ARCH_LIST, as OpBuilder.jit_load calls it."""
    given = (os.environ.get("TORCH_CUDA_ARCH_LIST") or "").strip()
    if not given or not _heeds_arch_list(base):
        return None
    from deepspeed.ops.op_builder.fused_adam import FusedAdamBuilder

    builder = FusedAdamBuilder()
    builder.jit_mode = True
    builder._jit_arch_list = given
    before = os.environ["TORCH_CUDA_ARCH_LIST"]
    try:
        builder.compute_capability_args()
        from torch.utils.cpp_extension import _get_cuda_arch_flags

        _get_cuda_arch_flags([])
    except Exception as error:
        return _in_words(error)
    finally:
        os.environ["TORCH_CUDA_ARCH_LIST"] = before
    return None


if __name__ == "__main__":
    main(sys.argv[1:])

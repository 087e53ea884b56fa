"""Troubles with what is installed, and with what goes with what."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from dslint.doctor.environment import Environment, Failure, Requirement
from dslint.doctor.trouble import Severity, Subject, Trouble
from dslint.runs.releases import matches, parse_release

_SUBJECTS: Mapping[str, Subject] = {"torch": "torch", "deepspeed": "DeepSpeed"}
EXTRA = "deepspeed-lint[smoke]"


def pip(env: Environment, *packages: str) -> str:
    """The command that installs packages for the interpreter that was asked."""
    return " ".join([shlex.quote(env.python.path), "-m pip install", *map(shlex.quote, packages)])


def missing_packages(env: Environment) -> Iterator[Trouble]:
    """Torch or DeepSpeed is not installed for this interpreter."""
    failed = {failure.package for failure in env.failures}
    if env.torch is None and "torch" not in failed:
        yield _missing(env, "no-torch", "torch", "torch is")
    if env.deepspeed is None and not failed and env.version("deepspeed") is None:
        yield _missing(env, "no-deepspeed", "DeepSpeed", "DeepSpeed is")


def _missing(env: Environment, name: str, subject: Subject, what: str) -> Trouble:
    return Trouble(
        name,
        "error",
        subject,
        f"{what} not installed for {env.python.path}: it can't train",
        f"{pip(env, EXTRA)}, or name the Python that trains: dslint doctor --python PATH",
    )


def failed_imports(env: Environment) -> Iterator[Trouble]:
    """An import raised, killed the interpreter, or took too long.

    Tried with torch 2.13: DeepSpeed 0.14.0 and older raise an ImportError (deepspeed/elasticity/elastic_agent.py
    takes `log` from torch.distributed.elastic.agent.server.api), 0.10.3 and older an AttributeError under
    pydantic 2 (deepspeed/runtime/config_utils.py).
    """
    for failure in env.failures:
        yield _slow_import(env, failure) if failure.is_timeout else _failed_import(env, failure)


def _slow_import(env: Environment, failure: Failure) -> Trouble:
    return Trouble(
        f"{failure.package}-import-slow",
        "warning",
        _SUBJECTS[failure.package],
        f"`import {failure.package}` did not end ({failure.reason}): every rank will wait as long, or for ever",
        f"try it by hand: {shlex.quote(env.python.path)} -X importtime -c 'import {failure.package}'",
    )


def _failed_import(env: Environment, failure: Failure) -> Trouble:
    subject = _SUBJECTS[failure.package]
    version = env.version(failure.package)
    return Trouble(
        f"{failure.package}-import-fails",
        "error",
        subject,
        f"`import {failure.package}` fails ({failure.reason}): {subject}{f' {version}' if version else ''} "
        "can't be used with what is installed beside it",
        _import_remedy(env, failure),
    )


def _import_remedy(env: Environment, failure: Failure) -> str:
    missing = re.search(r"No module named '([\w.]+)'", failure.reason)
    if missing is not None and not missing[1].startswith((failure.package, "torch")):
        return pip(env, missing[1].partition(".")[0])
    return pip(env, "--force-reinstall" if failure.package == "torch" else "--upgrade", failure.package)


def unmet_requirements(env: Environment) -> Iterator[Trouble]:
    """DeepSpeed demands a package that is missing or too old: pydantic, hjson, torch, ...

    The demands are those of the installed release itself (its metadata, "Requires-Dist"): torch>=2.0.0 since
    0.19.1, pydantic>=2.0.0 in 0.15.4, pydantic<2.0.0 up to 0.11.1.
    """
    for demand in env.python.requirements:
        if demand.owner != "deepspeed" or not _is_unmet(env, demand):
            continue
        found = env.version(demand.package)
        wanted = f"{demand.package}{demand.spec}"
        yield Trouble(
            "unmet-requirement",
            "warning",
            "DeepSpeed",
            f"DeepSpeed {env.version('deepspeed')} demands {wanted}, and {_found(demand.package, found)}: "
            "it may fail where it uses the package",
            pip(env, wanted),
        )


def _is_unmet(env: Environment, demand: Requirement) -> bool:
    found = env.version(demand.package)
    if found is None:
        # A ninja on the PATH will do, and a missing torch is told by itself.
        return demand.package not in ("ninja", "torch")
    return satisfies(found, demand.spec) is False


def _found(package: str, version: str | None) -> str:
    return f"{package} is not installed" if version is None else f"{package} is {version}"


def satisfies(version: str, spec: str) -> bool | None:
    """Whether a version is one of those that a specifier allows; None where either can't be read."""
    try:
        return matches(spec, parse_release(version))
    except ValueError:
        return None


def numpy_without_torch(env: Environment) -> Iterator[Trouble]:
    """Torch was built for another NumPy.

    The probe hands a tensor to NumPy (torch.Tensor.numpy) and tells what torch raises; no such pair was tried.
    """
    if env.torch is not None and env.torch.numpy_error is not None:
        yield Trouble(
            "numpy-does-not-fit-torch",
            "warning",
            "torch",
            f"torch {env.torch.version} can't use NumPy {env.version('numpy')} ({env.torch.numpy_error}): "
            "every tensor.numpy() and many data loaders fail",
            pip(env, "numpy<2"),
        )


def checkpoints_that_do_not_load(env: Environment) -> Iterator[Trouble]:
    """Since torch 2.6, torch.load reads plain weights only; DeepSpeed asks for more since 0.16.0.

    DeepSpeed calls it in runtime/checkpoint_engine/torch_checkpoint_engine.py, TorchCheckpointEngine.load. Tried:
    0.15.4 under torch 2.13 saves a ZeRO checkpoint and stops with an UnpicklingError when it loads it.
    """
    torch, deepspeed = (env.version(name) or "" for name in ("torch", "deepspeed"))
    if satisfies(torch, ">=2.6") and satisfies(deepspeed, "<0.16.0"):
        yield Trouble(
            "checkpoints-do-not-load",
            "error",
            "DeepSpeed",
            f"DeepSpeed {deepspeed} saves ZeRO checkpoints that don't load under torch {torch}: no run resumes, "
            "since load_checkpoint stops with an UnpicklingError (Weights only load failed)",
            pip(env, "deepspeed>=0.16.0"),
        )


def foreign_prebuilt_ops(env: Environment) -> Iterator[Trouble]:
    """DeepSpeed's ops were built at its installation, for another torch.

    OpBuilder.validate_torch_version in deepspeed/ops/op_builder/builder.py compares major and minor release and
    raises a RuntimeError when such an op is loaded.
    """
    if env.torch is None or env.deepspeed is None or env.deepspeed.prebuilt_for is None:
        return
    present = ".".join(env.torch.version.split(".")[:2])
    if env.deepspeed.prebuilt_for != present:
        severity: Severity = "error" if any(op.is_prebuilt for op in env.deepspeed.ops) else "warning"
        yield Trouble(
            "ops-prebuilt-for-other-torch",
            severity,
            "DeepSpeed",
            f"DeepSpeed's ops were built for torch {env.deepspeed.prebuilt_for} when it was installed, and torch "
            f"is {present}: loading one stops with a RuntimeError (PyTorch version mismatch)",
            pip(env, "--force-reinstall", "--no-deps", "--no-cache-dir", "--no-build-isolation")
            + f" deepspeed=={env.version('deepspeed')}",
        )

"""Puts together what the machine shows and what the interpreter says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dslint.doctor import machine
from dslint.doctor.asking import Answers, ask
from dslint.doctor.environment import DeepSpeed, Environment, Interpreter, Op, OpsFolder, Requirement, Torch
from dslint.doctor.locks import ops_folder
from dslint.doctor.needs import COLLECTIVE, USUAL, Needs

_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9._-]+)\s*(?:\[[^\]]*\])?\s*\(?([^;()]*)\)?\s*(;.*)?")


def gather(python: str, needs: Needs | None) -> Environment:
    """Everything that the checks look at.

    Args:
        python: the interpreter that will train.
        needs: what the configs need; None where none was given.

    Raises:
        NoAnswerError: the interpreter can't be asked.
    """
    builders = USUAL if needs is None else tuple(dict.fromkeys((*needs.builders, COLLECTIVE)))
    answers = ask(python, builders)
    interpreter = _interpreter(answers)
    gpus, driver = machine.gpus()
    about_torch = answers.torch or {}
    tools = machine.toolchain(interpreter.scripts, about_torch.get("cuda_home"))
    return Environment(
        python=interpreter,
        torch=_torch(answers.torch, tools.nvcc_version) if answers.torch is not None else None,
        deepspeed=_deepspeed(answers.deepspeed) if answers.deepspeed is not None else None,
        failures=answers.failures,
        gpus=gpus,
        driver=driver,
        tools=tools,
        ops_folder=_ops_folder(about_torch),
        limits=machine.limits(),
        variables=machine.variables(),
        needs=needs,
    )


def _interpreter(answers: Answers) -> Interpreter:
    about = answers.python
    versions = dict(about["versions"])
    for package, content in (("torch", answers.torch), ("deepspeed", answers.deepspeed)):
        if content is not None:
            # A checkout on PYTHONPATH has no metadata; what was imported is what will train.
            versions[package] = content["version"].strip()
    return Interpreter(
        path=about["path"],
        version=about["version"],
        scripts=about["scripts"],
        has_headers=about["has_headers"],
        versions=versions,
        requirements=tuple(_requirements(about["requirements"])),
    )


def _requirements(texts: Sequence[Sequence[str]]) -> Iterator[Requirement]:
    for owner, text in texts:
        match = _REQUIREMENT.fullmatch(text)
        # One that holds for some systems only ("; sys_platform == ...") is left to pip.
        if match is not None and not match[3]:
            yield Requirement(owner, match[1].lower(), match[2].strip())


def _torch(about: Mapping[str, Any], nvcc_version: str | None) -> Torch:
    bound = about.get("gcc_bounds", {}).get(nvcc_version)
    return Torch(
        version=about["version"],
        cuda=about["cuda"],
        hip=about["hip"],
        sees_gpu=about["sees_gpu"],
        complaint=about["complaint"],
        architectures=tuple(about["architectures"]),
        cuda_home=about.get("cuda_home"),
        extensions_error=about.get("extensions_error"),
        numpy_error=about["numpy_error"],
        newest_gcc=tuple(bound) if bound else None,
    )


def _deepspeed(about: Mapping[str, Any]) -> DeepSpeed:
    return DeepSpeed(
        accelerator=about["accelerator"],
        ops=tuple(Op(**op) for op in about["ops"]),
        cuda_mismatch=about["cuda_mismatch"],
        checks_cuda_when_building=about["checks_cuda_when_building"],
        heeds_arch_list=about["heeds_arch_list"],
        arch_list_error=about["arch_list_error"],
        prebuilt_for=about["prebuilt_for"],
    )


def _ops_folder(about_torch: Mapping[str, Any]) -> OpsFolder | None:
    path = about_torch.get("ops_folder")
    return ops_folder(path, about_torch["folder"]) if path else None

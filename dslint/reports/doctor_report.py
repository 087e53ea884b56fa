"""The report of `dslint doctor`: what was found, and what is wrong with it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from dslint import __version__
from dslint.doctor.check_limits import in_words
from dslint.doctor.check_locks import age_in_words
from dslint.doctor.environment import Environment
from dslint.doctor.examination import Diagnosis
from dslint.doctor.trouble import SEVERITIES, SUBJECTS, Subject, Trouble
from dslint.reports.style import Style


def doctor_text(diagnosis: Diagnosis, style: Style) -> str:
    """The table of facts, the troubles, and one closing line."""
    blocks = ["\n".join(_table(diagnosis, style))]
    blocks += ["\n".join(_trouble(trouble, style)) for trouble in diagnosis.troubles]
    return "\n\n".join([*blocks, _summary(diagnosis.troubles, style)])


def doctor_json(diagnosis: Diagnosis) -> str:
    """The same as one JSON object."""
    content = {
        "version": __version__,
        "troubles": [asdict(trouble) for trouble in diagnosis.troubles],
        "environment": asdict(diagnosis.environment),
    }
    return json.dumps(content, indent=2, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    """What JSON has no word for."""
    return sorted(value) if isinstance(value, frozenset) else str(value)


def _table(diagnosis: Diagnosis, style: Style) -> Iterator[str]:
    width = max(map(len, SUBJECTS))
    worst: dict[Subject, str] = {}
    for trouble in diagnosis.troubles:
        worst.setdefault(trouble.subject, trouble.severity)
    for subject, fact in _facts(diagnosis.environment):
        severity = worst.get(subject)
        mark = style.severity(severity, f"{severity:<7}") if severity else style.green(f"{'fine':<7}")
        yield f"{style.bold(f'{subject:<{width}}')}  {mark}  {fact}"


def _facts(env: Environment) -> Iterator[tuple[Subject, str]]:
    """Each subject that there is something to say about."""
    yield "Python", f"{env.python.version} ({env.python.path})"
    yield "torch", _torch(env)
    if env.torch is not None or env.tools.nvcc is not None:
        yield "CUDA", _cuda(env)
    yield "DeepSpeed", _deepspeed(env)
    yield "GPU", _gpus(env)
    yield "build tools", _tools(env)
    if env.ops_folder is not None:
        yield "ops folder", _ops_folder(env)
    yield "limits", _limits(env)
    packages = [f"{name} {env.version(name)}" for name in ("transformers", "accelerate") if env.version(name)]
    if packages:
        yield "Hugging Face", ", ".join(packages)


def _torch(env: Environment) -> str:
    if env.torch is None:
        version = env.version("torch")
        return f"{version}, can't be imported" if version else "not installed"
    if env.torch.cuda or env.torch.hip:
        build = f"for CUDA {env.torch.cuda}" if env.torch.cuda else f"for ROCm {env.torch.hip}"
        return f"{env.torch.version}, built {build}"
    return f"{env.torch.version}, built without CUDA"


def _cuda(env: Environment) -> str:
    if env.tools.nvcc is None:
        return "no nvcc found"
    return f"nvcc {env.tools.nvcc_version or 'of an unknown release'} ({env.tools.nvcc})"


def _deepspeed(env: Environment) -> str:
    version = env.version("deepspeed")
    if env.deepspeed is None:
        return f"{version}, not imported" if version else "not installed"
    device = env.deepspeed.accelerator
    return f"{version}, trains on {'the CPU' if device == 'cpu' else device} here"


def _gpus(env: Environment) -> str:
    if not env.gpus:
        return "no NVIDIA GPU found"
    counted = Counter(env.gpus)
    names = [f"{count} × {gpu.name}" if count > 1 else gpu.name for gpu, count in counted.items()]
    driver = f", driver {env.driver.version}" if env.driver else ""
    return ", ".join(names) + driver + (f" (CUDA {env.driver.cuda})" if env.driver and env.driver.cuda else "")


def _tools(env: Environment) -> str:
    release = f" {'.'.join(map(str, env.tools.gcc))}" if env.tools.gcc else ""
    compiler = f"{env.tools.compiler}{release}" if env.tools.compiler_path else "no C++ compiler"
    headers = "Python.h" if env.python.has_headers else "no Python.h"
    return f"{compiler}, {'ninja' if env.tools.ninja else 'no ninja on the PATH'}, {headers}"


def _ops_folder(env: Environment) -> str:
    assert env.ops_folder is not None
    built = ", ".join(sorted(env.ops_folder.built))
    busy = [f"{lock.holder} builds since {age_in_words(lock.age)}" for lock in env.ops_folder.locks if lock.holder]
    return "; ".join([f"{env.ops_folder.path} ({f'built: {built}' if built else 'nothing built yet'})", *busy])


def _limits(env: Environment) -> str:
    shared, locked = env.limits.shared_memory, env.limits.locked_memory
    parts = [] if shared is None else [f"/dev/shm {in_words(shared)}"]
    return ", ".join([*parts, f"locked memory {'unlimited' if locked is None else in_words(locked)}"])


def _trouble(trouble: Trouble, style: Style) -> Iterator[str]:
    severity = style.severity(trouble.severity, trouble.severity)
    yield f"{severity} {trouble.message} {style.dim(f'[{trouble.name}]')}"
    yield f"  = {style.green('do')}: {trouble.remedy}"


def _summary(troubles: tuple[Trouble, ...], style: Style) -> str:
    counts = Counter(trouble.severity for trouble in troubles)
    found = ", ".join(
        style.severity(kind, f"{counts[kind]} {kind}{'' if counts[kind] == 1 else 's'}")
        for kind in SEVERITIES
        if counts[kind]
    )
    return f"Found {found} in this environment." if found else style.green("Nothing wrong with this environment.")

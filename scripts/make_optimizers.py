"""Writes schemas/optimizers.json: what the optimizers and schedulers of a config take.

The names, parameters and defaults are read from the signatures of the installed DeepSpeed and torch. Run it
again after either is updated; with `--check` it only says whether the file is up to date (exit 1: it is not).
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parent.parent / "schemas" / "optimizers.json"

# What DeepSpeedEngine._configure_basic_optimizer and get_optimizer_configuration build themselves
# (deepspeed/runtime/engine.py); torch.optim.Adagrad, Adam and AdamW come with the torch classes, and
# ZenFlowCPUAdam takes what DeepSpeedCPUAdam takes.
DEEPSPEED_CLASSES = {
    "FusedAdam": "deepspeed.ops.adam",
    "DeepSpeedCPUAdam": "deepspeed.ops.adam",
    "DeepSpeedCPUAdagrad": "deepspeed.ops.adagrad",
    "FusedLamb": "deepspeed.ops.lamb",
    "FusedLion": "deepspeed.ops.lion",
    "DeepSpeedCPULion": "deepspeed.ops.lion",
}
MUON = "MuonWithAuxAdam"
MUON_MODULE = "deepspeed.runtime.zero.muon.muon_optimizer"

Entry = dict[str, Any]


def main() -> int:
    """Write the file, or compare it with what would be written."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 when the file is stale")
    check: bool = parser.parse_args().check
    if check:
        problem = staleness()
        if problem:
            print(problem, file=sys.stderr)
        return 1 if problem else 0
    TARGET.write_text(as_text(catalogue()), encoding="utf-8")
    return 0


def staleness() -> str | None:
    """What is wrong with the committed file; None where it is up to date or can't be compared.

    torch adds a parameter now and then, so only the torch release that the file names is compared.
    """
    if not TARGET.is_file():
        return f"{TARGET.name} is missing: run scripts/make_optimizers.py"
    text = TARGET.read_text(encoding="utf-8")
    if json.loads(text)["torch"] != torch_version():
        return None
    return None if text == as_text(catalogue()) else f"{TARGET.name} is stale: run scripts/make_optimizers.py"


def as_text(content: Entry) -> str:
    """The file's text for this content."""
    return json.dumps(content, indent=2) + "\n"


def torch_version() -> str:
    """The installed torch release without its build (2.13.0, not 2.13.0+cpu)."""
    version: str = import_module("torch").__version__
    return version.partition("+")[0]


def catalogue() -> Entry:
    """The whole content of the file."""
    torch_classes = dict(torch_optimizers())
    return {
        "deepspeed": import_module("deepspeed").__version__,
        "torch": torch_version(),
        "names": {
            "deepspeed": sorted(import_module("deepspeed.runtime.config").DEEPSPEED_OPTIMIZERS),
            "torch": sorted(torch_classes),
        },
        "optimizers": {
            **{name: deepspeed_optimizer(name, module) for name, module in DEEPSPEED_CLASSES.items()},
            MUON: muon(),
            **{f"torch.optim.{name}": optimizer(cls) for name, cls in torch_classes.items()},
        },
        "schedulers": {**dict(deepspeed_schedulers()), **dict(torch_schedulers())},
    }


def deepspeed_optimizer(name: str, module: str) -> Entry:
    """The entry of a class of DeepSpeed's own."""
    return optimizer(getattr(import_module(module), name))


def torch_optimizers() -> Iterator[tuple[str, type]]:
    """The optimizers in torch.optim: DeepSpeedEngine._is_supported_optimizer takes any attribute there.

    The base class and the submodules pass that check too, but nothing can be built from them.
    """
    namespace = import_module("torch.optim")
    for name, value in sorted(vars(namespace).items()):
        if _is_concrete(name, value, namespace.Optimizer):
            yield name, value


def deepspeed_schedulers() -> Iterator[tuple[str, Entry]]:
    """The classes that deepspeed/runtime/lr_schedules.py declares valid."""
    namespace = import_module("deepspeed.runtime.lr_schedules")
    for name in namespace.VALID_LR_SCHEDULES:
        yield name, {"library": "deepspeed", **parameters(getattr(namespace, name))}


def torch_schedulers() -> Iterator[tuple[str, Entry]]:
    """The schedulers in torch.optim.lr_scheduler, which DeepSpeedEngine._scheduler_from_config tries next."""
    namespace = import_module("torch.optim.lr_scheduler")
    for name, value in sorted(vars(namespace).items()):
        if _is_concrete(name, value, namespace.LRScheduler):
            yield name, {"library": "torch", **parameters(value)}


def _is_concrete(name: str, value: object, base: type) -> bool:
    if name.startswith("_") or not isinstance(value, type):
        return False
    return issubclass(value, base) and value is not base


def optimizer(cls: type) -> Entry:
    """Parameters of an optimizer class and whether ZeRO knows it.

    The latter is ZERO_SUPPORTED_OPTIMIZERS in deepspeed/runtime/zero/utils.py: an exact match of the class.
    """
    supported = import_module("deepspeed.runtime.zero.utils").ZERO_SUPPORTED_OPTIMIZERS
    return {"tested_with_zero": cls in supported, **parameters(cls)}


def parameters(cls: type) -> Entry:
    """The keywords a class takes, with their defaults, and the ones it can't do without."""
    found = dict(_keywords(cls))
    required = [name for name, default in found.items() if default is inspect.Parameter.empty]
    return {"params": {n: d for n, d in found.items() if n not in required}, "required": required}


def _keywords(cls: type) -> Iterator[tuple[str, Any]]:
    """Name and default of each keyword but the first, which the engine hands over itself.

    That one is the model's parameters or, for a scheduler, the optimizer.
    """
    own = list(inspect.signature(cls).parameters.values())
    for parameter in own[1:]:
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            raise NotImplementedError(f"{cls.__name__} has an open signature: say here what it takes")
        yield parameter.name, parameter.default


def muon() -> Entry:
    """Muon's entry: the engine picks the keys for its two halves, the class fills in what is left out.

    See DeepSpeedEngine._MUON_HALF_KEYS and _ADAM_HALF_KEYS (deepspeed/runtime/engine.py), the base class in
    deepspeed/runtime/zero/muon/original_muon.py, and for per_head_muon set_optimizer_flags in
    deepspeed/__init__.py.
    """
    engine = import_module("deepspeed.runtime.engine").DeepSpeedEngine
    matrices, others = _muon_half_defaults(use_muon=True), _muon_half_defaults(use_muon=False)
    keys = engine._MUON_HALF_KEYS + engine._ADAM_HALF_KEYS
    shared = {key: matrices.get(key, others.get(key)) for key in keys}
    rates = {"lr": None, "muon_lr": matrices["lr"], "adam_lr": others["lr"]}
    # is_zero_supported_optimizer adds the class to the list when it is first asked.
    return {"tested_with_zero": True, "params": {**shared, **rates, "per_head_muon": False}, "required": []}


def _muon_half_defaults(use_muon: bool) -> Entry:
    build: Callable[[list[Entry]], Any] = getattr(import_module(MUON_MODULE), MUON)
    weight = import_module("torch").nn.Parameter(import_module("torch").zeros(2, 2))
    group: Entry = build([{"params": [weight], "use_muon": use_muon}]).param_groups[0]
    return {key: value for key, value in group.items() if key not in ("params", "use_muon")}


if __name__ == "__main__":
    sys.exit(main())

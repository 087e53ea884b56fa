"""Which optimizers and schedulers DeepSpeed takes from a config, and with which parameters.

The names and signatures stand in `schemas/optimizers.json`, written from an installed DeepSpeed and torch by
`scripts/make_optimizers.py`. What the engine does with them before it builds anything is said here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Literal, TypedDict

from dslint.data import read_data

OptimizerKind = Literal["deepspeed", "torch", "removed", "unknown"]
SchedulerKind = Literal["deepspeed", "torch", "unknown"]

# DEEPSPEED_OPTIMIZERS in deepspeed/runtime/config.py, in the spelling of DeepSpeed's documentation.
_SPELLINGS = ("Adam", "AdamW", "Adagrad", "Lamb", "Lion", "MuAdam", "MuAdamW", "MuSGD", "Muon")
# Names that the same list held before DeepSpeed 0.19.7.
_REMOVED = frozenset({"onebitadam", "zerooneadam", "onebitlamb"})

# DeepSpeedEngine._configure_basic_optimizer refuses it for every optimizer, before it builds one.
_OWN_ERROR = "max_grad_norm"
# Taken out for Adam, AdamW and Muon by the same function and by get_optimizer_configuration.
_TAKEN_OUT = frozenset({"torch_adam", "adam_w_mode", "fp32_optimizer_states"})
# Handed to DeepSpeedCPUAdam by get_optimizer_configuration: in the config it would come twice.
_HANDED_OVER = frozenset({"adamw_mode"})
# Further keywords of mup's wrappers around the torch classes.
_MUP_KEYWORDS = frozenset({"decoupled_wd"})
_MUP_CLASSES = {"muadam": "torch.optim.Adam", "muadamw": "torch.optim.AdamW", "musgd": "torch.optim.SGD"}
_MUON_CLASS = "MuonWithAuxAdam"
_SINGLE_CLASSES = {"lamb": "FusedLamb", "muon": _MUON_CLASS, **_MUP_CLASSES}
_CLASSES_BY_OFFLOAD = {
    "adagrad": ("torch.optim.Adagrad", "DeepSpeedCPUAdagrad"),
    "lion": ("FusedLion", "DeepSpeedCPULion"),
}

# Their constructors raise a RuntimeError: fused_adam.py and cpu_adam.py in deepspeed/ops/adam, and
# deepspeed/ops/lamb/fused_lamb.py.
_WITHOUT_AMSGRAD = frozenset({"FusedAdam", "DeepSpeedCPUAdam", "FusedLamb"})

# Schedulers of older torch releases took it; it has no effect in the newer ones that dropped it.
_TAKEN_BY_OLDER_TORCH = frozenset({"verbose"})

# A part of a name that tells what is meant, first match first.
_OPTIMIZER_HINTS = {
    "adamw": "AdamW",
    "adagrad": "Adagrad",
    "adafactor": "Adafactor",
    "rmsprop": "RMSprop",
    "lamb": "Lamb",
    "lion": "Lion",
    "muon": "Muon",
    "sgd": "SGD",
    "adam": "AdamW",
}
_SCHEDULER_HINTS = {
    "1cycle": "OneCycle",
    "cosine": "WarmupCosineLR",
    "linear": "WarmupDecayLR",
    "decay": "WarmupDecayLR",
    "constant": "WarmupLR",
    "rangetest": "LRRangeTest",
}


@dataclass(frozen=True)
class OptimizerSection:
    """The `optimizer` section as written, and what else decides on the class that is built.

    The ZeRO stage doesn't (an offload device counts at stage 0 too), nor does `zero_force_ds_cpu_optimizer`,
    which is about optimizers that a script hands over (DeepSpeedEngine._configure_optimizer).

    Attributes:
        type_name: The value of `optimizer.type`.
        params: The value of `optimizer.params`; DeepSpeed reads null and a missing key as no parameters.
        offload_device: `zero_optimization.offload_optimizer.device`, "none" without offload, None if unknown.
    """

    type_name: str
    params: Mapping[str, object] = field(default_factory=dict)
    offload_device: str | None = None


if TYPE_CHECKING:

    class _Signature(TypedDict):
        params: dict[str, object]
        required: list[str]

    class _Optimizer(_Signature):
        tested_with_zero: bool

    class _Scheduler(_Signature):
        library: Literal["deepspeed", "torch"]

    class _Names(TypedDict):
        deepspeed: list[str]
        torch: list[str]

    class _Catalogue(TypedDict):
        deepspeed: str
        torch: str
        names: _Names
        optimizers: dict[str, _Optimizer]
        schedulers: dict[str, _Scheduler]


@cache
def _catalogue() -> _Catalogue:
    import json

    content: _Catalogue = json.loads(read_data("schemas", "optimizers.json"))
    return content


def optimizer_kind(type_name: str) -> OptimizerKind:
    """Whose optimizer this name is; only "deepspeed" and "torch" can be built.

    DeepSpeedConfig lowers the case of DeepSpeed's own names (deepspeed/runtime/config.py); torch.optim is
    asked for the exact name (DeepSpeedEngine._is_supported_optimizer). `Optimizer` or `lr_scheduler` pass
    that check and fail a moment later, so they count as unknown.
    """
    names = _catalogue()["names"]
    lowered = type_name.lower()
    if lowered in names["deepspeed"]:
        return "deepspeed"
    if type_name in names["torch"]:
        return "torch"
    return "removed" if lowered in _REMOVED else "unknown"


def near_optimizer(type_name: str) -> str | None:
    """The name that was probably meant; None where nothing is near or the name is fine."""
    if optimizer_kind(type_name) in ("deepspeed", "torch"):
        return None
    names = _SPELLINGS + tuple(_catalogue()["names"]["torch"])
    return _near(type_name, names, _OPTIMIZER_HINTS)


def optimizer_classes(section: OptimizerSection) -> tuple[str, ...]:
    """The classes that may be built: one where all that decides is known, none for a name that is refused.

    See DeepSpeedEngine._configure_basic_optimizer in deepspeed/runtime/engine.py. ZenFlow's variant of
    DeepSpeedCPUAdam is not told apart from it.
    """
    name = section.type_name.lower()
    if optimizer_kind(section.type_name) == "torch":
        return (f"torch.optim.{section.type_name}",)
    if name in ("adam", "adamw"):
        return _adam_classes(section)
    if name in _CLASSES_BY_OFFLOAD:
        return _by_offload(section, *_CLASSES_BY_OFFLOAD[name])
    return (_SINGLE_CLASSES[name],) if name in _SINGLE_CLASSES else ()


def _adam_classes(section: OptimizerSection) -> tuple[str, ...]:
    """See DeepSpeedEngine.get_optimizer_configuration: torch_adam comes before the offload device."""
    torch_adam = _truth(section.params.get("torch_adam", False))
    fused = _by_offload(section, "FusedAdam", "DeepSpeedCPUAdam")
    if torch_adam is None:
        return fused + _torch_adam_classes(section)
    return _torch_adam_classes(section) if torch_adam else fused


def _torch_adam_classes(section: OptimizerSection) -> tuple[str, ...]:
    decoupled = section.type_name.lower() == "adamw" or _truth(section.params.get("adam_w_mode", True))
    if decoupled is None:
        return ("torch.optim.Adam", "torch.optim.AdamW")
    return ("torch.optim.AdamW",) if decoupled else ("torch.optim.Adam",)


def _by_offload(section: OptimizerSection, on_device: str, on_host: str) -> tuple[str, ...]:
    """DeepSpeedEngine.zero_use_cpu_optimizer: the devices cpu and nvme, at any stage."""
    if section.offload_device == "none":
        return (on_device,)
    return (on_host,) if section.offload_device in ("cpu", "nvme") else (on_device, on_host)


def unknown_params(section: OptimizerSection) -> tuple[str, ...]:
    """The parameters that no class in question takes: a TypeError in `deepspeed.initialize`.

    `max_grad_norm` is not among them: it has an error of its own, and Muon drops what it doesn't know.
    """
    classes = optimizer_classes(section)
    if not classes or _MUON_CLASS in classes:
        return ()
    taken = frozenset[str]().union(*(_taken(section, name) for name in classes))
    return tuple(name for name in section.params if name not in taken and name != _OWN_ERROR)


def _taken(section: OptimizerSection, class_name: str) -> frozenset[str]:
    known = frozenset(_catalogue()["optimizers"][class_name]["params"])
    lowered = section.type_name.lower()
    if lowered in ("adam", "adamw"):
        return (known | _TAKEN_OUT) - _HANDED_OVER
    return known | _MUP_KEYWORDS if lowered in _MUP_CLASSES else known


def dropped_params(section: OptimizerSection) -> tuple[str, ...]:
    """The parameters that DeepSpeed takes without an error and without any use, whatever class is built.

    Muon picks the keys of its two halves (DeepSpeedEngine._muon_half_defaults); `fp32_optimizer_states` is
    only read for DeepSpeedCPUAdam.
    """
    name = section.type_name.lower()
    if name not in ("adam", "adamw", "muon"):
        return ()
    dropped = () if name != "muon" else _dropped_by_muon(section)
    if "fp32_optimizer_states" in section.params and "DeepSpeedCPUAdam" not in _adam_classes(section):
        dropped += ("fp32_optimizer_states",)
    return dropped


def _dropped_by_muon(section: OptimizerSection) -> tuple[str, ...]:
    used = _TAKEN_OUT.union(_catalogue()["optimizers"][_MUON_CLASS]["params"], (_OWN_ERROR,))
    if _truth(section.params.get("torch_adam", False)) is not False:
        used |= {"foreach"}
    return tuple(name for name in section.params if name not in used)


def refuses_amsgrad(section: OptimizerSection) -> bool:
    """Whether `amsgrad` is asked for and every class in question raises a RuntimeError for it."""
    classes = optimizer_classes(section)
    asked = _truth(section.params.get("amsgrad", False)) is True
    return asked and bool(classes) and _WITHOUT_AMSGRAD.issuperset(classes)


def is_untested_with_zero(section: OptimizerSection, stage: int | None) -> bool | None:
    """Whether the optimizer needs `zero_allow_untested_optimizer` at this stage; None if that can't be told.

    ZERO_SUPPORTED_OPTIMIZERS (deepspeed/runtime/zero/utils.py) lists exact classes, and
    DeepSpeedEngine._do_optimizer_sanity_check asks from stage 1 on.
    """
    known = _catalogue()["optimizers"]
    answers = {not known[name]["tested_with_zero"] for name in optimizer_classes(section)}
    if stage == 0 or answers == {False}:
        return False
    return True if answers == {True} and stage is not None else None


def default_value(section: OptimizerSection, param: str) -> object:
    """The value a parameter has where the config leaves it out; None where the classes in question differ."""
    known = [_catalogue()["optimizers"][name]["params"] for name in optimizer_classes(section)]
    values = [params.get(param) for params in known]
    return values[0] if values and all(value == values[0] for value in values) else None


def scheduler_kind(type_name: str) -> SchedulerKind:
    """Whose scheduler this name is, as DeepSpeedEngine._scheduler_from_config looks it up: case counts.

    A "torch" one is built around DeepSpeed's optimizer wrapper, which torch refuses: it works at stage 0 in
    fp32 only.
    """
    entry = _catalogue()["schedulers"].get(type_name)
    return entry["library"] if entry else "unknown"


def near_scheduler(type_name: str) -> str | None:
    """The name that was probably meant; None where nothing is near or the name is fine."""
    if scheduler_kind(type_name) != "unknown":
        return None
    return _near(type_name, tuple(_catalogue()["schedulers"]), _SCHEDULER_HINTS)


def unknown_scheduler_params(type_name: str, params: Mapping[str, object]) -> tuple[str, ...]:
    """The parameters that this scheduler doesn't take: a TypeError in `deepspeed.initialize`."""
    entry = _catalogue()["schedulers"].get(type_name)
    if entry is None:
        return ()
    taken = {*entry["params"], *entry["required"]}
    if entry["library"] == "torch":
        taken |= _TAKEN_BY_OLDER_TORCH
    return tuple(name for name in params if name not in taken)


def missing_scheduler_params(type_name: str, params: Mapping[str, object]) -> tuple[str, ...]:
    """The parameters that this scheduler can't do without: a TypeError in `deepspeed.initialize`."""
    entry = _catalogue()["schedulers"].get(type_name)
    return tuple(name for name in entry["required"] if name not in params) if entry else ()


def refused_scheduler_values(type_name: str, params: Mapping[str, object]) -> tuple[str, ...]:
    """The parameters whose value DeepSpeed 0.19.8 refuses when it builds this scheduler.

    The step counts of WarmupLR, WarmupDecayLR, WarmupCosineLR and LRRangeTest must be positive integers,
    and the step sizes of OneCycle numbers (or numbers in quotes) in their range; see
    deepspeed/runtime/lr_schedules.py.
    Values of no JSON type are not judged.
    """
    given = {name: value for name, value in params.items() if _truth(value) is not None or value is None}
    if type_name == "OneCycle":
        return _refused_by_one_cycle(given)
    counts = {"LRRangeTest": "lr_range_test_step_size"}
    counts.update(dict.fromkeys(("WarmupLR", "WarmupDecayLR", "WarmupCosineLR"), "warmup_num_steps"))
    name = counts.get(type_name)
    if name is None or name not in given:
        return ()
    return () if _is_positive_integer(given[name]) else (name,)


def scheduler_values_not_numbers(type_name: str, params: Mapping[str, object]) -> tuple[str, ...]:
    """The parameters with which one of DeepSpeed's schedulers computes, and can't: text, objects, sometimes null.

    Rates may be lists with a number for each parameter group. cos_min_ratio, which is used after the warm-up only,
    is left out, as are values of no JSON type.
    """
    return tuple(
        name
        for name, value in params.items()
        if name in _COMPUTED_WITH.get(type_name, ())
        and (isinstance(value, str | dict) or _is_null_or_list_in_vain(name, value))
    )


def _is_null_or_list_in_vain(name: str, value: object) -> bool:
    if name == "total_num_steps":
        return value is None or isinstance(value, list)
    return name == "warmup_min_lr" and value is None


_RATES = ("warmup_min_lr", "warmup_max_lr")
_COMPUTED_WITH: Mapping[str, tuple[str, ...]] = {
    "WarmupLR": _RATES,
    "WarmupDecayLR": (*_RATES, "total_num_steps"),
    "WarmupCosineLR": ("warmup_min_ratio", "total_num_steps"),
    "OneCycle": ("cycle_min_lr", "cycle_max_lr", "decay_lr_rate"),
    "LRRangeTest": ("lr_range_test_min_lr", "lr_range_test_step_rate"),
}
"""What DeepSpeed 0.19.8 computes with at once, or in the first steps (deepspeed/runtime/lr_schedules.py)."""


def _is_positive_integer(value: object) -> bool:
    """As Python sees it in DeepSpeed's checks: true is 1, 100.0 is no integer."""
    return isinstance(value, int) and value > 0


def _refused_by_one_cycle(params: Mapping[str, object]) -> tuple[str, ...]:
    first = _as_float(params.get("cycle_first_step_size", 1))
    second = params.get("cycle_second_step_size")
    second_size = 0.0 if second is None else _as_float(second)
    refused = ("cycle_first_step_size",) if first is None or first <= 0 else ()
    return refused + (("cycle_second_step_size",) if second_size is None or second_size < 0 else ())


def _as_float(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, int | float | str) else None
    except (ValueError, OverflowError):
        return None


def _truth(value: object) -> bool | None:
    """How Python's `if` takes a JSON value; None for anything else, which stands for an unknown value."""
    return bool(value) if value is None or isinstance(value, bool | int | float | str | list | dict) else None


def _near(name: str, names: Iterable[str], hints: Mapping[str, str]) -> str | None:
    """The same letters first, then a slip of the finger, then a telling part, then anything alike."""
    from difflib import get_close_matches

    squashed = _squash(name)
    by_letters = {_squash(known): known for known in names}
    if squashed in by_letters:
        return by_letters[squashed]
    slip = get_close_matches(squashed, by_letters, n=1, cutoff=0.85)
    hint = next((known for part, known in hints.items() if part in squashed), None)
    alike = slip or ([] if hint else get_close_matches(squashed, by_letters, n=1, cutoff=0.6))
    return by_letters[alike[0]] if alike else hint


def _squash(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())

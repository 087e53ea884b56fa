"""Facts about the optimizer and the scheduler of a config."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dslint.documents.document import Document
from dslint.runs.effective import EffectiveConfig, span_of_entry
from dslint.runs.item import Item
from dslint.runs.keys import NamePath
from dslint.runs.optimizers import (
    OptimizerSection,
    dropped_params,
    is_untested_with_zero,
    missing_scheduler_params,
    near_optimizer,
    near_scheduler,
    optimizer_classes,
    optimizer_kind,
    refused_scheduler_values,
    refuses_amsgrad,
    scheduler_kind,
    unknown_params,
    unknown_scheduler_params,
)
from dslint.runs.unknown import UNDECIDABLE, Unknown

Items = tuple[Item, ...]
OPTIMIZER_PARAMS: NamePath = ("optimizer", "params")
SCHEDULER_PARAMS: NamePath = ("scheduler", "params")


def optimizer_section(config: EffectiveConfig) -> OptimizerSection | None | Unknown:
    """The optimizer that the config asks for; None where it asks for none."""
    name = config.value(("optimizer", "type"))
    if not isinstance(name, str):
        return None if name is None else UNDECIDABLE
    device = config.value(("zero_optimization", "offload_optimizer", "device"))
    params = _params(config, OPTIMIZER_PARAMS)
    return OptimizerSection(name, params, device if isinstance(device, str) else None)


def _params(config: EffectiveConfig, path: NamePath) -> Mapping[str, Any]:
    """Parameters as written, with Unknown where a placeholder or a filled "auto" stands."""
    written = config.written(path)
    if not isinstance(written, dict):
        return {}
    return {name: config.value((*path, name)) if value == "auto" else value for name, value in written.items()}


def about_optimizer(ask: Callable[[OptimizerSection], Any]) -> Callable[[EffectiveConfig], Any]:
    """A fact about the optimizer; None where there is none."""

    def work_out(config: EffectiveConfig) -> Any:
        section = optimizer_section(config)
        return ask(section) if isinstance(section, OptimizerSection) else section

    return work_out


def is_untested(config: EffectiveConfig) -> bool | Unknown:
    """Whether ZeRO refuses the optimizer unless zero_allow_untested_optimizer is on."""
    section = optimizer_section(config)
    stage = config.value(("zero_optimization", "stage"))
    if isinstance(stage, Unknown) or not isinstance(section, OptimizerSection):
        return stage if isinstance(stage, Unknown) else section or False
    if optimizer_kind(section.type_name) not in ("deepspeed", "torch"):
        return False
    answer = is_untested_with_zero(section, stage)
    return UNDECIDABLE if answer is None else answer


def _scheduler(config: EffectiveConfig) -> str | None | Unknown:
    name = config.value(("scheduler", "type"))
    return name if name is None or isinstance(name, str) else UNDECIDABLE


def about_scheduler(ask: Callable[[str, Mapping[str, Any]], Any]) -> Callable[[EffectiveConfig], Any]:
    """A fact about the scheduler; None where there is none."""

    def work_out(config: EffectiveConfig) -> Any:
        name = _scheduler(config)
        return ask(name, _params(config, SCHEDULER_PARAMS)) if isinstance(name, str) else name

    return work_out


def items(config: EffectiveConfig, path: NamePath, names: Iterable[str] | None | Unknown) -> Items | Unknown:
    """Parameters as items with their places."""
    if isinstance(names, Unknown):
        return names
    document: Document = config.document
    return tuple(
        Item({"key": name, "value": config.written((*path, name))}, document.source, span_of_entry(document, (*path, name)))
        for name in names or ()
    )


def _unknown_optimizer_params(config: EffectiveConfig) -> Items | Unknown:
    return items(config, OPTIMIZER_PARAMS, about_optimizer(unknown_params)(config))


def _dropped_optimizer_params(config: EffectiveConfig) -> Items | Unknown:
    return items(config, OPTIMIZER_PARAMS, about_optimizer(dropped_params)(config))


def _not_numbers(config: EffectiveConfig) -> Items:
    """lr, eps and weight_decay as text, which no optimizer turns into a number."""
    params = config.written(OPTIMIZER_PARAMS)
    if not isinstance(params, dict):
        return ()
    names = [
        name for name in ("lr", "eps", "weight_decay") if isinstance(params.get(name), str) and params[name] != "auto"
    ]
    found = items(config, OPTIMIZER_PARAMS, names)
    return () if isinstance(found, Unknown) else found


def _unknown_scheduler_params(config: EffectiveConfig) -> Items | Unknown:
    return items(config, SCHEDULER_PARAMS, about_scheduler(unknown_scheduler_params)(config))


def _refused_scheduler_values(config: EffectiveConfig) -> Items | Unknown:
    return items(config, SCHEDULER_PARAMS, about_scheduler(_refused_values)(config))


def _refused_values(name: str, params: Mapping[str, Any]) -> tuple[str, ...]:
    return refused_scheduler_values(name, {key: value for key, value in params.items() if value != "auto"})


VALUES: Mapping[str, tuple[str, Callable[[EffectiveConfig], Any]]] = {
    "optimizer.kind": (
        'who has the optimizer: "deepspeed", "torch", "removed" or "unknown"; None without one',
        about_optimizer(lambda section: optimizer_kind(section.type_name)),
    ),
    "optimizer.near": (
        "the optimizer that was probably meant",
        about_optimizer(lambda section: near_optimizer(section.type_name)),
    ),
    "optimizer.classes": (
        "the classes that DeepSpeed may build",
        about_optimizer(lambda section: list(optimizer_classes(section))),
    ),
    "optimizer.refuses_amsgrad": (
        "whether amsgrad is asked of a class that refuses it",
        about_optimizer(refuses_amsgrad),
    ),
    "optimizer.is_untested": ("whether ZeRO takes the optimizer only when told to", is_untested),
    "scheduler.kind": (
        'who has the scheduler: "deepspeed", "torch" or "unknown"; None without one',
        about_scheduler(lambda name, params: scheduler_kind(name)),
    ),
    "scheduler.near": (
        "the scheduler that was probably meant",
        about_scheduler(lambda name, params: near_scheduler(name)),
    ),
    "scheduler.missing_params": (
        "names of parameters that the scheduler can't do without",
        about_scheduler(lambda name, params: list(missing_scheduler_params(name, params))),
    ),
}

LISTS: Mapping[str, tuple[str, Callable[[EffectiveConfig], Any]]] = {
    "optimizer.unknown_params": ("optimizer parameters that the class doesn't take", _unknown_optimizer_params),
    "optimizer.dropped_params": ("optimizer parameters that are taken and not used", _dropped_optimizer_params),
    "optimizer.text_params": ("optimizer numbers that are given as text", _not_numbers),
    "scheduler.unknown_params": ("scheduler parameters that the class doesn't take", _unknown_scheduler_params),
    "scheduler.refused_values": ("scheduler parameters whose value is refused", _refused_scheduler_values),
}
FIELDS = frozenset({"key", "value"})

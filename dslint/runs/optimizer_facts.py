"""Facts about the optimizer and the scheduler of a config."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from dslint.documents.document import Document
from dslint.runs.effective import EffectiveConfig, span_of_entry
from dslint.runs.facts import Fact
from dslint.runs.item import Item
from dslint.runs.keys import NamePath
from dslint.runs.meant import plain_number
from dslint.runs.near_names import Near, advice, near_name
from dslint.runs.optimizers import (
    OptimizerSection,
    default_value,
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
    scheduler_values_not_numbers,
    unknown_params,
    unknown_scheduler_params,
)
from dslint.runs.schema_check import fits
from dslint.runs.unknown import UNDECIDABLE, Unknown

Items = tuple[Item, ...]
OPTIMIZER_PARAMS: NamePath = ("optimizer", "params")
SCHEDULER_PARAMS: NamePath = ("scheduler", "params")

# What the Trainer puts for "auto" (HfTrainerDeepSpeedConfig in transformers/integrations/deepspeed.py).
FILLED_BY_TRAINER: Mapping[NamePath, frozenset[str]] = {
    OPTIMIZER_PARAMS: frozenset({"lr", "betas", "eps", "weight_decay"}),
    SCHEDULER_PARAMS: frozenset({"warmup_min_lr", "warmup_max_lr", "warmup_num_steps", "total_num_steps"}),
}

# Further parameters that the schema doesn't list, for did-you-mean.
_OTHER_PARAMS = ("amsgrad", "bias_correction", "dampening", "nesterov")
_HABITS = {
    "alpha": "betas",
    "beta": "betas",
    "beta1": "betas",
    "beta2": "betas",
    "adam_beta1": "betas",
    "adam_beta2": "betas",
    "epsilon": "eps",
    "adam_epsilon": "eps",
    "learning_rate": "lr",
    "wd": "weight_decay",
    "decay": "weight_decay",
    "warmup": "warmup_num_steps",
    "warmup_steps": "warmup_num_steps",
    "warmup_step": "warmup_num_steps",
    "num_warmup_steps": "warmup_num_steps",
    "total_steps": "total_num_steps",
    "total_num_step": "total_num_steps",
    "num_training_steps": "total_num_steps",
    "max_steps": "total_num_steps",
    "max_lr": "warmup_max_lr",
    "min_lr": "warmup_min_lr",
}
"""Names from other libraries, with DeepSpeed's word for the same thing."""


def optimizer_section(config: EffectiveConfig) -> OptimizerSection | Unknown | None:
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
    if section is None:
        return False
    if isinstance(section, Unknown):
        return section
    if isinstance(stage, Unknown):
        return stage
    if optimizer_kind(section.type_name) not in ("deepspeed", "torch"):
        return False
    answer = is_untested_with_zero(section, stage)
    return UNDECIDABLE if answer is None else answer


def _scheduler(config: EffectiveConfig) -> str | Unknown | None:
    name = config.value(("scheduler", "type"))
    return name if name is None or isinstance(name, str) else UNDECIDABLE


def about_scheduler(ask: Callable[[str, Mapping[str, Any]], Any]) -> Callable[[EffectiveConfig], Any]:
    """A fact about the scheduler; None where there is none."""

    def work_out(config: EffectiveConfig) -> Any:
        name = _scheduler(config)
        return ask(name, _params(config, SCHEDULER_PARAMS)) if isinstance(name, str) else name

    return work_out


def items(
    config: EffectiveConfig,
    path: NamePath,
    names: Iterable[str] | Unknown | None,
    known: Iterable[str] = (),
) -> Items | Unknown:
    """Parameters as items with their places, and with the one of `known` that was probably meant."""
    if isinstance(names, Unknown):
        return names
    document: Document = config.document
    return tuple(
        Item(_fields(config, path, name, known), document.source, span_of_entry(document, (*path, name)))
        for name in names or ()
    )


def _fields(config: EffectiveConfig, path: NamePath, name: str, known: Iterable[str]) -> Mapping[str, Any]:
    value = config.written((*path, name))
    near = _near_param(name, [key for key in known if key != name])
    return {
        "key": name,
        "value": value,
        "advice": advice(near),
        "new_name": None if near is None else _new_name(config, path, near.key, value),
        "number": plain_number(value),
        "steps": _meant_steps(config, name, value),
    }


def _near_param(name: str, known: list[str]) -> Near | None:
    """The parameter that was probably meant; None where nothing is near."""
    habit = _HABITS.get(name.lower())
    return Near(habit, is_slip=False) if habit in known else near_name(name, known)


def _new_name(config: EffectiveConfig, path: NamePath, name: str, value: Any) -> str | None:
    """The name that a parameter can be given; None where it is taken or wouldn't go with the value."""
    if config.given((*path, name)) is not False:
        return None
    if value == "auto":
        return name if name in FILLED_BY_TRAINER[path] else None
    node = config.keys.node((*path, name))
    return name if node is None or fits(value, node, config.keys.schema) else None


def _meant_steps(config: EffectiveConfig, name: str, value: Any) -> int | None:
    """The number of steps that a refused value plainly stands for: "10" for 10, 0 for (almost) none, a share."""
    number = plain_number(value)
    if isinstance(number, int) and number > 0:
        return number
    if name != "warmup_num_steps" or number is None or not 0 <= number < 1:
        return None
    total = config.value((*SCHEDULER_PARAMS, "total_num_steps"))
    if number == 0:
        return 1
    return max(1, round(number * total)) if isinstance(total, int) and not isinstance(total, bool) else None


def _known_names(config: EffectiveConfig, path: NamePath) -> tuple[str, ...]:
    """The parameters that the schema lists, of whatever class."""
    node = config.keys.node(path)
    listed = config.keys.section(node).get("properties", {}) if node is not None else {}
    return tuple(name for name in (*listed, *_OTHER_PARAMS) if name != "max_grad_norm")


def _taken_optimizer_params(config: EffectiveConfig) -> tuple[str, ...]:
    """Those of the listed parameters that the optimizer at hand takes."""
    section = optimizer_section(config)
    if not isinstance(section, OptimizerSection):
        return ()
    names = _known_names(config, OPTIMIZER_PARAMS)
    refused = unknown_params(replace(section, params=dict.fromkeys(names, False)))
    return tuple(name for name in names if name not in refused)


def _taken_scheduler_params(config: EffectiveConfig) -> tuple[str, ...]:
    """Those of the listed parameters that the scheduler at hand takes."""
    type_name = _scheduler(config)
    if not isinstance(type_name, str):
        return ()
    names = _known_names(config, SCHEDULER_PARAMS)
    refused = unknown_scheduler_params(type_name, dict.fromkeys(names))
    return tuple(name for name in names if name not in refused)


def _unknown_optimizer_params(config: EffectiveConfig) -> Items | Unknown:
    names = about_optimizer(unknown_params)(config)
    return items(config, OPTIMIZER_PARAMS, names, _taken_optimizer_params(config))


def _dropped_optimizer_params(config: EffectiveConfig) -> Items | Unknown:
    return items(config, OPTIMIZER_PARAMS, about_optimizer(dropped_params)(config))


def _not_numbers(config: EffectiveConfig) -> Items:
    """lr, eps and weight_decay as text, which no optimizer turns into a number."""
    params = config.written(OPTIMIZER_PARAMS)
    if not isinstance(params, dict):
        return ()
    names = [
        name
        for name in ("lr", "eps", "weight_decay")
        if isinstance(params.get(name), str) and params[name] != "auto"
    ]
    found = items(config, OPTIMIZER_PARAMS, names)
    return () if isinstance(found, Unknown) else found


def _optimizer_values_not_numbers(config: EffectiveConfig) -> Items:
    """lr, eps and weight_decay that are null, an object or a list; some class of torch takes a list for eps."""
    params = config.written(OPTIMIZER_PARAMS)
    if not isinstance(params, dict):
        return ()
    names = [
        name
        for name in ("lr", "eps", "weight_decay")
        if name in params
        and (params[name] is None or isinstance(params[name], dict if name == "eps" else dict | list))
    ]
    found = items(config, OPTIMIZER_PARAMS, names)
    return () if isinstance(found, Unknown) else found


def _unknown_scheduler_params(config: EffectiveConfig) -> Items | Unknown:
    names = about_scheduler(unknown_scheduler_params)(config)
    return items(config, SCHEDULER_PARAMS, names, _taken_scheduler_params(config))


def _unfilled_auto(path: NamePath) -> Callable[[EffectiveConfig], Items | Unknown]:
    """Parameters with the value "auto" that not even the Trainer fills in."""

    def work_out(config: EffectiveConfig) -> Items | Unknown:
        params = config.written(path)
        if not isinstance(params, dict):
            return ()
        filled = FILLED_BY_TRAINER[path]
        return items(
            config, path, [name for name, value in params.items() if value == "auto" and name not in filled]
        )

    return work_out


def _refused_scheduler_values(config: EffectiveConfig) -> Items | Unknown:
    return items(config, SCHEDULER_PARAMS, about_scheduler(_refused_values)(config))


def _refused_values(name: str, params: Mapping[str, Any]) -> tuple[str, ...]:
    return refused_scheduler_values(name, {key: value for key, value in params.items() if value != "auto"})


def _scheduler_values_not_numbers(config: EffectiveConfig) -> Items | Unknown:
    return items(config, SCHEDULER_PARAMS, about_scheduler(_not_numbers_for)(config))


def _not_numbers_for(name: str, params: Mapping[str, Any]) -> tuple[str, ...]:
    return scheduler_values_not_numbers(name, {key: value for key, value in params.items() if value != "auto"})


def _counts_with_fraction(config: EffectiveConfig) -> Items | Unknown:
    """Step counts such as 100.0 or 1e3: an int for Hjson, and a float for JSON."""
    document = config.document
    names = [
        name
        for name in ("warmup_num_steps", "lr_range_test_step_size")
        if isinstance(config.written((*SCHEDULER_PARAMS, name)), int)
        and set(document.source.slice(document.values[(*SCHEDULER_PARAMS, name)])) & set(".eE")
    ]
    return items(config, SCHEDULER_PARAMS, names)


def _fact(meaning: str, work_out: Callable[[EffectiveConfig], Any]) -> Fact:
    return Fact(meaning, lambda facts: work_out(facts.config))


def _list(meaning: str, work_out: Callable[[EffectiveConfig], Any]) -> Fact:
    return Fact(
        meaning,
        lambda facts: work_out(facts.config),
        frozenset({"key", "value", "advice", "new_name", "number", "steps"}),
    )


FACTS: Mapping[str, Fact] = {
    "optimizer.kind": _fact(
        'who has the optimizer: "deepspeed", "torch", "removed" or "unknown"; None without one',
        about_optimizer(lambda section: optimizer_kind(section.type_name)),
    ),
    "optimizer.near": _fact(
        "the optimizer that was probably meant",
        about_optimizer(lambda section: near_optimizer(section.type_name)),
    ),
    "optimizer.classes": _fact(
        "the classes that DeepSpeed may build",
        about_optimizer(lambda section: list(optimizer_classes(section))),
    ),
    "optimizer.refuses_amsgrad": _fact(
        "whether amsgrad is asked of a class that refuses it",
        about_optimizer(refuses_amsgrad),
    ),
    "optimizer.is_untested": _fact("whether ZeRO takes the optimizer only when told to", is_untested),
    "optimizer.default_lr": _fact(
        "the learning rate that the class takes where none is given",
        about_optimizer(lambda section: default_value(section, "lr")),
    ),
    "scheduler.kind": _fact(
        'who has the scheduler: "deepspeed", "torch" or "unknown"; None without one',
        about_scheduler(lambda name, params: scheduler_kind(name)),
    ),
    "scheduler.near": _fact(
        "the scheduler that was probably meant",
        about_scheduler(lambda name, params: near_scheduler(name)),
    ),
    "scheduler.default_params": _fact(
        "the params that leave everything at the scheduler's defaults: an empty section", lambda config: {}
    ),
    "scheduler.missing_params": _fact(
        "names of parameters that the scheduler can't do without",
        about_scheduler(lambda name, params: list(missing_scheduler_params(name, params))),
    ),
    "optimizer.unknown_params": _list(
        "optimizer parameters that the class doesn't take",
        _unknown_optimizer_params,
    ),
    "optimizer.dropped_params": _list(
        "optimizer parameters that are taken and not used",
        _dropped_optimizer_params,
    ),
    "optimizer.text_params": _list("optimizer numbers that are given as text", _not_numbers),
    "optimizer.not_numbers": _list(
        "optimizer parameters that should be numbers and are null, an object or a list",
        _optimizer_values_not_numbers,
    ),
    "optimizer.unfilled_auto": _list(
        'optimizer parameters with the value "auto" that the Trainer doesn\'t fill',
        _unfilled_auto(OPTIMIZER_PARAMS),
    ),
    "scheduler.unfilled_auto": _list(
        'scheduler parameters with the value "auto" that the Trainer doesn\'t fill',
        _unfilled_auto(SCHEDULER_PARAMS),
    ),
    "scheduler.unknown_params": _list(
        "scheduler parameters that the class doesn't take",
        _unknown_scheduler_params,
    ),
    "scheduler.refused_values": _list("scheduler parameters whose value is refused", _refused_scheduler_values),
    "scheduler.not_numbers": _list(
        "scheduler parameters that should be numbers and are none",
        _scheduler_values_not_numbers,
    ),
    "scheduler.counts_with_fraction": _list(
        "step counts that are written as 100.0 or 1e3, which JSON takes for a fraction and Hjson does not",
        _counts_with_fraction,
    ),
}

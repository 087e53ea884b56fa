"""What Accelerate writes over "auto" (accelerate/accelerator.py, Accelerator._prepare_deepspeed)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dslint.runs.accelerate_settings import launched_setting
from dslint.runs.keys import NamePath
from dslint.runs.script.events import Call
from dslint.runs.script.facts import accelerator
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.items import plain
from dslint.runs.script.values import Thing, Value
from dslint.runs.unknown import UNDECIDABLE, Unknown, product

if TYPE_CHECKING:
    from dslint.runs.facts import Facts

Filling = Callable[["Facts"], Any]


def fill(facts: Facts, path: NamePath) -> Any:
    """The value that takes the place of an "auto"; Unknown where it can't be told."""
    filling = FILLED.get(path)
    if filling is None or accelerator.changes_config(deeds_of(facts)):
        return UNDECIDABLE
    return filling(facts)


def accumulation_of_accelerator(facts: Facts) -> Any:
    """Forward passes an optimizer step, as the Accelerator itself has them."""
    made = accelerator.only_accelerator(deeds_of(facts))
    if made is None or any(store.name == "gradient_accumulation_steps" for store in deeds_of(facts).stores):
        return UNDECIDABLE
    said = launched_setting(facts.run.launch, facts.run.accelerate, "gradient_accumulation_steps")
    by_plugin = made.argument(None, "gradient_accumulation_plugin")
    if by_plugin is not None:
        return _steps_of(by_plugin)
    if said is not None:
        return UNDECIDABLE if said.value == "auto" else said.value
    if made.has(3, "gradient_accumulation_steps"):
        return plain(made.argument(3, "gradient_accumulation_steps"))
    return 1 if made.is_complete else UNDECIDABLE


def _steps_of(plugin: Value) -> Any:
    is_known = isinstance(plugin, Thing) and plugin.name.rpartition(".")[2] == "GradientAccumulationPlugin"
    if not is_known or plugin.call is None or not plugin.call.is_complete:
        return UNDECIDABLE
    return plain(plugin.call.argument(0, "num_steps"))


def _accumulation(facts: Facts) -> Any:
    """The plugin's own number, or the launcher's, or else the Accelerator's."""
    said = _of_plugin(facts, 1, "gradient_accumulation_steps")
    return accumulation_of_accelerator(facts) if said in (None, "auto") else said


def _clipping(facts: Facts) -> Any:
    """Never what clip_grad_norm_ is called with."""
    said = _of_plugin(facts, 2, "gradient_clipping")
    return 1.0 if said in (None, "auto") else said


def _of_plugin(facts: Facts, position: int, name: str) -> Any:
    """What the plugin, or else the launcher, says; None where both are silent."""
    made = accelerator.only_accelerator(deeds_of(facts))
    if made is None or not made.is_complete:
        return UNDECIDABLE
    plugins = accelerator.plugins_of(made)
    if len(plugins) != (made.argument(None, "deepspeed_plugin") is not None) or made.has(
        None, "deepspeed_plugins"
    ):
        return UNDECIDABLE
    if plugins and plugins[0].call is not None:
        if not plugins[0].call.is_complete:
            return UNDECIDABLE
        value = plugins[0].call.argument(position, name)
        if value is not None:
            return plain(value)
    said = launched_setting(facts.run.launch, facts.run.accelerate, name)
    return None if said is None else said.value


def _micro_batch(facts: Facts) -> Any:
    """The smallest batch size of the loaders that are prepared together with the model."""
    made = accelerator.only_accelerator(deeds_of(facts))
    together = _with_model(facts)
    if made is None or together is None or not together.is_clear or _divides_batches(made):
        return UNDECIDABLE
    sizes = [_batch_size(loader) for loader in together.of("loader")]
    if not sizes or not all(isinstance(size, int) and not isinstance(size, bool) for size in sizes):
        return UNDECIDABLE
    takes_smallest = _of_plugin(facts, 4, "is_train_batch_min")
    if isinstance(takes_smallest, Unknown):
        return UNDECIDABLE if len(set(sizes)) > 1 else sizes[0]
    return max(sizes) if takes_smallest is False else min(sizes)


def _with_model(facts: Facts) -> accelerator.Preparation | None:
    """The first `prepare` that gets a model."""
    return next((one for one in accelerator.preparations(facts) if one.of("model")), None)


def _divides_batches(made: Call) -> bool:
    """Whether the Accelerator may divide a loader's batches among the ranks."""
    return (
        not made.is_complete
        or made.has(5, "dataloader_config")
        or made.argument(1, "split_batches") not in (None, False)
    )


def _batch_size(loader: Value) -> Any:
    call = loader.call if isinstance(loader, Thing) else None
    if call is None or call.dotted != "torch.utils.data.DataLoader" or not call.is_complete:
        return UNDECIDABLE
    if call.has(4, "batch_sampler"):
        return UNDECIDABLE
    return plain(call.argument(1, "batch_size")) if call.has(1, "batch_size") else 1


def _train_batch(facts: Facts) -> Any:
    if facts.given("config.sequence_parallel_size") is not False:
        return UNDECIDABLE
    names = ("config.train_micro_batch_size_per_gpu", "config.gradient_accumulation_steps", "ranks")
    return product(facts.value(name) for name in names)


def _of_dummy(role: str, position: int, name: str, default: Any) -> Filling:
    """An argument of the DummyOptim, or DummyScheduler, that is prepared together with the model."""

    def find(facts: Facts) -> Any:
        together = _with_model(facts)
        found = [] if together is None else together.of(role)
        call = found[0].call if len(found) == 1 and isinstance(found[0], Thing) else None
        if call is None or not call.is_complete:
            return UNDECIDABLE
        return plain(call.argument(position, name)) if call.has(position, name) else default

    return find


def _warmup_steps(facts: Facts) -> Any:
    steps = _of_dummy("dummy_scheduler", 2, "warmup_num_steps", 0)(facts)
    return max(1, steps) if isinstance(steps, (int, float)) else steps


def _total_steps(facts: Facts) -> Any:
    steps, ranks = _of_dummy("dummy_scheduler", 1, "total_num_steps", None)(facts), facts.value("ranks")
    made = accelerator.only_accelerator(deeds_of(facts))
    if isinstance(ranks, Unknown) or made is None or _divides_batches(made):
        return ranks if isinstance(ranks, Unknown) else UNDECIDABLE
    return math.ceil(steps / ranks) if isinstance(steps, (int, float)) else UNDECIDABLE


def mixed_precision(facts: Facts) -> Any:
    """The Accelerator's argument, or else what the launcher says: "fp16", "bf16", "fp8" or "no"."""
    made = accelerator.only_accelerator(deeds_of(facts))
    if made is None or not made.is_complete:
        return UNDECIDABLE
    given = made.argument(2, "mixed_precision")
    if given is not None:
        value = plain(given)
        return (
            value.lower() if isinstance(value, str) else UNDECIDABLE if not isinstance(value, Unknown) else value
        )
    said = launched_setting(facts.run.launch, facts.run.accelerate, "mixed_precision")
    if said is not None:
        return said.value
    is_told = facts.run.launch is not None or facts.run.accelerate is not None
    return "no" if is_told else UNDECIDABLE


def _has_precision(*names: str) -> Filling:
    def find(facts: Facts) -> Any:
        value = mixed_precision(facts)
        return value in names if isinstance(value, str) else value if isinstance(value, Unknown) else UNDECIDABLE

    return find


FILLED: Mapping[NamePath, Filling] = {
    ("train_micro_batch_size_per_gpu",): _micro_batch,
    ("gradient_accumulation_steps",): _accumulation,
    ("train_batch_size",): _train_batch,
    ("gradient_clipping",): _clipping,
    ("optimizer", "params", "lr"): _of_dummy("dummy_optimizer", 1, "lr", 0.001),
    ("optimizer", "params", "weight_decay"): _of_dummy("dummy_optimizer", 2, "weight_decay", 0),
    ("scheduler", "params", "warmup_min_lr"): lambda facts: 0,
    ("scheduler", "params", "warmup_num_steps"): _warmup_steps,
    ("scheduler", "params", "total_num_steps"): _total_steps,
    ("fp16", "enabled"): _has_precision("fp16"),
    ("bf16", "enabled"): _has_precision("bf16", "fp8"),
}
"""By key, what Accelerate fills in."""

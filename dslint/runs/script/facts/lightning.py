"""Facts about scripts that train with Lightning's DeepSpeed strategy."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dslint.documents.source import Span
from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.config_use import node_of
from dslint.runs.script.events import Call
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.facts.here import Here
from dslint.runs.script.items import item, plain
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Class, Function, Thing
from dslint.runs.unknown import UNDECIDABLE, Unknown

OFFLOADS = {
    "deepspeed": None,
    "deepspeed_stage_1": None,
    "deepspeed_stage_2": None,
    "deepspeed_stage_2_offload": "cpu",
    "deepspeed_stage_3": None,
    "deepspeed_stage_3_offload": "cpu",
    "deepspeed_stage_3_offload_nvme": "nvme",
}
"""By name of a strategy, where it offloads the optimizer (DeepSpeedStrategy.register_strategies)."""


@dataclass(frozen=True)
class Training:
    """A Trainer that is given Lightning's DeepSpeed strategy.

    Attributes:
        trainer: the call that makes the Trainer.
        strategy: the call that makes the strategy; None where the Trainer is given its name.
        name: the strategy's name, where it is given by name.
    """

    trainer: Call
    strategy: Call | None
    name: str | None

    @property
    def takes_config(self) -> bool:
        """Whether the strategy is given a config, beside which its other arguments don't count."""
        return self.strategy is not None and self.strategy.argument(None, "config") is not None

    def argument(self, name: str, default: Any) -> Any:
        """An argument of the Trainer, or its default; Unknown where it can't be told."""
        if self.trainer.has(None, name):
            return plain(self.trainer.argument(None, name))
        return default if self.trainer.is_complete else UNDECIDABLE


def trainings(deeds: Deeds) -> Iterator[Training]:
    """The Trainers of a script that train with DeepSpeed for sure."""
    for call in deeds.calls:
        made = call.result
        if not isinstance(made, Thing) or made.kind != "lightning_trainer" or made.call is not call:
            continue
        strategy = call.argument(None, "strategy")
        if isinstance(strategy, str) and strategy in OFFLOADS:
            yield Training(call, None, strategy)
        elif isinstance(strategy, Thing) and strategy.kind == "lightning_strategy" and strategy.call is not None:
            yield Training(call, strategy.call, None)


def trainers(facts: Facts) -> tuple[Item, ...]:
    """The Trainers that train with DeepSpeed, with their arguments that DeepSpeed's config speaks of too."""
    deeds = deeds_of(facts)
    return tuple(item(deeds.script, one.trainer, _fields_of_trainer(one)) for one in trainings(deeds))


def _fields_of_trainer(one: Training) -> dict[str, Any]:
    return {
        "takes_config": one.takes_config,
        "clip": one.argument("gradient_clip_val", None),
        "algorithm": one.argument("gradient_clip_algorithm", None),
        "precision": one.argument("precision", None),
        "accumulates": one.argument("accumulate_grad_batches", None),
        "other_precision": _other_precision(one),
    }


def _other_precision(one: Training) -> str | Unknown:
    """The code of the same precision in the other 16-bit type."""
    node = node_of(one.trainer, None, "precision")
    found = OTHER_PRECISION.get(str(one.argument("precision", None))) if isinstance(node, ast.Constant) else None
    return UNDECIDABLE if found is None else f'"{found}"'


OTHER_PRECISION = {
    "16-mixed": "bf16-mixed",
    "16-true": "bf16-true",
    "16": "bf16-mixed",
    "bf16-mixed": "16-mixed",
    "bf16-true": "16-true",
    "bf16": "16-mixed",
}
"""By precision of a Trainer, what it is called for the other 16-bit type."""


def clip_values(facts: Facts) -> tuple[Item, ...]:
    """The gradient_clip_val of Trainers whose strategy is given a config: `asked` is the limit."""
    deeds = deeds_of(facts)
    found = []
    for one in trainings(deeds):
        asked = one.argument("gradient_clip_val", None)
        if one.takes_config and isinstance(asked, (int, float)) and not isinstance(asked, bool):
            place = node_of(one.trainer, None, "gradient_clip_val")
            found.append(item(deeds.script, one.trainer, {"asked": asked}, ((place, "asked for here"),)))
    return tuple(found)


# --- what a module does ---


def fits(facts: Facts) -> tuple[Item, ...]:
    """`trainer.fit(module)` with a module of this file, and what that module does with its optimizers.

    `offload` is where the optimizer is offloaded (None: nowhere), `optimizers` the names of what makes the
    optimizers, `returned` and `schedulers` how many configure_optimizers returns, `has_optimizers` whether the
    module has that method, `has_backward` and `has_clipping` whether it has hooks of its own.
    """
    deeds = deeds_of(facts)
    by_trainer = {id(one.trainer.result): one for one in trainings(deeds)}
    found = []
    for call in deeds.calls:
        one = by_trainer.get(id(call.receiver)) if call.dotted == "fit" else None
        module = call.argument(0, "model")
        made_of = module.attributes.get("__class__") if isinstance(module, Thing) else None
        if one is None or not isinstance(made_of, Class) or module.kind != "lightning_module":
            continue
        method = made_of.members.get("configure_optimizers")
        place = method.node if isinstance(method, Function) else made_of.node
        fields = _fields_of_module(deeds, made_of)
        fields |= {"offload": _offload(facts, one), "takes_config": one.takes_config}
        fields |= {f"{name}_span": _hook_span(Here(deeds, call.node), made_of, name) for name in HOOKS}
        found.append(item(deeds.script, call, fields, ((place, "the module's optimizers"),)))
    return tuple(found)


HOOKS = ("backward", "configure_gradient_clipping")
"""Methods of a module that have no effect under DeepSpeed."""


def _hook_span(here: Here, made_of: Class, name: str) -> Span | Unknown:
    """Where a module's own hook stands."""
    hook = made_of.members.get(name)
    is_plain = isinstance(hook, Function) and not getattr(hook.node, "decorator_list", ())
    return here.span(hook.node) if isinstance(hook, Function) and is_plain else UNDECIDABLE


def _fields_of_module(deeds: Deeds, made_of: Class) -> dict[str, Any]:
    method = made_of.members.get("configure_optimizers")
    made = _optimizers_made(deeds, method) if isinstance(method, Function) else []
    returned, schedulers = _returned(method, len(made)) if isinstance(method, Function) else (1, 0)
    return {
        "has_optimizers": isinstance(method, Function),
        "optimizers": [call.dotted for call in made],
        "is_torch": bool(made) and all(_is_surely_torch(call) for call in made),
        "returned": returned,
        "schedulers": schedulers,
        "has_backward": isinstance(made_of.members.get("backward"), Function),
        "has_clipping": isinstance(made_of.members.get("configure_gradient_clipping"), Function),
    }


def _optimizers_made(deeds: Deeds, method: Function) -> list[Call]:
    first, last = method.node.lineno, getattr(method.node, "end_lineno", None) or method.node.lineno
    return [
        call
        for call in deeds.calls
        if first <= call.node.lineno <= last and isinstance(call.result, Thing) and call.result.kind == "optimizer"
    ]


def _is_surely_torch(call: Call) -> bool:
    """Whether an optimizer is one of PyTorch's own, on each way through the method."""
    return call.dotted.startswith("torch.optim.") and not call.spot.guards


def _returned(method: Function, made: int) -> tuple[int, int]:
    """The number of optimizers and of schedulers that each `return` of configure_optimizers gives, at least."""
    counts = [_counted(node.value) for node in ast.walk(method.node) if isinstance(node, ast.Return)]
    if not counts:
        return 1, 0
    optimizers, schedulers = (min(numbers) for numbers in zip(*counts, strict=True))
    return (optimizers if made >= optimizers else 1), schedulers


def _counted(value: ast.expr | None) -> tuple[int, int]:
    """How many optimizers and schedulers a returned value has: a list, or a pair of lists (LightningModule)."""
    if not isinstance(value, (ast.List, ast.Tuple)) or any(isinstance(part, ast.Starred) for part in value.elts):
        return 1, 0
    lists = [part for part in value.elts if isinstance(part, (ast.List, ast.Tuple))]
    if len(lists) == len(value.elts) == 2:
        has_star = any(isinstance(part, ast.Starred) for one in lists for part in one.elts)
        return (1, 0) if has_star else (len(lists[0].elts), len(lists[1].elts))
    return (1, 0) if lists else (len(value.elts), 0)


def _offload(facts: Facts, one: Training) -> Any:
    """Where the optimizer is offloaded: "cpu", "nvme" or None."""
    if one.strategy is None:
        return OFFLOADS[one.name or "deepspeed"]
    if one.takes_config:
        if facts.value("config.zero_force_ds_cpu_optimizer") is not True:
            return None
        return facts.value("config.zero_optimization.offload_optimizer.device")
    if not one.strategy.is_complete:
        return UNDECIDABLE
    is_on = plain(one.strategy.argument(None, "offload_optimizer"))
    if is_on is not True:
        return is_on or None
    return plain(one.strategy.argument(None, "offload_optimizer_device")) or "cpu"

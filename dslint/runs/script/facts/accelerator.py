"""What a script asks Accelerate for: its Accelerators, whether they train with DeepSpeed, what they prepare."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dslint.runs.facts import Facts
from dslint.runs.script.events import Call, Spot
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.guards import parts_of
from dslint.runs.script.items import text_at
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Table, Thing, Value, origins

ASKS = re.compile(
    r"deepspeed|distributed_type|distributedtype|\bfsdp|zero|\bds_|_ds\b|backend|strategy|engine", re.IGNORECASE
)
"""Words of conditions that may ask whether DeepSpeed trains."""

OTHER_TYPES = ("cpu", "multi_gpu", "tpu", "use_fsdp", "use_megatron_lm")
"""Flags of `accelerate launch` that start another kind of training, whatever the file says."""

KINDS_OF_ROLE = {
    "model": "model",
    "lightning_module": "model",
    "compiled_model": "model",
    "optimizer": "optimizer",
    "dummy_optimizer": "dummy_optimizer",
    "scheduler": "scheduler",
    "dummy_scheduler": "dummy_scheduler",
    "loader": "loader",
}
_OF_A_MODULE = frozenset(
    ["parameters", "named_parameters", "modules", "named_modules", "gradient_checkpointing_enable"]
)
_GOES_THROUGH = frozenset(["enumerate", "tqdm", "tqdm.tqdm", "tqdm.auto.tqdm", "zip", "iter"])


# --- whether DeepSpeed trains ---


def accelerators(deeds: Deeds) -> list[Call]:
    """The calls that make an Accelerator, in order."""
    return [
        call
        for call in deeds.calls
        if isinstance(call.result, Thing) and call.result.kind == "accelerator" and call.result.call is call
    ]


def only_accelerator(deeds: Deeds) -> Call | None:
    """The call that makes the script's Accelerator; None where there is none, or several."""
    found = accelerators(deeds)
    return found[0] if len(found) == 1 else None


def plugins_of(accelerator: Call) -> list[Thing]:
    """The DeepSpeedPlugins that an Accelerator is surely given."""
    found: list[Value] = [
        accelerator.argument(None, "deepspeed_plugin"),
        accelerator.argument(None, "deepspeed_plugins"),
    ]
    for value in tuple(found):
        if isinstance(value, Table):
            found += [entry.value for entry in value.entries.values()]
    return [value for value in found if isinstance(value, Thing) and value.kind == "deepspeed_plugin"]


def takes_cpu(accelerator: Call) -> bool | None:
    """Whether an Accelerator is told to stay on the CPU, which switches DeepSpeed off; None where nobody knows."""
    if not accelerator.has(4, "cpu"):
        return False if accelerator.is_complete else None
    value = accelerator.argument(4, "cpu")
    return value if isinstance(value, bool) else None


def is_started_with_deepspeed(facts: Facts) -> bool:
    """Whether the launch command, or the Accelerate file, surely switches DeepSpeed on."""
    launch = facts.run.launch
    options = launch.options if launch is not None and launch.launcher == "accelerate" else {}
    if any(name in options for name in OTHER_TYPES):
        return False
    if launch is not None and launch.launcher != "accelerate":
        return False
    started_by = facts.run.accelerate
    is_of_deepspeed = started_by is not None and started_by.value.get("distributed_type") == "DEEPSPEED"
    return is_of_deepspeed or "use_deepspeed" in options


def trains_with_deepspeed(facts: Facts, accelerator: Value) -> bool:
    """Whether what an Accelerator prepares is surely trained by DeepSpeed.

    All Accelerators of a process share their state, so that a plugin given to one of them counts for all.
    """
    if not isinstance(accelerator, Thing) or accelerator.kind != "accelerator" or facts.framework != "accelerate":
        return False
    calls = accelerators(deeds_of(facts))
    if any(takes_cpu(call) is not False for call in calls):
        return False
    if is_started_with_deepspeed(facts):
        return True
    given = [call for call in calls if plugins_of(call)]
    return bool(given) and all(not call.spot.guards for call in given) and not _is_later(accelerator, given[0])


def _is_later(accelerator: Thing, given: Call) -> bool:
    """Whether the first plugin comes after an Accelerator without one, whose training it doesn't change."""
    made = accelerator.call
    return made is not None and made is not given and made.spot.order < given.spot.order


def calls_of_accelerator(facts: Facts, *names: str) -> Iterator[Call]:
    """Calls of an Accelerator's methods that are surely about a training with DeepSpeed."""
    deeds = deeds_of(facts)
    wanted = {f"accelerator.{name}" for name in names}
    for call in deeds.calls:
        if call.name in wanted and trains_with_deepspeed(facts, call.receiver) and not asks(deeds, call.spot):
            yield call


def asks(deeds: Deeds, spot: Spot) -> bool:
    """Whether a condition around a place may ask who trains, so that DeepSpeed may never come there."""
    return any(_may_ask(deeds, guard.node, guard.test) for guard in spot.guards)


def _may_ask(deeds: Deeds, node: ast.AST, test: Value) -> bool:
    place = getattr(node, "test", node)
    if ASKS.search(text_at(deeds.script, place)):
        return True
    return any(
        thing.kind not in ("accelerator", "training_args") and ASKS.search(thing.name) for thing in parts_of(test)
    )


# --- what is prepared ---


@dataclass(frozen=True)
class Preparation:
    """One call of `accelerator.prepare`.

    Attributes:
        call: the call.
        roles: what its arguments are, in order: one of KINDS_OF_ROLE's values, or "unknown".
    """

    call: Call
    roles: tuple[str, ...]

    def of(self, *roles: str) -> list[Value]:
        """The arguments that have one of these roles."""
        return [value for value, role in zip(self.call.positional, self.roles, strict=True) if role in roles]

    @property
    def is_clear(self) -> bool:
        """Whether it is known what each argument is."""
        return self.call.is_complete and "unknown" not in self.roles


def preparations(facts: Facts) -> list[Preparation]:
    """The calls of `prepare` that DeepSpeed surely comes to, in order."""
    deeds = deeds_of(facts)
    models, loaders = _used_as_models(deeds), _used_as_loaders(deeds)
    return [
        Preparation(call, tuple(_role(value, models, loaders) for value in call.positional))
        for call in calls_of_accelerator(facts, "prepare")
    ]


def _role(value: Value, models: set[int], loaders: set[int]) -> str:
    if not isinstance(value, Thing):
        return "unknown"
    if value.kind in KINDS_OF_ROLE:
        return KINDS_OF_ROLE[value.kind]
    is_model, is_loader = id(value) in models, id(value) in loaders
    if value.kind == "either" or is_model is is_loader:
        return "unknown"
    return "model" if is_model else "loader"


def _used_as_models(deeds: Deeds) -> set[int]:
    """Things whose parameters are asked for: only modules have some."""
    return {
        id(call.receiver)
        for call in deeds.calls
        if call.dotted in _OF_A_MODULE and isinstance(call.receiver, Thing) and call.receiver.kind != "parser"
    }


def _used_as_loaders(deeds: Deeds) -> set[int]:
    """Things that a loop goes through."""
    spots = [step.spot for steps in (deeds.calls, deeds.stores, deeds.jumps, deeds.reads) for step in steps]
    over = {id(loop.over): loop.over for spot in spots for loop in spot.loops}
    return {id(thing) for value in over.values() for thing in _gone_through(value)}


def _gone_through(value: Value) -> Iterator[Thing]:
    if isinstance(value, Thing) and value.name in _GOES_THROUGH:
        for inner in value.inputs:
            yield from _gone_through(inner)
    elif isinstance(value, Thing):
        yield value


def changes_config(deeds: Deeds) -> bool:
    """Whether the script writes into a plugin's config, or calls something that may do so."""
    return any(_is_of_config(store.target) or store.name == "deepspeed_config" for store in deeds.stores) or any(
        (
            call.dotted in ("update", "fill_match", "deepspeed_config_process", "setdefault", "pop")
            and _is_of_config(call.receiver)
        )
        or call.dotted in ("fill_match", "deepspeed_config_process")
        for call in deeds.calls
    )


def _is_of_config(value: Value) -> bool:
    return isinstance(value, Thing) and any(
        thing.name in ("deepspeed_config", "hf_ds_config") for thing in origins(value, 6)
    )


def prepared_models_called(prepared: Sequence[Preparation], value: Value) -> list[Thing]:
    """The prepared models whose outputs a value was made from."""
    models = {id(model) for one in prepared for model in one.of("model", "unknown")}
    called = [
        thing.call.receiver
        for thing in origins(value)
        if thing.call is not None and thing.call.dotted in ("__call__", "forward")
    ]
    return [model for model in called if isinstance(model, Thing) and id(model) in models]

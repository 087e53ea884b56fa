"""Facts about training loops on DeepSpeed's own engine."""

from __future__ import annotations

from collections.abc import Mapping

from dslint.runs.facts import Fact
from dslint.runs.late import script_items

FACTS: Mapping[str, Fact] = {
    # backward passes
    "script.direct_backwards": script_items(
        "`loss.backward()` on a loss from the engine: the `forward` pass, and whether engine.scale scaled it"
        "; for fixes `by_engine`",
        "backward:direct_backwards",
        "is_scaled",
        "forward",
        "by_engine",
    ),
    "script.module_backwards": script_items(
        "`loss.backward()` on a loss from the bare model, beside engine.step: the `forward` pass"
        "; for fixes `by_engine`",
        "backward:module_backwards",
        "is_scaled",
        "forward",
        "by_engine",
    ),
    "script.divided_losses": script_items(
        "engine.backward on a loss divided by hand: the `divisor` and what it is called (`by`)"
        "; for fixes `division`, `undivided`, `division_statement`",
        "backward:divided_losses",
        "divisor",
        "by",
        "division",
        "undivided",
        "division_statement",
    ),
    "script.unreduced_losses": script_items(
        "engine.backward on the whole output of a Transformers `model`; for fixes `output`, `loss`",
        "backward:unreduced_losses",
        "model",
        "output",
        "loss",
    ),
    "script.repeated_backwards": script_items(
        "engine.backward twice, or in a loop, before one engine.step (`what`); whether the first `retains_graph`"
        "; for fixes `first`, `loss`, `both`",
        "backward:repeated_backwards",
        "retains_graph",
        "what",
        "first",
        "loss",
        "both",
    ),
    "script.scaled_values": script_items(
        "`.item()` on the value that engine.backward returns; for fixes `assignment`, `backward`",
        "backward:scaled_values",
        "assignment",
        "backward",
    ),
    # steps
    "script.client_steps": script_items(
        "`.step()` on the optimizer given to initialize, where nothing steps the engine; for fixes `by_engine`",
        "steps:client_steps",
        "has_scheduler",
        "by_engine",
    ),
    "script.returned_steps": script_items(
        "`.step()` on the optimizer that initialize returned, where nothing steps the engine"
        "; for fixes `by_engine`",
        "steps:returned_steps",
        "has_scheduler",
        "by_engine",
    ),
    "script.unstepped_backwards": script_items(
        "engine.backward in a loop of a script that takes no step at all; for fixes `step`",
        "steps:unstepped_backwards",
        "step",
    ),
    "script.gated_steps": script_items(
        "engine.step under a `condition` that engine.backward is not under: in how many turns it holds once "
        "(`every`), or whether it `asks_engine` for the accumulation boundary"
        "; for fixes `is_inside`, `skip`",
        "steps:gated_steps",
        "every",
        "condition",
        "asks_engine",
        "is_inside",
        "skip",
    ),
    "script.zeroed_gradients": script_items(
        "zero_grad at each micro-batch: whether `of_engine` or of the returned optimizer, and whether it stands "
        "`between` backward and step",
        "steps:zeroed_gradients",
        "of_engine",
        "between",
    ),
    "script.no_sync_contexts": script_items(
        "`with engine.no_sync()`; whether engine.step is inside (`has_step`)", "steps:no_sync_contexts", "has_step"
    ),
    "script.clipped_by_hand": script_items(
        "torch's clipping on the engine's parameters: the `function` and its `limit`"
        "; for fixes `statement`, `max_norm`",
        "clipping:clipped_by_hand",
        "limit",
        "function",
        "statement",
        "max_norm",
    ),
    # precision
    "script.scaled_losses": script_items(
        "engine.backward on a loss that a GradScaler scaled; whether that is `enabled`"
        "; for fixes `scaled`, `loss`",
        "precision:scaled_losses",
        "enabled",
        "scaled",
        "loss",
    ),
    "script.scaler_steps": script_items(
        "GradScaler.step on the engine's optimizer; whether the scaler is `enabled`"
        "; for fixes `by_engine`, `scaled`, `backward`, `update`",
        "precision:scaler_steps",
        "enabled",
        "by_engine",
        "scaled",
        "backward",
        "update",
    ),
    "script.autocast_forwards": script_items(
        "forward passes of the engine in torch's autocast; for which `device`, and whether `enabled`"
        "; for fixes `dtype`",
        "precision:autocast_forwards",
        "enabled",
        "device",
        "dtype",
    ),
    # initialize
    "script.wrong_unpackings": script_items(
        "deepspeed.initialize unpacked into a number of `names` other than 4; for fixes `assignment`, `four`",
        "initializing:wrong_unpackings",
        "names",
        "assignment",
        "four",
    ),
    "script.uses_as_engine": script_items(
        "the tuple that initialize gives used as if it were the engine (one item or none); the `error` of that"
        "; for fixes `making`, `first`",
        "initializing:uses_as_engine",
        "error",
        "making",
        "first",
    ),
    "script.wrapped_models": script_items(
        "models in a `wrapper` (DistributedDataParallel, ...) that are given to initialize"
        "; for fixes `wrapping`, `bare`, `statement`",
        "initializing:wrapped_models",
        "wrapper",
        "wrapping",
        "bare",
        "statement",
    ),
    "script.client_optimizers": script_items(
        "optimizers given to initialize: their `type`, whether ZeRO takes it as it is (`is_tested`), whether it "
        "is one that offloading wants (`is_for_cpu`)"
        "; for fixes `by_cpu`",
        "initializing:client_optimizers",
        "type",
        "is_tested",
        "is_for_cpu",
        "by_cpu",
    ),
    "script.optimizers_given": script_items(
        "calls of initialize that surely get an optimizer; for fixes `argument`",
        "initializing:optimizers_given",
        "argument",
    ),
    "script.bare_initializations": script_items(
        "calls of initialize without an optimizer; whether the engine `trains`",
        "initializing:bare_initializations",
        "trains",
    ),
    "script.exhausted_parameters": script_items(
        "generators given as model_parameters that were gone through before; for fixes `generator`, `code`",
        "initializing:exhausted_parameters",
        "generator",
        "code",
    ),
    # schedulers
    "script.scheduler_steps": script_items(
        "`.step()` on the engine's scheduler beside engine.step; whether the scheduler `is_given` by the script"
        "; for fixes `extra`, `receiver`, `scheduler`",
        "schedulers:scheduler_steps",
        "is_given",
        "advice",
        "extra",
        "receiver",
        "scheduler",
    ),
    "script.orphan_schedulers": script_items(
        "schedulers given to initialize that belong to another optimizer; whether that is given (`has_optimizer`)"
        "; for fixes `given`, `function`",
        "schedulers:orphan_schedulers",
        "has_optimizer",
        "given",
        "function",
    ),
    "script.schedulers_on_returned": script_items(
        "schedulers of torch (`type`) built on the optimizer that initialize returned"
        "; for fixes `optimizer`, `basic`",
        "schedulers:schedulers_on_returned",
        "type",
        "optimizer",
        "basic",
    ),
    # changes after initialize
    "script.late_unfreezing": script_items(
        "parameters that were frozen before initialize and are unfrozen after it", "late_changes:late_unfreezing"
    ),
    "script.late_writes": script_items(
        "the only place after initialize that writes to parameters (one item or none)", "late_changes:late_writes"
    ),
    "script.late_loads": script_items(
        "the only load_state_dict on the engine's model after initialize (one item or none)",
        "late_changes:late_loads",
    ),
    # the engine's methods
    "script.uses_of_mode_results": script_items(
        "uses of what engine.train() or engine.eval() (`mode`) returns; whether it `is_called_itself`"
        "; for fixes `assignment`, `alone`, `callee`, `engine`",
        "engine_methods:uses_of_mode_results",
        "mode",
        "is_called_itself",
        "assignment",
        "alone",
        "callee",
        "engine",
    ),
    "script.uncalled_accessors": script_items(
        "engine.train_batch_size and its like (`name`) in arithmetic, not called; for fixes `code`",
        "engine_methods:uncalled_accessors",
        "name",
        "code",
    ),
    "script.reserved_client_state": script_items(
        "keys of client_state (`key`) that the engine keeps its own values under",
        "engine_methods:reserved_client_state",
        "key",
    ),
}

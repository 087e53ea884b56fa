"""Facts about Accelerate and Lightning in a script."""

from __future__ import annotations

from collections.abc import Mapping

from dslint.runs.facts import Fact
from dslint.runs.late import launch_items, script_fact, script_items

FACTS: Mapping[str, Fact] = {
    "accelerator.accumulation": script_fact(
        "forward passes an optimizer step, as DeepSpeed counts them under the script's Accelerator",
        "accelerate_stepping:accumulation",
    ),
    "accelerator.plain_backwards": script_items(
        "loss.backward() on a prepared model's output, where nothing calls the Accelerator's or the engine's",
        "accelerate_stepping:plain_backwards",
        "accelerated",
    ),
    "accelerator.clippings": script_items(
        "calls of accelerator.clip_grad_norm_: `asked` is the largest norm, Unknown where it is no limit; "
        "`with_argument` makes the `plugin` with it",
        "accelerate_stepping:clippings",
        "asked",
        "asked_span",
        "plugin",
        "with_argument",
    ),
    "accelerator.value_clippings": script_items(
        "calls of accelerator.clip_grad_value_", "accelerate_stepping:value_clippings"
    ),
    "accelerator.asked_accumulations": script_items(
        "the Accelerator that is given gradient_accumulation_steps, `asked` (one item or none)",
        "accelerate_stepping:asked_accumulations",
        "asked",
        "asked_span",
    ),
    "accelerator.uncounted_backwards": script_items(
        "accelerator.backward in a loop, where no accumulate() tells which pass ends a step",
        "accelerate_stepping:uncounted_backwards",
    ),
    "accelerator.divided_losses": script_items(
        "accelerator.backward of a loss divided by the accumulation: `divisor`, None where it is the "
        "Accelerator's own number, and `by`, its text",
        "accelerate_stepping:divided_losses",
        "divisor",
        "by",
        "division",
        "dividend",
        "idle",
    ),
    "accelerator.loaderless": script_items(
        "the first accelerator.prepare that needs a data loader and gets none (one item or none)",
        "accelerate_preparing:loaderless",
        "has_model",
    ),
    "accelerator.apart": script_items(
        "accelerator.prepare of a model whose optimizer another call gets", "accelerate_preparing:apart"
    ),
    "accelerator.several_models": script_items(
        "accelerator.prepare with several models: `models` is their number",
        "accelerate_preparing:several_models",
        "models",
    ),
    "accelerator.second_models": script_items(
        "accelerator.backward through another model than the first that is trained",
        "accelerate_preparing:second_models",
    ),
    "accelerator.optimizers": script_items(
        'optimizers that are prepared: `kind` "torch" or "dummy", `name`, `replaced` where the offload has '
        "DeepSpeedCPUAdam in its place",
        "accelerate_preparing:optimizers",
        "kind",
        "name",
        "replaced",
        "has_callable",
        "beside_dummy",
    ),
    "accelerator.schedulers": script_items(
        'schedulers that are prepared: `kind` "torch" or "dummy", `name`, `has_callable`, `beside_dummy`',
        "accelerate_preparing:schedulers",
        "kind",
        "name",
        "replaced",
        "has_callable",
        "beside_dummy",
    ),
    "accelerator.placements": script_items(
        "accelerator.prepare with a device_placement", "accelerate_preparing:placements"
    ),
    "accelerator.gathered_saves": script_items(
        "accelerator.get_state_dict and save_model of the prepared model; `with_argument` makes the `plugin` so "
        "that it gathers",
        "accelerate_saving:gathered_saves",
        "plugin",
        "with_argument",
    ),
    "accelerator.partitioned_saves": script_items(
        "save_pretrained of the prepared model without a state dict; `state` is the call that gathers one, "
        "`with_argument` makes the `plugin` so that it can",
        "accelerate_saving:partitioned_saves",
        "state",
        "plugin",
        "with_argument",
    ),
    "accelerator.kept_on_cpu": script_items(
        "Accelerator(cpu=True) although DeepSpeed is asked for", "accelerate_making:kept_on_cpu"
    ),
    "accelerator.second_plugins": script_items(
        "an Accelerator with a plugin after another that trains with DeepSpeed", "accelerate_making:second_plugins"
    ),
    "accelerate.idle_options": launch_items(
        "options of `accelerate launch` about DeepSpeed without --use_deepspeed: `option` is the first one, "
        "`is_in_text` whether the command stands in a text that another one runs",
        "accelerate_options:idle_options",
        "option",
        "is_in_text",
    ),
    "accelerator.precisions": script_items(
        'the Accelerator\'s mixed precision: `asked` is "fp16", "bf16", "fp8" or "no" (one item or none)',
        "accelerate_making:precisions",
        "asked",
        "other",
    ),
    "lightning.is_used": Fact(
        "whether the script trains with Lightning, which adds the batch sizes that the config leaves out",
        lambda facts: facts.framework == "lightning",
    ),
    "lightning.trainers": script_items(
        "Trainers with Lightning's DeepSpeed strategy: whether it `takes_config`, and the arguments `clip` "
        "(gradient_clip_val), `algorithm`, `precision` and `accumulates`, None where they are not given; "
        "`other_precision` is the code of the same in the other 16-bit type",
        "lightning:trainers",
        "takes_config",
        "clip",
        "algorithm",
        "precision",
        "accumulates",
        "other_precision",
    ),
    "lightning.clip_values": script_items(
        "gradient_clip_val beside a strategy with a config: `asked` is the limit", "lightning:clip_values", "asked"
    ),
    "lightning.fits": script_items(
        "trainer.fit with a module of the script: `offload` of the optimizer, `optimizers` by name, `is_torch` "
        "whether all are PyTorch's, `returned` and `schedulers` their numbers, hooks of its own",
        "lightning:fits",
        "offload",
        "takes_config",
        "optimizers",
        "is_torch",
        "returned",
        "schedulers",
        "has_optimizers",
        "has_backward",
        "has_clipping",
        "backward_span",
        "configure_gradient_clipping_span",
    ),
}

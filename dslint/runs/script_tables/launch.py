"""Facts about launch commands, and about pipelines and inference engines in a script."""

from __future__ import annotations

from collections.abc import Mapping

from dslint.runs.facts import Fact
from dslint.runs.late import script_items

FACTS: Mapping[str, Fact] = {
    "script.pipelines": script_items(
        "PipelineModules: `stages` (None beside a topology), `axes` the ranks that a topology has places for, "
        "`has_stages` whether either is given",
        "pipeline:pipelines",
        "stages",
        "axes",
        "has_stages",
    ),
    "script.pipelines_too_early": script_items(
        "PipelineModules that are made before DeepSpeed's process group is there", "pipeline:pipelines_too_early"
    ),
    "script.pipeline_engines": script_items(
        "engines made of a PipelineModule: `is_alone` whether the script makes no other engine, `has_mpu`",
        "pipeline:pipeline_engines",
        "is_alone",
        "has_mpu",
    ),
    "script.pipeline_steps_by_hand": script_items(
        "calls that a pipeline's engine refuses: `api` is the method, `saves` whether it should save the weights",
        "pipeline:pipeline_steps_by_hand",
        "api",
        "saves",
    ),
    "script.train_batches": script_items(
        "train_batch on a pipeline: `no_grad` the context that switches gradients off, `not_iterator` what is "
        "given instead of an iterator, `loader` what each step begins anew, `has_data`",
        "pipeline:train_batches",
        "no_grad",
        "not_iterator",
        "loader",
        "has_data",
    ),
    "script.inference_conflicts": script_items(
        "settings of init_inference by keyword that its config has with another value",
        "inference:conflicts",
        "key",
        "by_keyword",
        "in_config",
    ),
    "script.inference_unknown_settings": script_items(
        "settings that init_inference doesn't know", "inference:unknown_settings", "key", "advice"
    ),
    "script.inference_setups": script_items(
        "calls of init_inference: `kernels` and `has_policy` the two ways of injection, `tp_size`, `sizes` how "
        "many places give that size, `graph` whether CUDA graphs are asked for, `parts` into how many names the "
        "result is unpacked",
        "inference:setups",
        "kernels",
        "has_policy",
        "tp_size",
        "sizes",
        "graph",
        "parts",
    ),
    "script.inference_training_calls": script_items(
        "calls on an inference engine that only a training engine has", "inference:training_calls", "api"
    ),
    "script.inference_generations": script_items(
        "calls of generate on an inference engine: `beams` is num_beams", "inference:generations", "beams"
    ),
    "script.evaluation_left_on": script_items(
        "calls of engine.eval() in a training loop in which nothing calls train()", "eval_mode:left_on"
    ),
}

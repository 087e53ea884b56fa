"""Facts about Hugging Face's Trainer in a script, and about the models of Transformers."""

from __future__ import annotations

from collections.abc import Mapping

from dslint.runs.facts import Fact
from dslint.runs.late import script_fact, script_items

FACTS: Mapping[str, Fact] = {
    "trainer.deepspeed": script_fact(
        "whether the TrainingArguments are given a config, or DeepSpeed is switched on by `accelerate launch`",
        "trainer_objects:uses_deepspeed",
    ),
    "trainer.gives_config": script_fact(
        "whether the TrainingArguments themselves surely name a config", "trainer_objects:gives_config"
    ),
    "trainer.mismatches": script_items(
        "values of the config that differ from the Trainer's arguments; `kind` is precision, product or value",
        "trainer_values:mismatches",
        "key",
        "value",
        "argument",
        "expected",
        "kind",
    ),
    "trainer.unheard": script_items(
        "arguments for an optimizer, or scheduler, of the config that lacks the key which would hand them on",
        "unheard_arguments:unheard",
        "name",
        "value",
        "key",
        "section",
    ),
    "trainer.without_warmup": script_fact(
        "whether the Trainer's arguments ask for no warm-up, in words or by silence",
        "unheard_arguments:without_warmup",
    ),
    "trainer.changed_arguments": script_items(
        "assignments of a `value` to arguments that were written into the config before, under `key`",
        "trainer_changes:changed_arguments",
        "name",
        "key",
        "value",
        "statement",
    ),
    "trainer.changed_configs": script_items(
        "assignments into a dict that `taker` has copied before", "trainer_changes:changed_configs", "key", "taker"
    ),
    "trainer.dropped_optimizers": script_items(
        "optimizers and schedulers that a Trainer is given", "trainer_calls:dropped_optimizers", "what", "argument"
    ),
    "trainer.evaluations_without_training": script_items(
        "evaluations by a Trainer that has not trained before: `method` is evaluate or predict",
        "trainer_calls:evaluations_without_training",
        "method",
    ),
    "trainer.second_uses": script_items(
        "trainings by a Trainer that already made its engine `after` (train, evaluate or predict)",
        "trainer_calls:second_uses",
        "after",
    ),
    "trainer.second_trainers": script_items(
        "Trainers that are made from the TrainingArguments of an earlier one; `again` makes these once more",
        "trainer_calls:second_trainers",
        "again",
    ),
    "trainer.settings_beside_config": script_items(
        "settings of an Accelerate file that it refuses where TrainingArguments name a config",
        "trainer_values:settings_beside_config",
        "name",
    ),
    "trainer.on_one_rank": script_items(
        "calls of a Trainer that all ranks have to make, where only one rank comes; `asks_rank_only` whether the "
        "condition asks for nothing else, `is_alone` whether the statement does nothing else",
        "trainer_calls:on_one_rank",
        "api",
        "only_stage_3",
        "asks_rank_only",
        "is_alone",
    ),
    "trainer.resumes": script_items(
        "trainings that surely begin with a checkpoint: True for the newest, or a folder",
        "trainer_calls:resumes",
        "where",
        "argument",
    ),
    "trainer.own_backwards": script_items(
        "`loss.backward()` in a Trainer's own training_step; `accelerated` is the same through its Accelerator",
        "training_steps:own_backwards",
        "accelerated",
    ),
    "trainer.twice_divided": script_items(
        "backward passes of a Trainer's own training_step whose loss it has divided by the accumulation steps",
        "training_steps:twice_divided",
        "division",
        "dividend",
        "idle",
    ),
    "models.loaded_early": script_items(
        "models that are loaded before the arguments that tell Transformers of the config (`later`)",
        "model_loading:loaded_early",
        "later",
    ),
    "models.device_maps": script_items(
        "models that get a device_map after the Trainer's arguments were made",
        "model_loading:device_maps",
        "loader",
        "argument",
    ),
    "models.unkept_configs": script_items(
        "HfDeepSpeedConfigs that are gone before the models are loaded; `kept` is the statement that keeps one",
        "model_loading:unkept_configs",
        "dropped",
        "kept",
        "whole",
    ),
    "models.saved_partitioned": script_items(
        "`trainer._save` with a state_dict that was taken from the trained model as it is",
        "model_use:saved_partitioned",
    ),
    "models.resized_late": script_items(
        "resize_token_embeddings after `taker` gave the parameters to an optimizer",
        "model_use:resized_late",
        "taker",
    ),
    "models.generates_alone": script_items(
        "generate without synced_gpus on an engine's model, where Transformers knows of no config; `synced` is "
        "the value to give it",
        "model_use:generates_alone",
        "synced",
    ),
    "models.without_hidden_size": script_items(
        "Trainers whose model, a class of one's own, has no size to work others out from",
        "model_use:without_hidden_size",
        "name",
        "lacks",
    ),
    "models.auto_sizes": script_fact(
        'keys of zero_optimization whose "auto" needs the model\'s hidden size', "model_use:auto_sizes"
    ),
}

"""Facts about what ranks do apart, and about partitioned weights and their saving."""

from __future__ import annotations

from collections.abc import Mapping

from dslint.runs.facts import Fact, Facts
from dslint.runs.late import script_items


def _saves_without_16_bit(facts: Facts) -> bool:
    if facts.run.script is None:
        return False
    from dslint.runs.script.facts.saves import saves_without_16_bit

    return saves_without_16_bit(facts)


FACTS: Mapping[str, Fact] = {
    "script.one_rank_collectives": script_items(
        "calls that all ranks have to make, where only one rank comes: `api` is `engine.save_checkpoint`, "
        "`from_stage` the ZeRO stage from which on the ranks meet there"
        "; for fixes `is_free`",
        "collectives:one_rank_collectives",
        "api",
        "from_stage",
        "is_free",
    ),
    "script.skipped_batches": script_items(
        'jumps past backward that a rank takes by itself: `why` is "loss" or "exception"',
        "skipped_batches:skipped_batches",
        "why",
    ),
    "script.uses_before_group": script_items(
        "the first call that needs torch's process group before there is one (one item or none)"
        "; for fixes `start`",
        "early_distributed:uses_before_group",
        "what",
        "start",
    ),
    "script.undivided_loaders": script_items(
        "DataLoaders that give every rank the same batches: `is_shuffled`, by one seed; for fixes `sampler`",
        "data_order:undivided_loaders",
        "is_shuffled",
        "sampler",
    ),
    "script.loader_sizes": script_items(
        "DataLoaders whose batches an engine trains on as they are: `size` is their batch_size"
        "; for fixes `place`, `engine`",
        "data_order:loader_sizes",
        "size",
        "place",
        "engine",
    ),
    "script.configs_given_twice": script_items(
        "calls of initialize with a config (`by_keyword`, its text) beside arguments that hold one (`given`)"
        "; for fixes `argument`",
        "configs_given:configs_given_twice",
        "given",
        "by_keyword",
        "argument",
    ),
    "script.configs_missing": script_items(
        "calls of initialize without a config: `has_arguments` whether they get the script's arguments",
        "configs_given:configs_missing",
        "has_arguments",
    ),
    "script.parameters_listed_twice": script_items(
        "calls of initialize whose model_parameters name a parameter twice; for fixes `whole`",
        "parameter_lists:parameters_listed_twice",
        "whole",
    ),
    "script.compiled_before": script_items(
        "calls of initialize that get the result of torch.compile: `saves` whether the weights are saved"
        "; for fixes `compiling`, `model`, `statement`, `compile`",
        "compiling:compiled_before",
        "saves",
        "compiling",
        "model",
        "statement",
        "compile",
    ),
    "script.never_compiled": script_items(
        "the initialize of a script that compiles nothing (one item or none); for fixes `engine`",
        "compiling:never_compiled",
        "engine",
    ),
    "script.offloads_of_states": script_items(
        "engine.offload_states() for all states: `client` the optimizer that the script gives, None without one",
        "checkpoints:offloads_of_states",
        "client",
    ),
    "script.tags_of_one_rank": script_items(
        'save_checkpoint with a tag that differs between ranks: `by` is "rank", "loss" or "uuid", `tag` its text'
        "; for fixes `place`, `same`",
        "checkpoints:tags_of_one_rank",
        "by",
        "tag",
        "place",
        "same",
    ),
    "script.loads_into_partitions": script_items(
        "load_state_dict on a model that DeepSpeed has by then: `largest` is its largest parameter, where known",
        "gathering:loads_into_partitions",
        "largest",
    ),
    "script.copies_of_partitions": script_items(
        "copy.deepcopy of a model that DeepSpeed has by then: `largest` is its largest parameter, where known",
        "gathering:copies_of_partitions",
        "largest",
    ),
    "script.sizes_of_partitions": script_items(
        "looks at the size of a parameter that DeepSpeed has by then: `largest` of its model, where known"
        "; for fixes `whole`",
        "gathering:sizes_of_partitions",
        "largest",
        "whole",
    ),
    "script.uses_of_partitions": script_items(
        "values of a parameter that DeepSpeed has by then, read or changed: `largest` of its model, where known",
        "gathering:uses_of_partitions",
        "largest",
    ),
    "script.lost_writes": script_items(
        "changes of parameters inside of GatheredParameters without modifier_rank"
        "; for fixes `gathering`, `with_rank`",
        "gathering:lost_writes",
        "gathering",
        "with_rank",
    ),
    "script.nested_gathers": script_items(
        "GatheredParameters inside of another one for the same parameters", "gathering:nested_gathers"
    ),
    "script.zero_inits_with_auto": script_items(
        'zero.Init, or HfDeepSpeedConfig, with a config that has "auto" for the batch size `key`',
        "zero_init:configs_with_auto",
        "key",
        "is_init",
    ),
    "script.zero_inits": script_items(
        "zero.Init around the model that an engine trains: `has_config`, `has_type` whether it is given them"
        "; for fixes `config`",
        "zero_init:models_spread_too_early",
        "has_config",
        "has_type",
        "config",
    ),
    "script.native_moe": script_items(
        "DeepSpeed's own MoE layer, made before the engine (one item or none)", "native_moe:native_moe_layers"
    ),
    "script.written_partitions": script_items(
        "weights of a model that DeepSpeed has by then, written as they are: `largest` is its largest parameter"
        "; for fixes `is_free`, `by_engine`, `state`, `whole`",
        "saves:written_partitions",
        "largest",
        "is_free",
        "by_engine",
        "state",
        "whole",
    ),
    "script.partitioned_pretrained_saves": script_items(
        "save_pretrained without a state dict on a model that DeepSpeed has by then"
        "; for fixes `is_free`, `method`, `by_trainer`",
        "saves:partitioned_pretrained_saves",
        "largest",
        "is_free",
        "method",
        "by_trainer",
    ),
    "script.dropped_weight_saves": script_items(
        "save_16bit_model calls whose answer is dropped", "saves:dropped_weight_saves"
    ),
    "script.one_rank_optimizer_states": script_items(
        "states of DeepSpeed's optimizer that one rank alone writes", "saves:one_rank_optimizer_states"
    ),
    "saves_without_16_bit": Fact(
        "whether the script at hand saves nothing by stage3_gather_16bit_weights_on_model_save, or another rule "
        "speaks of what it saves",
        _saves_without_16_bit,
    ),
}

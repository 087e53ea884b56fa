"""Facts about launch commands, and about pipelines and inference engines in a script."""

from __future__ import annotations

from collections.abc import Mapping

from dslint.runs.facts import Fact
from dslint.runs.late import launch_fact, launch_items, script_items

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
        "PipelineModules that are made before DeepSpeed's process group is there; for fixes `start`",
        "pipeline:pipelines_too_early",
        "start",
    ),
    "script.pipeline_engines": script_items(
        "engines made of a PipelineModule: `is_alone` whether the script makes no other engine, `has_mpu`"
        "; for fixes `unit`",
        "pipeline:pipeline_engines",
        "is_alone",
        "has_mpu",
        "unit",
    ),
    "script.pipeline_steps_by_hand": script_items(
        "calls that a pipeline's engine refuses: `api` is the method, `saves` whether it should save the weights"
        "; for fixes `extra`, `method`, `save`",
        "pipeline:pipeline_steps_by_hand",
        "api",
        "saves",
        "extra",
        "method",
        "save",
    ),
    "script.train_batches": script_items(
        "train_batch on a pipeline: `no_grad` the context that switches gradients off, `not_iterator` what is "
        "given instead of an iterator, `loader` what each step begins anew, `has_data`"
        "; for fixes `method`, `evaluate`, `iterator`",
        "pipeline:train_batches",
        "no_grad",
        "not_iterator",
        "loader",
        "has_data",
        "method",
        "evaluate",
        "iterator",
    ),
    "script.inference_conflicts": script_items(
        "settings of init_inference by keyword that its config has with another value; for fixes `entry`",
        "inference:conflicts",
        "key",
        "by_keyword",
        "in_config",
        "entry",
    ),
    "script.inference_unknown_settings": script_items(
        "settings that init_inference doesn't know; for fixes `near`",
        "inference:unknown_settings",
        "key",
        "advice",
        "near",
    ),
    "script.inference_setups": script_items(
        "calls of init_inference: `kernels` and `has_policy` the two ways of injection, `tp_size`, `sizes` how "
        "many places give that size, `graph` whether CUDA graphs are asked for, `parts` into how many names the "
        "result is unpacked"
        "; for fixes `size_place`, `policy`, `injection`, `targets`, `engine`",
        "inference:setups",
        "kernels",
        "has_policy",
        "tp_size",
        "sizes",
        "graph",
        "parts",
        "policy",
        "injection",
        "targets",
        "engine",
        "size_place",
    ),
    "script.inference_training_calls": script_items(
        "calls on an inference engine that only a training engine has", "inference:training_calls", "api"
    ),
    "script.inference_generations": script_items(
        "calls of generate on an inference engine: `beams` is num_beams; for fixes `method`, `of_model`",
        "inference:generations",
        "beams",
        "method",
        "of_model",
    ),
    "script.evaluation_left_on": script_items(
        "calls of engine.eval() in a training loop in which nothing calls train()", "eval_mode:left_on"
    ),
    "launch.launcher": launch_fact(
        'what starts the script: "deepspeed", "torchrun", "torch.distributed.launch", "accelerate", "srun", '
        '"mpirun" or "python"',
        "facts:launcher",
    ),
    "launch.gpus": launch_fact("ranks that the command starts on each node", "facts:gpus"),
    "launch.nodes": launch_fact("nodes that the command runs on", "facts:nodes"),
    "launch.unknown_options": launch_items(
        "options before the script that the launcher doesn't have; `advice` is the end of a sentence, `meant` the "
        "option that is meant, `is_sure` whether only the name has to change",
        "refusals:unknown_options",
        "option",
        "command",
        "advice",
        "meant",
        "is_sure",
        "name_span",
    ),
    "launch.bad_values": launch_items(
        "values of the launcher's options that its parser refuses, and what it wants; `meant` is the word for it",
        "refusals:bad_values",
        "option",
        "value",
        "wants",
        "command",
        "meant",
        "whole",
        "value_span",
    ),
    "launch.conflicts": launch_items(
        '`kind` of options that exclude one another: "counts", "filters", "module", "node rank", "accelerate"; '
        "`agrees` whether one of them asks for nothing that the other doesn't",
        "refusals:conflicts",
        "kind",
        "one",
        "other",
        "agrees",
        "one_span",
        "other_span",
    ),
    "launch.unknown_backends": launch_items(
        "a --launcher that DeepSpeed doesn't have, for several nodes",
        "refusals:unknown_backends",
        "name",
        "value_span",
        "whole",
    ),
    "launch.filter_problems": launch_items(
        'why --include or --exclude is refused: `kind` "syntax", "host" or "slot"; `meant` is the right filter',
        "hosts:filter_problems",
        "option",
        "value",
        "kind",
        "why",
        "meant",
        "value_span",
    ),
    "launch.whole_hosts": launch_items(
        "hosts that --include names without slots, and whether all are so; `meant` the filter with slots",
        "hosts:whole_hosts",
        "hosts",
        "are_all",
        "meant",
        "value_span",
    ),
    "launch.retired_options": launch_items(
        "options that DeepSpeed's launcher had before 0.19.8; `first` to `third` are the places of all of them",
        "refusals:retired_options",
        "option",
        "first",
        "second",
        "third",
    ),
    "launch.needs_hostfile": launch_items(
        "what needs a hostfile, where none is named", "hosts:needs_hostfile", "wants"
    ),
    "launch.hostfile_problems": launch_items(
        'why the hostfile is refused: `kind` "bad entry", "twice" or "empty"; `why` for the last two',
        "hosts:hostfile_problems",
        "kind",
        "line",
        "why",
    ),
    "launch.missing_hostfile": launch_items("a hostfile that isn't there", "hosts:missing_hostfile", "path"),
    "launch.slurm_filters": launch_items(
        "slots that the slurm backend can't ask for; `meant` is as many of the first ones",
        "hosts:slurm_filters",
        "why",
        "meant",
        "value_span",
    ),
    "launch.ignored_variable": launch_items(
        "CUDA_VISIBLE_DEVICES beside an option for which DeepSpeed's launcher drops it",
        "devices:ignored_variable",
        "devices",
        "option",
        "variable_span",
        "option_span",
        "include",
    ),
    "launch.too_many_ranks": launch_items(
        'more ranks a node than GPUs; `kind` says where these stand: "gpus", "visible", "slurm", "hostfile"; '
        "`count` is what the option should say",
        "devices:too_many_ranks",
        "kind",
        "ranks",
        "gpus",
        "count",
        "value_span",
        "reserved",
    ),
    "launch.refused_local_rank": launch_items(
        "parsers that refuse the local rank which the launcher adds: `flag`, `launcher`, `is_dataclass`, "
        "`knows_other` whether they know the other spelling",
        "local_rank:refused",
        "flag",
        "launcher",
        "is_dataclass",
        "knows_other",
        "text",
        "parser",
        "declaration",
        "both",
    ),
    "launch.local_rank_mismatches": launch_items(
        "deepspeed.initialize with args whose local_rank is the same on all ranks",
        "local_rank:mismatches",
        "rank",
        "launcher",
        "text",
        "default",
    ),
    "launch.shared_devices": launch_items(
        "a device chosen by args.local_rank, which is the same on all ranks",
        "local_rank:shared_devices",
        "rank",
        "launcher",
        "text",
        "os",
        "code",
    ),
    "launch.refused_words": launch_items(
        'words that the script\'s parser refuses: its `message`, and what to do (`hint`); `kind` "switch" for a '
        'path behind one, "near" for a name like that of another option, which is `meant`',
        "script_words:refused_words",
        "message",
        "is_dataclass",
        "hint",
        "kind",
        "meant",
        "name_span",
    ),
    "launch.options_behind": launch_items(
        "options of the launcher behind the script, which doesn't read them either",
        "script_words:launcher_options_behind",
        "option",
        "command",
        "script",
    ),
    "launch.trainer_words": launch_items(
        '`kind` "switch": --deepspeed without a file; "unknown": --deepspeed_config, for TrainingArguments',
        "script_words:trainer_words",
        "kind",
        "word",
        "has_path",
        "config",
        "name_span",
    ),
    "launch.without_meeting_place": launch_items(
        'torchrun on several nodes without an "address" or a "rank" (`kind`)',
        "processes:without_meeting_place",
        "kind",
        "nodes",
    ),
    "launch.accelerate_without_address": launch_items(
        "Accelerate on several machines without main_process_ip",
        "processes:accelerate_without_address",
        "machines",
    ),
    "launch.uneven_processes": launch_items(
        "Accelerate's processes that its machines can't share evenly",
        "processes:uneven_processes",
        "processes",
        "machines",
        "per_machine",
        "started",
        "more",
        "all",
        "value_span",
    ),
    "launch.multiplied": launch_items(
        "a launcher that `outer` (srun, mpirun) starts more often than it knows of",
        "processes:multiplied",
        "outer",
        "tasks",
        "expected",
        "launcher",
        "per_node_span",
    ),
    "launch.idle_nodes": launch_items(
        "nodes that #SBATCH lines reserve for a command that runs on one",
        "processes:idle_nodes",
        "reserved",
        "number",
    ),
    "launch.plain_python": launch_items(
        "a script with an engine that no launcher starts; `python` is that word",
        "processes:plain_python",
        "framework",
        "python",
    ),
    "launch.missing_config": launch_items("a config that isn't there", "config_file:missing_config", "path"),
}

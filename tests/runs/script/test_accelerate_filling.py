"""The config that Accelerate makes of a script, and what it writes over "auto"."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from dslint.lint import facts_of
from dslint.rulebook.cases import run_of
from dslint.runs.facts import Facts
from dslint.runs.unknown import Unknown

HEAD = """
import torch
from accelerate import Accelerator, DeepSpeedPlugin
from accelerate.utils import DummyOptim, DummyScheduler, GradientAccumulationPlugin
from torch.utils.data import DataLoader
"""
MODEL = """
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = DataLoader(rows(), batch_size=16)
"""
PREPARE = "model, optimizer, data = accelerator.prepare(model, optimizer, data)"
YAML = "distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 2}\nnum_processes: 2\n"


def maker(plugin: str = "zero_stage=2", more: str = "") -> str:
    return f"accelerator = Accelerator(deepspeed_plugin=DeepSpeedPlugin({plugin}){more})"


def facts(*parts: str, **case: Any) -> Facts:
    text = "\n".join([HEAD, *(textwrap.dedent(part).strip("\n") for part in parts)]) + "\n"
    return facts_of(run_of({"script": text, "gpus": 4, **case}))


def value(name: str, *parts: str, **case: Any) -> Any:
    return facts(*parts, **case).value(name)


# --- the plugin's arguments ---


def test_arguments_of_the_plugin_are_a_config() -> None:
    found = facts(maker('zero_stage=3, gradient_clipping=0.5, offload_param_device="cpu"'), MODEL, PREPARE)
    assert found.value("zero_stage") == 3
    assert found.value("config.gradient_clipping") == 0.5
    assert found.value("config.zero_optimization.offload_param.device") == "cpu"
    assert found.value("config.zero_optimization.offload_optimizer.device") == "none"
    source, span = found.place("config.zero_optimization.stage")
    assert source.slice(span) == "zero_stage=3"


def test_positions_count_too() -> None:
    found = facts(maker("None, 2, 0.5, 1"), MODEL, PREPARE)
    assert (found.value("accumulation"), found.value("config.gradient_clipping"), found.value("zero_stage")) == (
        2,
        0.5,
        1,
    )


def test_a_plugin_without_arguments_means_stage_2() -> None:
    assert value("zero_stage", maker(""), MODEL, PREPARE) == 2


@pytest.mark.parametrize("plugin", ["zero_stage=args.stage", "**settings()", "hf_ds_config=make()"])
def test_what_cannot_be_told_is_unknown(plugin: str) -> None:
    assert isinstance(value("zero_stage", maker(plugin), MODEL, PREPARE), Unknown)


def test_two_plugins_are_no_config_of_the_run() -> None:
    both = 'plugins = {"a": DeepSpeedPlugin(zero_stage=1), "b": DeepSpeedPlugin(zero_stage=2)}'
    assert isinstance(value("zero_stage", both, "accelerator = Accelerator(deepspeed_plugins=plugins)"), Unknown)


def test_a_clipping_of_zero_is_dropped() -> None:
    assert value("config.gradient_clipping", maker("gradient_clipping=0.0"), MODEL, PREPARE) == 1.0
    assert value("config.gradient_clipping", maker("gradient_clipping=0.0"), MODEL, deepspeed="0.18.0") == 0.0


def test_mixed_precision_switches_a_section_on() -> None:
    found = facts(maker(more=', mixed_precision="bf16"'), MODEL, PREPARE)
    assert (found.value("config.bf16.enabled"), found.value("config.fp16.enabled")) == (True, False)
    unknown = facts(maker(more=", mixed_precision=choose()"), MODEL, PREPARE)
    assert isinstance(unknown.value("config.bf16.enabled"), Unknown)


def test_a_config_file_leaves_the_plugins_arguments_out() -> None:
    config = {"zero_optimization": {"stage": 1}}
    plugin = 'hf_ds_config="ds_config.json", zero_stage=3'
    assert value("zero_stage", maker(plugin), MODEL, PREPARE, config=config) == 1


# --- "auto" ---


AUTO = {
    "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
    "gradient_clipping": "auto",
    "fp16": {"enabled": "auto"},
    "bf16": {"enabled": "auto"},
    "zero_optimization": {"stage": 2},
}
FILE = 'hf_ds_config="ds_config.json"'


def test_batch_sizes_come_from_the_loader() -> None:
    found = facts(maker(FILE, ", gradient_accumulation_steps=3"), MODEL, PREPARE, config=AUTO)
    assert (found.value("micro_batch"), found.value("accumulation")) == (16, 3)
    assert found.value("config.train_batch_size") == 16 * 3 * 4


def test_the_smallest_loader_counts_unless_the_plugin_says_otherwise() -> None:
    both = "model, optimizer, data, tests = accelerator.prepare(model, optimizer, data, DataLoader(rows(), 2))"
    assert value("micro_batch", maker(FILE), MODEL, both, config=AUTO) == 2
    largest = maker(FILE + ", is_train_batch_min=False")
    assert value("micro_batch", largest, MODEL, both, config=AUTO) == 16


@pytest.mark.parametrize(
    "parts",
    [
        (maker(FILE, ", split_batches=True"), MODEL, PREPARE),
        (maker(FILE), MODEL.replace("16", "size()"), PREPARE),
        (maker(FILE), MODEL.replace("batch_size=16", "batch_sampler=sampler()"), PREPARE),
        (maker(FILE), MODEL, PREPARE.replace("data)", "data, other())").replace("data =", "data, more =")),
        (maker(FILE), MODEL),
        (
            maker(FILE),
            'accelerator.state.deepspeed_plugin.deepspeed_config["train_micro_batch_size_per_gpu"] = 4',
            MODEL,
            PREPARE,
        ),
    ],
)
def test_a_batch_size_that_cannot_be_told(parts: tuple[str, ...]) -> None:
    assert isinstance(value("config.train_micro_batch_size_per_gpu", *parts, config=AUTO), Unknown)


def test_accumulation_comes_from_the_accelerator_or_its_plugin() -> None:
    name = "config.gradient_accumulation_steps"
    by_plugin = ", gradient_accumulation_plugin=GradientAccumulationPlugin(num_steps=5)"
    assert value(name, maker(FILE), MODEL, PREPARE, config=AUTO) == 1
    assert value(name, maker(FILE, by_plugin), MODEL, PREPARE, config=AUTO) == 5
    plugin = maker(FILE + ", gradient_accumulation_steps=2", ", gradient_accumulation_steps=7")
    assert value(name, plugin, MODEL, PREPARE, config=AUTO) == 2


def test_the_accelerate_file_overrules_the_script() -> None:
    yaml = YAML.replace("zero_stage: 2", "zero_stage: 2, gradient_accumulation_steps: 2")
    text = "accelerator = Accelerator(gradient_accumulation_steps=7)  # DeepSpeed"
    assert value("accumulation", text, MODEL, PREPARE, accelerate=yaml) == 2
    assert value("accumulation", text, MODEL, PREPARE, accelerate=YAML) == 7


def test_clipping_is_one_unless_the_plugin_says_otherwise() -> None:
    clip = "accelerator.clip_grad_norm_(model.parameters(), 0.1)"
    assert value("config.gradient_clipping", maker(FILE), MODEL, PREPARE, clip, config=AUTO) == 1.0
    assert value("config.gradient_clipping", maker(FILE + ", gradient_clipping=0.3"), MODEL, config=AUTO) == 0.3


def test_precision_is_that_of_the_accelerator() -> None:
    found = facts(maker(FILE, ', mixed_precision="fp16"'), MODEL, PREPARE, config=AUTO)
    assert (found.value("config.fp16.enabled"), found.value("config.bf16.enabled")) == (True, False)
    silent = facts(maker(FILE), MODEL, PREPARE, config=AUTO)
    assert isinstance(silent.value("config.bf16.enabled"), Unknown)  # the launcher may say it
    by_file = facts("accelerator = Accelerator()  # DeepSpeed", MODEL, accelerate=YAML + "mixed_precision: bf16\n")
    assert by_file.value("config.bf16.enabled") is True


def test_dummies_fill_optimizer_and_scheduler() -> None:
    config = {
        **AUTO,
        "optimizer": {"type": "AdamW", "params": {"lr": "auto", "weight_decay": "auto"}},
        "scheduler": {
            "type": "WarmupDecayLR",
            "params": {"warmup_num_steps": "auto", "total_num_steps": "auto", "warmup_min_lr": "auto"},
        },
    }
    dummies = """
    model = torch.nn.Linear(2, 2)
    optimizer = DummyOptim(model.parameters(), lr=0.02)
    scheduler = DummyScheduler(optimizer, total_num_steps=10)
    data = DataLoader(rows(), batch_size=16)
    model, optimizer, data, scheduler = accelerator.prepare(model, optimizer, data, scheduler)
    """
    found = facts(maker(FILE), dummies, config=config)
    assert found.value("config.optimizer.params.lr") == 0.02
    assert found.value("config.optimizer.params.weight_decay") == 0
    assert found.value("config.scheduler.params.warmup_num_steps") == 1
    assert found.value("config.scheduler.params.total_num_steps") == 3  # of four ranks

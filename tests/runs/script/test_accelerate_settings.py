"""What `accelerate launch` hands on to a script: its options, which count more than its file."""

from __future__ import annotations

from typing import Any

import pytest

from dslint.documents.document import stand_in
from dslint.documents.python_reader import read_script
from dslint.documents.shell_reader import read_shell
from dslint.documents.source import Source
from dslint.documents.yaml_reader import read_yaml
from dslint.lint import facts_of
from dslint.runs.accelerate_plugin import plugin_config
from dslint.runs.accelerate_settings import launched_setting
from dslint.runs.facts import Facts
from dslint.runs.launch.reading import launches
from dslint.runs.run import Options, Run
from dslint.runs.script.reading import read_deeds
from dslint.runs.script.values import NOTHING
from dslint.runs.unknown import Unknown

SCRIPT = """
import torch
from accelerate import Accelerator, DeepSpeedPlugin
accelerator = Accelerator({})
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer, data = accelerator.prepare(model, optimizer, torch.utils.data.DataLoader(rows(), 2))
"""
YAML = """
distributed_type: DEEPSPEED
mixed_precision: fp16
deepspeed_config: {zero_stage: 3, gradient_accumulation_steps: 2}
"""


def launched(command: str, accelerator: str = "", yaml: str = "") -> Facts:
    """The facts of a script that a command starts, whose config is nowhere but there."""
    launch = launches(read_shell(Source("run.sh", f"{command} train.py\n".encode())))[0]
    deeds = read_deeds(read_script(Source("train.py", SCRIPT.format(accelerator).encode())), (), lambda _: NOTHING)
    started_by = read_yaml(Source("accelerate.yaml", yaml.encode())) if yaml else None
    config = plugin_config(deeds, started_by, launch)
    return facts_of(Run(config or stand_in(launch.source), started_by, Options(), None, deeds, launch))


def setting(command: str, name: str, yaml: str = "") -> Any:
    facts = launched(command, yaml=yaml)
    found = launched_setting(facts.run.launch, facts.run.accelerate, name)
    return None if found is None else found.value


def test_options_of_the_launcher_are_a_config() -> None:
    facts = launched("accelerate launch --use_deepspeed --zero_stage 3 --gradient_clipping 0.5")
    assert facts.value("zero_stage") == 3
    assert facts.value("config.gradient_clipping") == 0.5
    source, span = facts.place("config.zero_optimization.stage")
    assert source.slice(span) == "--zero_stage 3"


def test_options_without_the_switch_are_none() -> None:
    assert isinstance(launched("accelerate launch --zero_stage 3").value("zero_stage"), Unknown)
    assert isinstance(launched("torchrun").value("zero_stage"), Unknown)


def test_the_plugin_counts_more_than_the_launcher() -> None:
    plugin = "deepspeed_plugin=DeepSpeedPlugin(zero_stage=1)"
    facts = launched("accelerate launch --use_deepspeed --zero_stage 3 --gradient_clipping 0.5", plugin)
    assert (facts.value("zero_stage"), facts.value("config.gradient_clipping")) == (1, 0.5)


def test_a_config_file_of_the_launcher_is_the_config() -> None:
    command = "accelerate launch --use_deepspeed --deepspeed_config_file there.json"
    assert isinstance(
        launched(command, "deepspeed_plugin=DeepSpeedPlugin(zero_stage=1)").value("zero_stage"), Unknown
    )


@pytest.mark.parametrize(
    ("command", "name", "value"),
    [
        ("accelerate launch", "zero_stage", 3),
        ("accelerate launch --zero_stage 2", "zero_stage", 2),
        ("accelerate launch --gradient_clipping 0.25", "gradient_clipping", 0.25),
        ("accelerate launch --mixed_precision bf16", "mixed_precision", "bf16"),
        ("accelerate launch", "mixed_precision", "fp16"),
        ("accelerate launch", "gradient_clipping", None),
        ("torchrun", "zero_stage", None),
    ],
)
def test_options_count_more_than_the_file(command: str, name: str, value: Any) -> None:
    assert setting(command, name, YAML) == value


@pytest.mark.parametrize("command", ["accelerate launch $OPTIONS", 'accelerate launch --zero_stage "${STAGE:-2}"'])
def test_what_the_environment_may_change_is_unknown(command: str) -> None:
    assert isinstance(setting(command, "zero_stage", YAML), Unknown)


def test_the_file_of_another_kind_of_training_says_nothing() -> None:
    assert setting("accelerate launch", "zero_stage", YAML.replace("DEEPSPEED", "MULTI_GPU")) is None


def test_the_launcher_tells_the_precision() -> None:
    facts = launched("accelerate launch --use_deepspeed --mixed_precision bf16")
    assert (facts.value("config.bf16.enabled"), facts.value("config.fp16.enabled")) == (True, False)


def test_the_launcher_overrules_the_scripts_accumulation() -> None:
    command = "accelerate launch --use_deepspeed --gradient_accumulation_steps 2"
    assert launched(command, "gradient_accumulation_steps=8").value("accumulation") == 2
    assert (
        launched("accelerate launch --use_deepspeed", "gradient_accumulation_steps=8").value("accumulation") == 8
    )


def idle(command: str, yaml: str = "") -> list[str]:
    return [one.fields["option"] for one in launched(command, yaml=yaml).value("accelerate.idle_options")]


def test_options_may_have_nothing_that_reads_them() -> None:
    assert idle("accelerate launch --zero_stage 3 --gradient_clipping 1.0") == ["--zero_stage"]
    assert idle("accelerate launch --multi_gpu --deepspeed_config_file ds.json") == ["--deepspeed_config_file"]


@pytest.mark.parametrize(
    "command",
    [
        "accelerate launch --use_deepspeed --zero_stage 3",
        "accelerate launch --config_file somewhere.yaml --zero_stage 3",
        "accelerate launch --use_fsdp --zero_stage 3",
        "accelerate launch $OPTIONS --zero_stage 3",
        "accelerate launch --gradient_accumulation_steps 2",
        "accelerate launch",
        "deepspeed",
    ],
)
def test_options_that_may_be_read(command: str) -> None:
    assert idle(command) == []


def test_a_file_switches_deepspeed_on() -> None:
    assert idle("accelerate launch --zero_stage 3", YAML) == []

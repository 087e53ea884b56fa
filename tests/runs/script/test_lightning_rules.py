"""What is said, and what isn't, about scripts that train with Lightning's DeepSpeed strategy."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from dslint.data import data_folder
from dslint.lint import facts_of
from dslint.rulebook.cases import run_of
from dslint.rulebook.judge import judge
from dslint.rulebook.loader import load_rules

OWN = [
    one.rule
    for one in load_rules(Path(data_folder("rules")))
    if one.rule.code in ("DS206", *(f"DS79{i}" for i in range(10)))
]

SCRIPT = """
import torch
import lightning.pytorch as pl
from deepspeed.ops.adam import DeepSpeedCPUAdam
from lightning.pytorch.strategies import DeepSpeedStrategy
from tiny import Net, loader


class Module(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(*[torch.nn.Linear(8192, 8192) for _ in range(100)])

    def training_step(self, batch, index):
        return self.net(*batch)
{hooks}
    def configure_optimizers(self):
{optimizers}

trainer = pl.Trainer({arguments})
trainer.fit(Module(), loader(2))
"""
ADAM = "return torch.optim.AdamW(self.parameters(), lr=0.001)"


def codes(arguments: str, optimizers: str = ADAM, hooks: str = "", **case: Any) -> list[str]:
    """The rules of Lightning that speak about a script."""
    body = textwrap.indent(textwrap.dedent(optimizers).strip("\n"), " " * 8)
    text = SCRIPT.format(arguments=arguments, optimizers=body, hooks=textwrap.indent(hooks, " " * 4))
    return codes_of(text, **case)


def codes_of(text: str, **case: Any) -> list[str]:
    found = judge(facts_of(run_of({"script": text, "gpus": 2, **case})), OWN).findings
    return sorted({finding.code for finding in found})


def strategy(more: str = "") -> str:
    return 'strategy=DeepSpeedStrategy(config={"zero_optimization": {"stage": 3}' + more + "})"


def test_ordinary_trainings_are_fine() -> None:
    """Layers that __init__ makes under stage 3 included: they cost memory, and may be what is wanted."""
    assert codes('strategy="deepspeed_stage_3"') == []
    assert codes(strategy()) == []  # Lightning adds the batch size
    assert codes('strategy="deepspeed_stage_2", accumulate_grad_batches=4, gradient_clip_val=0.5') == []


def test_accumulation_is_the_trainers() -> None:
    assert codes(strategy(', "gradient_accumulation_steps": 1')) == ["DS790"]
    config = {"gradient_accumulation_steps": 2, "zero_optimization": {"stage": 2}}
    assert codes('strategy=DeepSpeedStrategy(config="ds_config.json")', config=config) == ["DS790"]
    assert codes('strategy="ddp"', config=config) != ["DS790"]


def test_fabric_takes_accumulation_from_the_config() -> None:
    text = """
    from lightning.fabric import Fabric
    from lightning.fabric.strategies import DeepSpeedStrategy
    fabric = Fabric(strategy=DeepSpeedStrategy(config={"gradient_accumulation_steps": 4, "zero_optimization": {}}))
    """
    assert codes_of(textwrap.dedent(text)) == []


def test_gradients_are_clipped_by_norm() -> None:
    value = ', gradient_clip_val=0.5, gradient_clip_algorithm="value"'
    assert codes('strategy="deepspeed_stage_2"' + value) == ["DS791"]
    assert codes('strategy="ddp"' + value) == []
    assert codes('strategy="deepspeed_stage_2"' + value.replace('"value"', '"norm"')) == []


def test_one_limit_counts() -> None:
    assert codes(strategy(', "gradient_clipping": 1.0') + ", gradient_clip_val=0.5") == ["DS792"]
    assert codes(strategy(', "gradient_clipping": 0.5') + ", gradient_clip_val=0.5") == []
    assert codes(strategy(', "gradient_clipping": 1.0') + ", gradient_clip_val=args.clip") == []
    assert codes(strategy() + ", gradient_clip_val=0.5") == []


TWO = """
one = torch.optim.AdamW(self.net[0].parameters())
two = torch.optim.AdamW(self.net[1].parameters())
return {}
"""


@pytest.mark.parametrize("returned", ["[one, two]", "one, two", "[one, two], []"])
def test_several_optimizers_are_too_many(returned: str) -> None:
    assert codes('strategy="deepspeed_stage_2"', TWO.format(returned)) == ["DS793"]
    assert codes('strategy="ddp"', TWO.format(returned)) == []


@pytest.mark.parametrize(
    "optimizers",
    [
        TWO.format("one"),
        TWO.format("[one]"),
        TWO.format("choose([one, two])"),
        "one = torch.optim.AdamW(self.parameters())\nreturn [one], [torch.optim.lr_scheduler.StepLR(one, 1)]",
        "one = torch.optim.AdamW(self.parameters())\nreturn {'optimizer': one, 'lr_scheduler': make(one)}",
        "if self.both:\n    return [torch.optim.SGD([]), torch.optim.SGD([])]\nreturn torch.optim.SGD([])",
        "return [*make_optimizers(self)]",
        "return [left(self), right(self)]",
    ],
)
def test_one_optimizer_in_many_forms(optimizers: str) -> None:
    assert codes('strategy="deepspeed_stage_2"', optimizers) == []


def test_an_optimizer_of_the_config_comes_first() -> None:
    section = ', "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}'
    assert codes(strategy(section)) == ["DS794"]
    without = SCRIPT.replace("    def configure_optimizers(self):\n{optimizers}\n", "")
    assert codes_of(without.format(arguments=strategy(section), hooks="")) == []


OFFLOAD = ', "zero_force_ds_cpu_optimizer": {}, "zero_optimization": {{"stage": 2, "offload_optimizer": {{"device": "cpu"}}}}'


@pytest.mark.parametrize(
    "arguments",
    [
        'strategy="deepspeed_stage_2_offload"',
        'strategy="deepspeed_stage_3_offload_nvme"',
        "strategy=DeepSpeedStrategy(offload_optimizer=True)",
        strategy(OFFLOAD.format(True)),
    ],
)
def test_offloaded_states_want_an_optimizer_of_deepspeed(arguments: str) -> None:
    assert codes(arguments) == ["DS795"]
    assert codes(arguments, "return DeepSpeedCPUAdam(self.parameters())") == []
    chosen = "if self.offloads:\n    return DeepSpeedCPUAdam(self.parameters())\n" + ADAM
    assert codes(arguments, chosen) == []
    assert codes(arguments, "return make_optimizer(self)") == []


def test_pytorchs_optimizers_may_be_allowed() -> None:
    assert codes(strategy(OFFLOAD.format(False))) == []
    assert codes("strategy=DeepSpeedStrategy(offload_optimizer=want())") == []
    assert codes("strategy=DeepSpeedStrategy(stage=3, offload_parameters=True)") == []


@pytest.mark.parametrize(
    ("precision", "section", "found"),
    [
        ("16-mixed", ', "bf16": {"enabled": True}', ["DS797"]),
        ("bf16-true", ', "fp16": {"enabled": True}', ["DS797"]),
        ("bf16-mixed", ', "bf16": {"enabled": True}', []),
        ("bf16-mixed", ', "fp16": {"enabled": False}', []),
        ("32-true", ', "bf16": {"enabled": True}', []),
        ("16-mixed", "", []),
    ],
)
def test_precision_is_said_once(precision: str, section: str, found: list[str]) -> None:
    assert codes(f'precision="{precision}", {strategy(section)}') == found


def test_hooks_that_deepspeed_passes_by() -> None:
    backward = "\ndef backward(self, loss):\n    loss.backward()\n"
    clipping = "\ndef configure_gradient_clipping(self, *args, **kwargs):\n    self.clip_gradients(*args)\n"
    assert codes('strategy="deepspeed"', hooks=backward) == ["DS798"]
    assert codes('strategy="deepspeed"', hooks=clipping) == ["DS799"]
    assert codes('strategy="ddp"', hooks=backward + clipping) == []
    assert codes("strategy=choose()", hooks=backward + clipping) == []

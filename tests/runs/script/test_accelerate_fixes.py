"""What the fixes of the rules about Accelerate and Lightning write, and where they leave a script alone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runs.mending import mended, tiers

HEAD = """
    import torch
    from accelerate import Accelerator, DeepSpeedPlugin
    from tiny import Net, loader
"""


def script_after(code: str, script: str, way: int = 1, **case: Any) -> str | None:
    return mended(code, way, script=script, **case).get("train.py")


# --- backward ---

IN_A_FUNCTION = (
    HEAD
    + """
    def main():
        acc = Accelerator(deepspeed_plugin=DeepSpeedPlugin(zero_stage=2))
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model, optimizer, batches = acc.prepare(model, optimizer, loader(2))
        for x, y in batches:
            {}
            optimizer.step()
    main()
"""
)


def test_the_accelerator_is_called_by_the_name_that_it_has_there() -> None:
    after = str(script_after("DS770", IN_A_FUNCTION.format("(model(x, y) * 2).backward()")))
    assert "\n        acc.backward(model(x, y) * 2)\n" in after


@pytest.mark.parametrize(
    "backward", ["model(x, y).backward(retain_graph=True)", "model(x, y).backward(); model(x, y).backward()"]
)
def test_a_backward_with_arguments_and_one_of_several_stay(backward: str) -> None:
    assert script_after("DS770", IN_A_FUNCTION.format(backward)) is None


def test_an_accelerator_without_a_name_in_the_function_is_not_called() -> None:
    script = (
        HEAD
        + """
    accelerator = Accelerator(deepspeed_plugin=DeepSpeedPlugin(zero_stage=2))
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, batches = accelerator.prepare(model, optimizer, loader(2))
    def step(loss):
        loss.backward()
    for x, y in batches:
        step(model(x, y))
        optimizer.step()
    """
    )
    assert script_after("DS770", script) is None


# --- accumulation ---

ACCUMULATING = (
    HEAD
    + """
    accelerator = Accelerator(gradient_accumulation_steps=4, deepspeed_plugin=DeepSpeedPlugin(zero_stage=2))
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, batches = accelerator.prepare(model, optimizer, loader(2))
    for x, y in batches:
        with accelerator.accumulate(model):
            loss = model(x, y)
            {}
            accelerator.backward(loss)
            optimizer.step()
"""
)


@pytest.mark.parametrize(
    "division",
    ["loss /= accelerator.gradient_accumulation_steps", "loss = loss / accelerator.gradient_accumulation_steps"],
)
def test_a_statement_that_only_divides_goes(division: str) -> None:
    after = str(script_after("DS782", ACCUMULATING.format(division)))
    assert "loss = model(x, y)\n        accelerator.backward(loss)\n" in after


def test_a_loss_that_is_not_divided_again_is_fine() -> None:
    script = ACCUMULATING.format("loss /= accelerator.gradient_accumulation_steps")
    after = script_after("DS782", script, way=2)
    assert after is not None
    assert "accelerator.backward(loss, scale_wrt_gas=False)\n" in after
    with pytest.raises(AssertionError, match="no finding"):
        mended("DS782", script=after)


# --- saving ---

SAVING = """
    import torch
    from accelerate import Accelerator, DeepSpeedPlugin
    from tiny import causal_lm, rows
    accelerator = Accelerator(deepspeed_plugin=DeepSpeedPlugin(hf_ds_config="ds_config.json"))
    model = causal_lm()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = torch.utils.data.DataLoader(rows, batch_size=2)
    model, optimizer, batches = accelerator.prepare(model, optimizer, batches)
    {}
"""
CONFIG = {"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 3}}
GATHER = {"stage3_gather_16bit_weights_on_model_save": True}


def test_the_state_is_gathered_from_the_prepared_model() -> None:
    script = SAVING.format('plain = accelerator.unwrap_model(model)\n    plain.save_pretrained("out")')
    gathering = {**CONFIG, "zero_optimization": {"stage": 3, **GATHER}}
    after = str(script_after("DS785", script, config=gathering))
    assert 'plain.save_pretrained("out", state_dict=accelerator.get_state_dict(model))' in after
    assert tiers("DS785", script=script, config=gathering) == {1: "safe"}


def test_gathering_is_switched_on_along_with_it() -> None:
    script = SAVING.format('accelerator.unwrap_model(model).save_pretrained("out")')
    changed = mended("DS785", 2, script=script, config=CONFIG)
    assert '"stage3_gather_16bit_weights_on_model_save": true' in changed["ds_config.json"]
    assert "state_dict=accelerator.get_state_dict(model)" in changed["train.py"]


@pytest.mark.parametrize("arguments", ["zero_stage=3", "zero_stage=3, "])
def test_a_plugin_without_a_config_is_told_to_gather(arguments: str) -> None:
    save = 'accelerator.unwrap_model(model).save_pretrained("out")'
    script = SAVING.format(save).replace('hf_ds_config="ds_config.json"', arguments)
    after = str(script_after("DS785", script, way=3))
    assert "DeepSpeedPlugin(zero_stage=3, zero3_save_16bit_model=True)" in after
    assert "state_dict=accelerator.get_state_dict(model)" in after


def test_nothing_is_gathered_where_only_one_rank_comes() -> None:
    guarded = 'if accelerator.is_main_process:\n        accelerator.unwrap_model(model).save_pretrained("out")'
    assert mended("DS785", 2, script=SAVING.format(guarded), config=CONFIG) == {}


def test_a_plugin_over_several_lines_is_left_alone() -> None:
    script = SAVING.format("accelerator.get_state_dict(model)")
    lines = script.replace('hf_ds_config="ds_config.json"', "\n        zero_stage=3\n    ")
    assert mended("DS784", 2, script=lines) == {}
    one = script.replace('hf_ds_config="ds_config.json"', "zero_stage=3")
    assert "DeepSpeedPlugin(zero_stage=3, zero3_save_16bit_model=True)" in str(script_after("DS784", one, way=2))


# --- precision ---


@pytest.mark.parametrize("form", ['mixed_precision="fp16"', '**{"mixed_precision": "fp16"}'])
def test_a_precision_is_not_given_twice(form: str) -> None:
    script = f"""
    from accelerate import Accelerator, DeepSpeedPlugin
    accelerator = Accelerator(deepspeed_plugin=DeepSpeedPlugin(hf_ds_config="ds_config.json"), {form})
    """
    after = script_after("DS788", script, config={**CONFIG, "bf16": {"enabled": True}})
    assert after is None if form.startswith("**") else 'mixed_precision="bf16"' in str(after)


def test_a_precision_that_comes_from_elsewhere_is_left_alone() -> None:
    script = """
    from accelerate import Accelerator, DeepSpeedPlugin
    PRECISION = "fp16"
    plugin = DeepSpeedPlugin(hf_ds_config="ds_config.json")
    accelerator = Accelerator(deepspeed_plugin=plugin, mixed_precision=PRECISION)
    """
    assert script_after("DS788", script, config={**CONFIG, "bf16": {"enabled": True}}) is None


# --- Lightning ---

LIGHTNING = """
    import torch
    import lightning.pytorch as pl
    from lightning.pytorch.strategies import DeepSpeedStrategy

    class Module(pl.LightningModule):
        def training_step(self, batch, index):
            return self.net(*batch)
{hook}
    strategy = DeepSpeedStrategy(config={config})
    trainer = pl.Trainer({arguments})
    trainer.fit(Module(), rows)
"""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", {1: "safe"}),
        ("accumulate_grad_batches=4, ", {2: "safe"}),
        ("accumulate_grad_batches=2, ", {2: "unsafe", 3: "unsafe"}),
    ],
)
def test_accumulation_moves_to_the_trainer_unless_that_says_something_else(
    given: str, expected: dict[int, str]
) -> None:
    script = LIGHTNING.format(
        hook="", config={"gradient_accumulation_steps": 4}, arguments=f"{given}strategy=strategy"
    )
    assert tiers("DS790", script=script) == expected
    after = str(script_after("DS790", script, way=min(expected)))
    assert "config={}" in after
    assert ("accumulate_grad_batches=2" if "2" in given else "accumulate_grad_batches=4") in after


def test_a_hook_goes_unless_something_decorates_it() -> None:
    hook = "        {}def backward(self, loss):\n            loss.backward()\n"
    plain = LIGHTNING.format(hook=hook.format(""), config={}, arguments='strategy="deepspeed"')
    assert "def backward" not in str(script_after("DS798", plain))
    decorated = hook.format("@torch.no_grad()\n        ")
    script = LIGHTNING.format(hook=decorated, config={}, arguments='strategy="deepspeed"')
    assert script_after("DS798", script) is None

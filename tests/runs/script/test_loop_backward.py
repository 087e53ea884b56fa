"""Backward passes of raw loops: past the engine, twice for one step, on a loss divided by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runs.script.loop_rules import config, fired, loop

DIRECT = loop("loss = engine(x, y)\nloss.backward()\nengine.step()")
MODULE = loop("loss = engine.module(x, y)\nloss.backward()\nengine.step()")


# --- loss.backward() ---


def test_a_plain_backward_is_an_error_at_stage_0() -> None:
    assert fired(DIRECT, config(None)) == ["DS600"]
    assert fired(DIRECT, config(0)) == ["DS600"]


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_a_plain_backward_is_right_under_zero_in_newer_releases(stage: int) -> None:
    assert fired(DIRECT, config(stage)) == []
    assert fired(DIRECT, config(stage, bf16={"enabled": True}, gradient_accumulation_steps=2)) == []


def test_a_plain_backward_is_an_error_in_older_releases() -> None:
    assert fired(DIRECT, config(2), deepspeed="0.17.6") == ["DS602"]
    assert fired(DIRECT, config(0), deepspeed="0.18.2") == ["DS602"]
    assert fired(DIRECT, config(2), deepspeed="0.18.3") == []


def test_one_rank_needs_no_averaging_in_older_releases() -> None:
    assert fired(DIRECT, config(0), deepspeed="0.17.6", gpus=1) == []


def test_a_dynamic_loss_scale_needs_the_engine() -> None:
    assert fired(DIRECT, config(2, fp16={"enabled": True})) == ["DS601"]
    autocast = {"enabled": True, "dtype": "float16"}
    assert fired(DIRECT, config(1, torch_autocast=autocast)) == ["DS601"]


def test_a_static_scale_and_bf16_do_not() -> None:
    assert fired(DIRECT, config(2, fp16={"enabled": True, "loss_scale": 128})) == []
    assert fired(DIRECT, config(2, fp16={"enabled": False})) == []
    assert fired(DIRECT, config(2, torch_autocast={"enabled": True, "dtype": "bfloat16"})) == []


def test_engine_scale_is_the_other_form() -> None:
    script = loop("loss = engine.scale(engine(x, y))\nloss.backward()\nengine.step()")
    assert fired(script, config(2, fp16={"enabled": True})) == []


FOUND: dict[str, str] = {
    "through a criterion": loop(
        "loss = nn.functional.mse_loss(engine(x), y) + 0.1\nloss.backward()\nengine.step()"
    ),
    "through an attribute": loop("out = engine(x, labels=y)\nout.loss.backward()\nengine.step()"),
    "in every so many turns": loop("loss = engine(x)\nif i > 0:\n    loss.backward()\n    engine.step()"),
    "in a function": """
        import deepspeed
        from data import Net, loader

        def train_step(model, batch):
            loss = model(batch)
            loss.backward()
            model.step()

        def main():
            engine, _, _, _ = deepspeed.initialize(model=Net(), config="ds_config.json")
            for batch in loader:
                train_step(engine, batch)

        if __name__ == "__main__":
            main()
        """,
    "in a class": """
        import deepspeed
        from data import Net, loader

        class Run:
            def __init__(self):
                self.engine, self.optimizer, _, _ = deepspeed.initialize(model=Net(), config="ds_config.json")

            def train(self):
                for batch in loader:
                    loss = self.engine(batch)
                    loss.backward()
                    self.engine.step()

        Run().train()
        """,
    "in a class that other files use": """
        import deepspeed
        from data import Net

        class Run:
            def __init__(self, settings):
                self.engine, self.optimizer, _, _ = deepspeed.initialize(model=Net(), config="ds_config.json")

            def update(self, batch):
                loss = self.engine(batch)
                loss.backward()
                self.engine.step()
        """,
    "under the name of the model": """
        import deepspeed
        from data import Net, loader

        model = Net()
        model, optimizer, _, _ = deepspeed.initialize(model=model, config="ds_config.json")
        for batch in loader:
            loss = model(batch)
            loss.backward()
            model.step()
        """,
}


@pytest.mark.parametrize("script", FOUND.values(), ids=FOUND)
def test_a_plain_backward_is_found(script: str) -> None:
    assert fired(script, config(None)) == ["DS600"]


SILENT: dict[str, str] = {
    "engine.backward": loop("loss = engine(x)\nengine.backward(loss)\nengine.step()"),
    "another model's loss": loop(
        "loss = engine(x)\nengine.backward(loss)\nengine.step()\nother(x).backward()",
        before="other = make_model()",
    ),
    "a teacher that is not trained": loop(
        "target = engine(x)\nloss = nn.functional.mse_loss(student(x), target)\nloss.backward()\noptimizer.step()",
        before="student = make_model()\noptimizer = torch.optim.SGD(student.parameters(), lr=0.1)",
        given="model=model, optimizer=None",
    ),
    "a detached output": loop(
        "target = engine(x)\nengine.backward(target)\nengine.step()\n"
        "loss = (student(x) - target.detach()).pow(2).mean()\nloss.backward()",
        before="student = make_model()",
    ),
    "a forward pass without gradients": loop(
        "with torch.no_grad():\n    target = engine(x)\nloss = (student(x) - target).mean()\nloss.backward()\nengine.step()",
        before="student = make_model()",
    ),
    "one branch for each way": """
        import argparse, deepspeed
        from data import Net, loader

        parser = argparse.ArgumentParser()
        parser.add_argument("--deepspeed", action="store_true")
        args = parser.parse_args()
        model = Net()
        if args.deepspeed:
            model, _, _, _ = deepspeed.initialize(model=model, config="ds_config.json")
        for batch in loader:
            loss = model(batch)
            if args.deepspeed:
                model.backward(loss)
                model.step()
            else:
                loss.backward()
        """,
    "a flag decides": """
        import deepspeed, os
        from data import Net, loader

        engine, *_ = deepspeed.initialize(model=Net(), config="ds_config.json")
        plain = os.environ.get("PLAIN")
        for batch in loader:
            loss = engine(batch)
            if plain:
                loss.backward()
            else:
                engine.backward(loss)
            engine.step()
        """,
    "two configs": """
        import deepspeed
        from data import Net, loader

        settings = {"train_batch_size": 8, "optimizer": {"type": "Adam"}, "zero_optimization": {"stage": 2}}
        one, *_ = deepspeed.initialize(model=Net(), config=settings)
        two, *_ = deepspeed.initialize(model=Net(), config="ds_config.json")
        for batch in loader:
            loss = one(batch)
            loss.backward()
            one.step()
        """,
    "Accelerate": """
        import deepspeed
        from accelerate import Accelerator
        from data import Net, loader, optimizer

        accelerator = Accelerator()
        model, optimizer, loader = accelerator.prepare(Net(), optimizer, loader)
        for batch in loader:
            loss = model(batch)
            accelerator.backward(loss)
            optimizer.step()
        """,
    "a function that nobody calls with an engine": """
        import deepspeed
        from data import Net, loader

        def train_step(model, batch):
            loss = model(batch)
            loss.backward()

        engine, *_ = deepspeed.initialize(model=Net(), config="ds_config.json")
        for batch in loader:
            engine.backward(engine(batch))
            engine.step()
        """,
}


@pytest.mark.parametrize("script", SILENT.values(), ids=SILENT)
def test_other_backward_passes_are_left_alone(script: str) -> None:
    settings = config(None)
    if "optimizer=None" in script:
        settings = config(None, optimizer={"type": "AdamW"})
    assert fired(script, settings) == []


def test_a_config_that_nobody_can_tell_decides_nothing() -> None:
    script = """
        import argparse, deepspeed
        from data import Net, loader

        parser = argparse.ArgumentParser()
        parser.add_argument("--config")
        args = parser.parse_args()
        engine, *_ = deepspeed.initialize(model=Net(), config=args.config)
        for batch in loader:
            engine(batch).backward()
            engine.step()
        """
    assert fired(script, {}) == [] or fired(script, config(None)) == ["DS600"]


# --- past the engine ---


def test_the_bare_model_gives_zero_no_gradients() -> None:
    assert fired(MODULE, config(2)) == ["DS603"]
    assert fired(MODULE, config(3)) == ["DS603"]


def test_the_bare_model_is_not_averaged_at_stage_0() -> None:
    assert fired(MODULE, config(0)) == ["DS604"]
    assert fired(MODULE, config(0), gpus=1) == []


def test_the_bare_model_with_engine_backward_is_right() -> None:
    script = loop("loss = engine.module(x)\nengine.backward(loss)\nengine.step()")
    assert fired(script, config(2)) == []
    assert fired(script, config(0)) == []


def test_a_warm_up_before_the_engine_is_made_is_right() -> None:
    script = loop(
        "loss = engine(x)\nengine.backward(loss)\nengine.step()",
        before="loss = model(torch.zeros(1))\nloss.backward()\nmodel.zero_grad()",
    )
    assert fired(script, config(2)) == []


def test_a_loss_of_both_passes_is_left_alone() -> None:
    script = loop("loss = engine(x) + engine.module.penalty()\nloss.backward()\nengine.step()")
    assert fired(script, config(2)) == []


# --- the loss ---


def divided(line: str, call: str = "engine.backward(loss)", before: str = "accumulation = 4") -> str:
    return loop(f"loss = engine(x)\n{line}\n{call}\nengine.step()", before=before)


def test_a_division_by_the_accumulation_steps_is_one_too_many() -> None:
    settings = config(2, gradient_accumulation_steps=4)
    assert fired(divided("loss = loss / accumulation"), settings) == ["DS605"]
    assert fired(divided("loss /= engine.gradient_accumulation_steps()"), settings) == ["DS605"]


@pytest.mark.parametrize(
    ("script", "settings"),
    [
        (divided("loss = loss / accumulation"), config(2)),
        (divided("loss = loss / accumulation"), config(2, gradient_accumulation_steps=2)),
        (divided("loss = loss / 4"), config(2, gradient_accumulation_steps=4)),
        (divided("loss = (loss + 1) / len(x)"), config(2, gradient_accumulation_steps=4)),
        (
            divided("loss = loss / accumulation", "engine.backward(loss, scale_wrt_gas=False)"),
            config(2, gradient_accumulation_steps=4),
        ),
        (
            divided("shown = loss / accumulation\nprint(shown)"),
            config(2, gradient_accumulation_steps=4),
        ),
        (
            divided("loss = loss / args.accumulation", before="from options import args"),
            config(2, gradient_accumulation_steps=4),
        ),
    ],
)
def test_other_divisions_are_left_alone(script: str, settings: dict[str, Any]) -> None:
    assert fired(script, settings) == []


def output(call: str, model: str = "transformers.AutoModelForCausalLM.from_pretrained('x')") -> str:
    return loop(
        f"out = engine(x, labels=x)\n{call}\nengine.step()", before=f"import transformers\nmodel = {model}"
    )


def test_a_whole_output_is_no_loss() -> None:
    assert fired(output("engine.backward(out)")) == ["DS608"]
    assert fired(output("engine.backward(out)", "transformers.LlamaForCausalLM(settings)")) == ["DS608"]


def test_a_part_of_an_output_may_be_a_loss() -> None:
    assert fired(output("engine.backward(out.loss)")) == []
    assert fired(output("engine.backward(out[0])")) == []
    assert fired(output("loss = out['loss']\nengine.backward(loss)")) == []
    assert (
        fired(output("engine.backward(out)", "Wrapper(transformers.AutoModelForCausalLM.from_pretrained('x'))"))
        == []
    )
    assert fired(output("engine.backward(out)", "make_model()")) == []


# --- how often ---


TWICE = loop("engine.backward(engine(x), retain_graph=True)\nengine.backward(engine(y))\nengine.step()")


def test_the_second_of_two_backward_passes_is_found_at_stages_1_and_2() -> None:
    assert fired(TWICE, config(1)) == ["DS606"]
    assert fired(TWICE, config(2)) == ["DS606"]


def test_older_releases_added_them_up() -> None:
    assert fired(TWICE, config(2), deepspeed="0.16.0") == []
    assert fired(TWICE, config(2), deepspeed="0.18.3") == ["DS606"]


def test_a_retained_graph_is_found_at_stage_3() -> None:
    assert fired(TWICE, config(3)) == ["DS607"]


def test_two_forward_passes_are_right_at_stage_3() -> None:
    script = loop("engine.backward(engine(x))\nengine.backward(engine(y))\nengine.step()")
    assert fired(script, config(3)) == []


ONCE: dict[str, str] = {
    "a step for each": loop(
        "engine.backward(engine(x))\nengine.step()\nengine.backward(engine(y))\nengine.step()"
    ),
    "one branch or the other": loop(
        "if i % 2:\n    engine.backward(engine(x))\nelse:\n    engine.backward(engine(y))\nengine.step()"
    ),
    "coalesced": loop(
        "with engine.coalesce_grad_reduction():\n    engine.backward(engine(x))\n    engine.backward(engine(y))\n"
        "engine.step()"
    ),
    "a boundary set by hand": loop(
        "engine.set_gradient_accumulation_boundary(False)\nengine.backward(engine(x))\n"
        "engine.set_gradient_accumulation_boundary(True)\nengine.backward(engine(y))\nengine.step()"
    ),
    "two engines": """
        import deepspeed
        from data import Net, loader

        one, *_ = deepspeed.initialize(model=Net(), config="ds_config.json")
        two, *_ = deepspeed.initialize(model=Net(), config="ds_config.json")
        for x in loader:
            one.backward(one(x))
            two.backward(two(x))
            one.step()
            two.step()
        """,
    "an exit between": loop(
        "engine.backward(engine(x))\nengine.step()\nif i == 3:\n    engine.backward(engine(y))\n    engine.step()"
    ),
}


@pytest.mark.parametrize("script", ONCE.values(), ids=ONCE)
def test_one_backward_pass_for_each_step_is_right(script: str) -> None:
    assert fired(script, config(2)) == []


def test_two_backward_passes_are_right_where_the_caller_keeps_the_boundary() -> None:
    assert fired(TWICE, config(2, managed_gradient_accumulation=False)) == []
    assert fired(TWICE, config(0)) == []


# --- what it returns ---


def test_the_returned_loss_is_divided() -> None:
    script = loop("loss = engine(x)\nloss = engine.backward(loss)\nengine.step()\nprint(loss.item())")
    assert fired(script, config(2, gradient_accumulation_steps=4)) == ["DS609"]
    assert fired(script, config(2)) == []


def test_the_loss_that_went_in_is_right() -> None:
    script = loop("loss = engine(x)\nengine.backward(loss)\nengine.step()\nprint(loss.item())")
    assert fired(script, config(2, gradient_accumulation_steps=4)) == []

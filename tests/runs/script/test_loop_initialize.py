"""What raw scripts hand to deepspeed.initialize, and what they do with what comes back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runs.script.loop_rules import config, fired, loop

STEP = "engine.backward(engine(x))\nengine.step()"
SCHEDULE = {"type": "WarmupLR", "params": {"warmup_num_steps": 10}}


# --- the four results ---


@pytest.mark.parametrize("names", ["engine, optimizer", "engine, optimizer, loader", "a, b, c, d, engine"])
def test_another_number_of_names_is_an_error(names: str) -> None:
    assert fired(loop("pass", names=names)) == ["DS623"]


@pytest.mark.parametrize(
    "names", ["engine, _, _, _", "engine, *rest", "engine, optimizer, *_", "(engine, a, b, c)"]
)
def test_four_names_or_a_star_are_right(names: str) -> None:
    assert fired(loop(STEP, names=names)) == []


def test_the_first_element_is_the_engine() -> None:
    assert fired(loop(STEP, names="results").replace("for i", "engine = results[0]\nfor i")) == []


def test_the_tuple_is_no_engine() -> None:
    assert fired(loop("loss = engine(x)\nengine.backward(loss)\nengine.step()", names="engine")) == ["DS624"]


# --- wrappers ---


def wrapped(before: str) -> str:
    return loop(STEP, before=before)


DDP = "model = torch.nn.parallel.DistributedDataParallel(model)"


def test_a_wrapped_model() -> None:
    assert fired(wrapped(DDP), config(3)) == ["DS625"]
    assert fired(wrapped(DDP), config(1)) == ["DS626"]
    assert fired(
        wrapped("from torch.nn.parallel import DistributedDataParallel as DDP\nmodel = DDP(model)"), config(0)
    ) == ["DS626"]


@pytest.mark.parametrize(
    "before",
    [
        "other = torch.nn.parallel.DistributedDataParallel(make_model())",
        "model = torch.compile(model)",
        DDP + "\nmodel = model.module",
    ],
)
def test_a_model_that_is_not_wrapped(before: str) -> None:
    assert fired(wrapped(before), config(3)) == []


def test_a_wrapper_in_another_branch() -> None:
    script = """
        import argparse, deepspeed, torch
        from data import Net, loader

        parser = argparse.ArgumentParser()
        parser.add_argument("--deepspeed", action="store_true")
        args = parser.parse_args()
        model = Net()
        if args.deepspeed:
            model, _, _, _ = deepspeed.initialize(model=model, config="ds_config.json")
        else:
            model = torch.nn.parallel.DistributedDataParallel(model)
        """
    assert fired(script, config(3)) == []


# --- optimizers ---


def given(optimizer: str, argument: str = "optimizer") -> str:
    before = f"import bitsandbytes, deepspeed.ops.adam, transformers\noptimizer = {optimizer}"
    return loop(STEP, before=before, given=f"model=model, optimizer={argument}")


def test_two_optimizers() -> None:
    assert fired(given("torch.optim.AdamW(model.parameters())"), config(2)) == ["DS627"]


@pytest.mark.parametrize(
    ("script", "settings"),
    [
        (given("torch.optim.AdamW(model.parameters())"), config(2, optimizer=None)),
        (loop(STEP, given="model=model, optimizer=None"), config(2)),
        (given("make_optimizer(model)"), config(2)),
        (given("torch.optim.AdamW(model.parameters()) if torch.cuda.is_available() else None"), config(2)),
    ],
)
def test_one_optimizer(script: str, settings: dict[str, Any]) -> None:
    assert fired(script, settings) == []


UNTESTED = [
    "torch.optim.SGD(model.parameters(), lr=0.1)",
    "torch.optim.RMSprop(model.parameters())",
    "transformers.Adafactor(model.parameters())",
    "bitsandbytes.optim.AdamW8bit(model.parameters())",
]
TESTED = [
    "torch.optim.Adam(model.parameters())",
    "torch.optim.AdamW(params=model.parameters(), lr=1e-4)",
    "deepspeed.ops.adam.FusedAdam(model.parameters())",
    "deepspeed.ops.adam.DeepSpeedCPUAdam(model.parameters())",
    "make_optimizer(model)",
]


@pytest.mark.parametrize("optimizer", UNTESTED)
def test_untested_optimizers(optimizer: str) -> None:
    script = given(optimizer)
    assert fired(script, config(2, optimizer=None)) == ["DS628"]
    assert fired(script, config(0, optimizer=None)) == []
    assert fired(script, config(2, optimizer=None, zero_allow_untested_optimizer=True)) == []


@pytest.mark.parametrize("optimizer", TESTED)
def test_tested_and_unknown_optimizers(optimizer: str) -> None:
    assert fired(given(optimizer), config(2, optimizer=None)) == []


def test_a_function_that_makes_the_optimizer_is_not_looked_into() -> None:
    script = loop(STEP, given="model=model, optimizer=lambda parameters: torch.optim.AdamW(parameters)")
    assert fired(script, config(2, optimizer=None)) == []


OFFLOADED = {"offload_optimizer": {"device": "cpu"}}


def test_an_offloaded_optimizer_has_to_be_one_for_the_cpu() -> None:
    settings = config(2, optimizer=None, zero_optimization=OFFLOADED)
    assert fired(given("torch.optim.AdamW(model.parameters())"), settings) == ["DS629"]
    assert fired(given("deepspeed.ops.adam.FusedAdam(model.parameters())"), settings) == ["DS629"]
    assert fired(given("deepspeed.ops.adam.DeepSpeedCPUAdam(model.parameters())"), settings) == []
    relaxed = config(2, optimizer=None, zero_optimization=OFFLOADED, zero_force_ds_cpu_optimizer=False)
    assert fired(given("torch.optim.AdamW(model.parameters())"), relaxed) == []


def test_no_optimizer_at_all() -> None:
    assert fired(loop(STEP), config(1, optimizer=None)) == ["DS630"]
    assert fired(loop(STEP), config(2, optimizer=None)) == ["DS630"]
    assert fired(loop(STEP), config(0, optimizer=None)) == ["DS630"]


def test_an_engine_for_inference_needs_no_optimizer() -> None:
    assert fired(loop("print(engine(x))"), config(0, optimizer=None)) == []
    assert fired(loop("print(engine(x))"), config(3, optimizer=None)) == []


def test_arguments_that_nobody_can_follow_may_hold_the_optimizer() -> None:
    script = loop(STEP, before="from options import more", given="model=model, **more")
    assert fired(script, config(2, optimizer=None)) == []


def test_another_file_may_give_the_optimizer() -> None:
    script = """
        import deepspeed

        def prepare(model, optimizer=None, parameters=None):
            engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config="ds_config.json")
            return engine

        def train(model, loader, optimizer=None):
            engine = prepare(model, optimizer)
            for batch in loader:
                engine.backward(engine(batch))
                engine.step()
        """
    assert fired(script, config(2, optimizer=None)) == []


def test_model_parameters_may_be_left_out() -> None:
    assert fired(loop(STEP), config(2)) == []


# --- parameters ---


def counted(parameters: str, use: str, more: str = "") -> str:
    return loop(
        STEP, before=f"parameters = {parameters}\n{use}", given=f"model=model, model_parameters=parameters{more}"
    )


COUNT = "print(sum(p.numel() for p in parameters))"


@pytest.mark.parametrize(
    ("parameters", "use"),
    [
        ("model.parameters()", COUNT),
        ("model.parameters()", "for p in parameters:\n    p.mark()"),
        ("model.parameters()", "print(len(list(parameters)))"),
        ("filter(lambda p: p.requires_grad, model.parameters())", COUNT),
        ("(p for p in model.parameters() if p.requires_grad)", COUNT),
    ],
)
def test_a_generator_that_was_gone_through(parameters: str, use: str) -> None:
    assert fired(counted(parameters, use)) == ["DS631"]


@pytest.mark.parametrize(
    ("parameters", "use"),
    [
        ("model.parameters()", ""),
        ("list(model.parameters())", COUNT),
        ("[p for p in model.parameters() if p.requires_grad]", COUNT),
        ("model.parameters()", "print(sum(p.numel() for p in model.parameters()))"),
        ("model.parameters()", COUNT + "\nparameters = model.parameters()"),
        ("get_parameters(model)", COUNT),
        ("model.parameters()", "for p in parameters:\n    p.mark()\n    break"),
    ],
)
def test_parameters_that_are_still_there(parameters: str, use: str) -> None:
    assert fired(counted(parameters, use)) == []


def test_a_given_optimizer_makes_them_superfluous() -> None:
    before = "optimizer = torch.optim.AdamW(parameters)"
    script = counted("model.parameters()", before, more=", optimizer=optimizer")
    assert fired(script, config(2, optimizer=None)) == []


# --- schedulers ---


def scheduled(body: str, schedule: str, more: str = "lr_scheduler=scheduler") -> str:
    before = f"optimizer = torch.optim.AdamW(model.parameters())\n{schedule}"
    return loop(body, before=before, given=f"model=model, {more}")


LAMBDA = "scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (step + 1))"


def test_a_scheduler_is_stepped_by_the_engine() -> None:
    script = loop(STEP + "\nscheduler.step()", names="engine, _, _, scheduler")
    assert fired(script, config(2, scheduler=SCHEDULE)) == ["DS637"]
    assert fired(loop(STEP + "\nengine.lr_scheduler.step()"), config(2, scheduler=SCHEDULE)) == ["DS637"]
    own = scheduled(STEP + "\nscheduler.step()", LAMBDA, "optimizer=optimizer, lr_scheduler=scheduler")
    assert fired(own, config(2, optimizer=None)) == ["DS637"]


def test_a_test_for_none_changes_nothing() -> None:
    script = loop(STEP + "\nif scheduler is not None:\n    scheduler.step()", names="engine, _, _, scheduler")
    assert fired(script, config(2, scheduler=SCHEDULE)) == ["DS637"]
    assert fired(script, config(2)) == []


@pytest.mark.parametrize(
    ("script", "settings"),
    [
        (scheduled(STEP + "\nscheduler.step()", LAMBDA, "optimizer=optimizer"), config(2, optimizer=None)),
        (
            loop(
                STEP + "\nif scheduler is not None:\n    scheduler.step()",
                before="made = make_scheduler()",
                given="model=model, lr_scheduler=made",
                names="engine, _, _, scheduler",
            ),
            config(2),
        ),
        (loop("print(x)\nscheduler.step()", names="engine, _, _, scheduler"), config(2, scheduler=SCHEDULE)),
        (
            loop(STEP, names="engine, _, _, scheduler") + "scheduler.step()\n",
            config(2, scheduler=SCHEDULE),
        ),
    ],
)
def test_schedulers_that_the_script_steps_alone(script: str, settings: dict[str, Any]) -> None:
    assert fired(script, settings) == []


def test_a_scheduler_of_another_optimizer() -> None:
    assert fired(scheduled(STEP, LAMBDA), config(2)) == ["DS638"]
    other = scheduled(
        STEP,
        "other = torch.optim.AdamW(model.parameters())\n" + LAMBDA.replace("optimizer,", "other,"),
        "optimizer=optimizer, lr_scheduler=scheduler",
    )
    assert fired(other, config(2, optimizer=None)) == ["DS638"]
    named = "import transformers\nscheduler = transformers.get_linear_schedule_with_warmup(optimizer, 10, 100)"
    assert fired(scheduled(STEP, named), config(2)) == ["DS638"]


@pytest.mark.parametrize(
    "more",
    [
        "optimizer=optimizer, lr_scheduler=scheduler",
        "optimizer=wrap(optimizer), lr_scheduler=scheduler",
        "**options",
    ],
)
def test_a_scheduler_of_the_optimizer_that_trains(more: str) -> None:
    script = scheduled(STEP, LAMBDA + "\nfrom options import options, wrap", more)
    assert "DS638" not in fired(script, config(2, optimizer=None))


def test_a_function_makes_the_scheduler_of_the_right_optimizer() -> None:
    script = loop(STEP, given="model=model, lr_scheduler=lambda o: torch.optim.lr_scheduler.LambdaLR(o, abs)")
    assert fired(script) == []


def on_returned(optimizer: str = "optimizer") -> str:
    text = loop(STEP + "\nscheduler.step()", names="engine, optimizer, _, _")
    return text.replace("for i", f"scheduler = torch.optim.lr_scheduler.StepLR({optimizer}, 10)\nfor i")


def test_a_scheduler_on_the_returned_optimizer() -> None:
    assert fired(on_returned(), config(2)) == ["DS639"]
    assert fired(on_returned("engine.optimizer"), config(2)) == ["DS639"]
    assert fired(on_returned(), config(0, bf16={"enabled": True})) == ["DS639"]
    assert fired(on_returned(), config(0)) == []
    assert fired(on_returned("engine.basic_optimizer"), config(2)) == []

"""Steps of raw loops: past the engine, behind a condition, never; clipping and zeroing by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runs.script.loop_rules import config, fired, loop

CLIENT = "optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)"
GIVEN = "model=model, optimizer=optimizer"
BACKWARD = "loss = engine(x)\nengine.backward(loss)\n"
FOUR = {"gradient_accumulation_steps": 4}


# --- past the engine ---


def test_the_given_optimizer_steps_nothing_under_zero() -> None:
    script = loop(BACKWARD + "optimizer.step()\noptimizer.zero_grad()", before=CLIENT, given=GIVEN)
    assert fired(script, config(2, optimizer=None)) == ["DS610"]
    assert fired(script, config(3, optimizer=None)) == ["DS610"]
    assert fired(script, config(None, optimizer=None)) == []


def test_another_optimizer_may_be_stepped() -> None:
    other = loop(
        BACKWARD + "engine.step()\nother.step()",
        before=CLIENT + "\nother = torch.optim.SGD(make_model().parameters(), lr=0.1)",
        given=GIVEN,
    )
    assert fired(other, config(2, optimizer=None)) == []


def test_the_returned_optimizer_leaves_the_engine_behind() -> None:
    script = loop(BACKWARD + "optimizer.step()", names="engine, optimizer, _, _")
    assert fired(script, config(2)) == ["DS611"]
    assert fired(script, config(2, **FOUR)) == ["DS612"]
    assert fired(loop(BACKWARD + "engine.optimizer.step()"), config(2)) == ["DS611"]


UNSTEPPED = loop(BACKWARD)


def test_a_loop_without_any_step_trains_nothing() -> None:
    assert fired(UNSTEPPED) == ["DS613"]


STEPPED: dict[str, str] = {
    "elsewhere": loop(BACKWARD + "finish(engine)", before="from elsewhere import finish"),
    "by an object that holds it": loop(
        BACKWARD + "runner.after_batch()", before="from elsewhere import Runner"
    ).replace("for i", "runner = Runner(engine)\nfor i"),
    "in a branch": loop(BACKWARD + "if i > 3:\n    engine.step()"),
    "in a function of the file": loop(BACKWARD + "apply(engine)", before="def apply(model):\n    model.step()\n"),
    "through a bound method": loop(BACKWARD + "step = engine.step\nstep()"),
}


@pytest.mark.parametrize("script", STEPPED.values(), ids=STEPPED)
def test_a_step_may_be_taken_elsewhere(script: str) -> None:
    assert "DS613" not in fired(script)


# --- behind a condition ---


def gated(condition: str, before: str = "accumulation = 4") -> str:
    return loop(BACKWARD + f"if {condition}:\n    engine.step()", before=before)


@pytest.mark.parametrize(
    "condition",
    [
        "(i + 1) % accumulation == 0",
        "(i + 1) % 4 == 0",
        "i % engine.gradient_accumulation_steps() == 0",
        "not (i + 1) % accumulation != 0",
        "(i + 1) % accumulation == 0 or i + 1 == len(loader)",
    ],
)
def test_a_step_behind_a_counter_is_counted_twice(condition: str) -> None:
    assert fired(gated(condition), config(2, **FOUR)) == ["DS614"]


def test_older_releases_count_too() -> None:
    script = gated("(i + 1) % accumulation == 0")
    assert fired(script, config(2, **FOUR), deepspeed="0.16.0") == ["DS614"]


def test_a_counter_is_right_where_nobody_else_counts() -> None:
    script = gated("(i + 1) % accumulation == 0")
    assert fired(script, config(2)) == []
    assert fired(script, config(2, **FOUR, managed_gradient_accumulation=False)) == []


@pytest.mark.parametrize(
    "script",
    [
        gated("i < limit", before="limit = 3"),
        gated("(i + 1) % args.accumulation == 0", before="from options import args"),
        loop("if (i + 1) % 4 == 0:\n    engine.backward(engine(x))\n    engine.step()"),
        loop(BACKWARD + "engine.step()\nif (i + 1) % 4 == 0:\n    print(i)"),
        loop(BACKWARD + "if (i + 1) % 4 == 0:\n    engine.step()\nelse:\n    engine.step()"),
        loop(
            "engine.set_gradient_accumulation_boundary((i + 1) % 4 == 0)\n"
            + BACKWARD
            + "if (i + 1) % 4 == 0:\n    engine.step()"
        ),
    ],
)
def test_other_conditions_are_left_alone(script: str) -> None:
    assert fired(script, config(2, **FOUR)) == []


def test_a_step_behind_the_boundary_never_comes() -> None:
    script = gated("engine.is_gradient_accumulation_boundary()")
    assert fired(script, config(2, **FOUR)) == ["DS615"]
    assert fired(script, config(2)) == []


def test_a_report_behind_the_boundary_is_right() -> None:
    script = loop(BACKWARD + "if engine.is_gradient_accumulation_boundary():\n    print(loss)\nengine.step()")
    assert fired(script, config(2, **FOUR)) == []


# --- zero_grad ---


@pytest.mark.parametrize(
    ("call", "stage", "codes"),
    [
        ("engine.zero_grad()", 0, ["DS616"]),
        ("engine.zero_grad()", 1, ["DS616"]),
        ("engine.zero_grad()", 2, []),
        ("engine.zero_grad()", 3, []),
        ("optimizer.zero_grad()", 0, ["DS616"]),
        ("optimizer.zero_grad()", 1, ["DS616"]),
        ("optimizer.zero_grad()", 2, []),
        ("optimizer.zero_grad()", 3, ["DS616"]),
    ],
)
def test_zeroing_at_each_micro_batch(call: str, stage: int, codes: list[str]) -> None:
    script = loop(f"{call}\n{BACKWARD}engine.step()", names="engine, optimizer, _, _")
    assert fired(script, config(stage, **FOUR)) == codes
    assert fired(script, config(stage)) == []


def test_zeroing_at_the_boundary_or_once_is_right() -> None:
    at_the_boundary = loop(
        "if engine.is_gradient_accumulation_boundary():\n    engine.zero_grad()\n" + BACKWARD + "engine.step()"
    )
    once = loop(BACKWARD + "engine.step()").replace("for i", "engine.zero_grad()\nfor i")
    assert fired(at_the_boundary, config(1, **FOUR)) == []
    assert fired(once, config(1, **FOUR)) == []


# --- no_sync ---


@pytest.mark.parametrize(("stage", "codes"), [(0, []), (1, []), (2, ["DS618"]), (3, ["DS618"])])
def test_no_sync_around_a_backward_pass(stage: int, codes: list[str]) -> None:
    script = loop("with engine.no_sync():\n    engine.backward(engine(x))\nengine.step()")
    assert fired(script, config(stage)) == codes


def test_no_sync_around_a_step() -> None:
    script = loop("with engine.no_sync():\n    engine.backward(engine(x))\n    engine.step()")
    assert fired(script, config(0)) == ["DS618"]


def test_no_sync_of_something_else_is_left_alone() -> None:
    script = loop("with ddp.no_sync():\n    engine.backward(engine(x))\nengine.step()", before="ddp = wrap(model)")
    assert fired(script, config(2)) == []


# --- clipping ---


def clipped(parameters: str, before: str = "") -> str:
    return loop(BACKWARD + f"torch.nn.utils.clip_grad_norm_({parameters}, 1.0)\nengine.step()", before=before)


@pytest.mark.parametrize(
    "parameters",
    ["engine.parameters()", "model.parameters()", "engine.module.parameters()", "model.encoder.parameters()"],
)
def test_clipping_by_hand_clips_nothing_under_zero(parameters: str) -> None:
    for stage in (1, 2, 3):
        assert fired(clipped(parameters), config(stage)) == ["DS619"]
    assert fired(clipped(parameters), config(0)) == []


CLIPPED: dict[str, Any] = {
    "another model": clipped("other.parameters()", before="other = make_model()"),
    "before the engine is made": loop(
        BACKWARD + "engine.step()", before="torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
    ),
    "without the engine": """
        import argparse, deepspeed, torch
        from data import Net, loader

        parser = argparse.ArgumentParser()
        parser.add_argument("--deepspeed", action="store_true")
        args = parser.parse_args()
        model = Net()
        if args.deepspeed:
            engine, _, _, _ = deepspeed.initialize(model=model, config="ds_config.json")
        for batch in loader:
            if args.deepspeed:
                engine.backward(engine(batch))
                engine.step()
            else:
                model(batch).backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        """,
}


@pytest.mark.parametrize("script", CLIPPED.values(), ids=CLIPPED)
def test_other_clipping_is_left_alone(script: str) -> None:
    assert fired(script, config(2)) == []

"""Steps of engine, scaler and scheduler after a fix."""

from __future__ import annotations

import pytest

from tests.runs.script.loop_rules import config, loop
from tests.runs.script.mended_scripts import NOT_MENDED, mended

CLIENT = {
    "before": "optimizer = torch.optim.AdamW(model.parameters())",
    "given": "model=model, optimizer=optimizer",
}
NO_OPTIMIZER = config(optimizer=None)


def test_the_engine_steps_instead_of_the_optimizer() -> None:
    script = loop("engine.backward(engine(x, y))\noptimizer.step()\noptimizer.zero_grad()", **CLIENT)
    assert "    engine.step()\n    optimizer.zero_grad()\n" in mended("DS610", script, NO_OPTIMIZER)


@pytest.mark.parametrize(
    "body",
    [
        "engine.backward(engine(x, y))\nif i % 4 == 0:\n    optimizer.step()",
        "engine.backward(engine(x, y))\noptimizer.step(lambda: 0)",
        "engine.backward(engine(x, y))\nengine.backward(engine(y, x))\noptimizer.step()",
    ],
)
def test_a_step_that_is_no_step_of_the_engine_is_left_alone(body: str) -> None:
    assert mended("DS610", loop(body, **CLIENT), NO_OPTIMIZER) == NOT_MENDED


def test_a_step_comes_after_the_only_backward_pass() -> None:
    assert mended("DS613", loop("engine.backward(engine(x, y))")).endswith("\n    engine.step()\n")
    assert mended("DS613", loop("engine.backward(engine(x, y))\nengine.backward(engine(y, x))")) == NOT_MENDED
    assert mended("DS613", loop("engine.backward(engine(x, y) / 4)")) == NOT_MENDED
    asking = "engine.backward(engine(x, y))\nprint(engine.is_gradient_accumulation_boundary())"
    assert mended("DS613", loop(asking)) == NOT_MENDED
    inside = loop("with engine.no_sync():\n    engine.backward(engine(x, y))")
    assert mended("DS613", inside, config(0)) == NOT_MENDED


def test_a_gated_step_leaves_its_if_and_the_rest_stays_there() -> None:
    script = loop("engine.backward(engine(x, y))\nif (i + 1) % 2 == 0:\n    engine.step()\n    print(i)")
    settings = config(1, gradient_accumulation_steps=2)
    expected = "    engine.step()\n    if (i + 1) % 2 == 0:\n        print(i)\n"
    assert mended("DS614", script, settings).endswith(expected)


def test_a_continue_before_more_than_the_step_offers_nothing() -> None:
    script = loop("engine.backward(engine(x, y))\nif (i + 1) % 2 != 0:\n    continue\nengine.step()\nprint(i)")
    settings = config(1, gradient_accumulation_steps=2)
    assert [mended("DS614", script, settings, way) for way in (1, 2, 3)] == [NOT_MENDED] * 3


# --- precision and clipping ---


def test_clipping_whose_norm_is_used_stays() -> None:
    body = (
        "engine.backward(engine(x, y))\n{}torch.nn.utils.clip_grad_norm_(engine.parameters(), {})\nengine.step()"
    )
    assert "clip_grad" not in mended("DS619", loop(body.format("", "1.0")))
    assert mended("DS619", loop(body.format("norm = ", "1.0"))) == NOT_MENDED
    assert mended("DS619", loop(body.format("", "1.0, norm_type=1"))) == NOT_MENDED
    assert mended("DS619", loop(body.format("", "limit"))) == NOT_MENDED
    assert "clip_grad" not in mended("DS619", loop(body.format("", "limit")), way=2)


def test_a_limit_in_the_config_is_not_overwritten() -> None:
    body = "engine.backward(engine(x, y))\ntorch.nn.utils.clip_grad_norm_(engine.parameters(), 0.5)\nengine.step()"
    settings = config(gradient_clipping=0.1)
    assert mended("DS619", loop(body), settings) == NOT_MENDED
    assert "clip_grad" not in mended("DS619", loop(body), settings, way=2)


def test_a_scaler_that_unscales_is_left_to_a_person() -> None:
    body = "scaler.scale(engine(x, y)).backward()\n{}scaler.step(optimizer)\nscaler.update()"
    plain = {"before": "scaler = torch.amp.GradScaler('cuda')", "names": "engine, optimizer, _, _"}
    text = mended("DS621", loop(body.format(""), **plain))
    assert text.endswith("    engine.backward(engine(x, y))\n    engine.step()\n")
    assert mended("DS621", loop(body.format("scaler.unscale_(optimizer)\n"), **plain)) == NOT_MENDED


# --- schedulers ---


def test_a_scheduler_of_a_spare_optimizer_becomes_a_function() -> None:
    before = "spare = torch.optim.AdamW(model.parameters())\nsched = torch.optim.lr_scheduler.StepLR(spare, {})"
    body = "engine.backward(engine(x, y))\nengine.step()"
    script = loop(body, before.format("9"), "model=model, lr_scheduler=sched")
    expected = "lr_scheduler=lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 9), config"
    assert expected in mended("DS638", script)
    hidden = loop(body, before.format("len(optimizer)"), "model=model, lr_scheduler=sched")
    assert mended("DS638", hidden) == NOT_MENDED


def test_a_scheduler_after_each_epoch_is_left_to_the_script() -> None:
    script = """
        import deepspeed, torch
        from data import make_model, loader

        model = make_model()
        optimizer = torch.optim.AdamW(model.parameters())
        mine = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        engine, _, _, theirs = deepspeed.initialize(
            model=model, optimizer=optimizer, lr_scheduler=mine, config="ds_config.json"
        )
        for epoch in range(2):
            for x, y in loader:
                engine.backward(engine(x, y))
                engine.step()
            {}
    """
    settings = config(1, optimizer=None)
    text = mended("DS637", script.format("theirs.step()"), settings)
    assert "    model=model, optimizer=optimizer, config=" in text
    assert text.endswith("    mine.step()\n")
    assert mended("DS637", script.format("theirs.step(); print(theirs)"), settings) == NOT_MENDED

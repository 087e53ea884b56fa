"""Backward passes that go through the engine, once and undivided, after a fix."""

from __future__ import annotations

import textwrap

import pytest

from tests.runs.script.loop_rules import config, loop
from tests.runs.script.mended_scripts import NOT_MENDED, mended


def test_the_loss_goes_through_the_engine_with_all_of_its_text() -> None:
    script = loop("loss = engine(x, y)\n(loss\n + 0.1 * loss.detach()).backward()\nengine.step()")
    assert "engine.backward(loss\n" in mended("DS600", script, config(0))
    kept = mended("DS600", loop("loss = engine(x, y)\nloss.backward(retain_graph=True)\nengine.step()"), config(0))
    assert "    engine.backward(loss, retain_graph=True)\n" in kept


METHODS = """
import deepspeed
import torch.nn.functional as F
from data import make_model, loader


class Training:
    def __init__(self):
        {made}

    def fit(self):
        for x, y in loader:
            out = self.engine(x)
            F.cross_entropy(
                out,  # logits
                y,
            ).backward()
            self.engine.step()
"""
ON_LINES = """{} = deepspeed.initialize(
            model=make_model(),  # a small one
            config="ds_config.json",
        )"""


def test_lines_and_comments_of_a_long_loss_stay_as_they_are() -> None:
    made = 'self.engine, *_ = deepspeed.initialize(model=make_model(), config="ds_config.json")'
    text = mended("DS600", METHODS.format(made=made), config(0))
    lines = ["self.engine.backward(F.cross_entropy(", "    out,  # logits", "    y,", "))", "self.engine.step()"]
    assert textwrap.indent("\n".join(lines), " " * 12) in text


def test_lines_and_comments_of_a_long_initialize_stay_as_they_are() -> None:
    two = METHODS.format(made=ON_LINES.format("self.engine, optimizer")).partition("    def fit")[0]
    assert mended("DS623", two) == two.replace("self.engine, optimizer", "self.engine, optimizer, _, _")
    one = METHODS.format(made=ON_LINES.format("self.engine") + "\n        self.engine.train()")
    one = one.partition("    def fit")[0]
    assert mended("DS624", one) == one.replace("        )\n", "        )[0]\n")


def test_a_backward_with_gradients_of_its_own_is_left_alone() -> None:
    script = loop("loss = engine(x, y)\nloss.backward(torch.ones(1))\nengine.step()")
    assert mended("DS600", script, config(0)) == NOT_MENDED


IN_FUNCTIONS = """
    import deepspeed
    from data import make_model, loader

    def train({parameters}):
        for x, y in loader:
            loss = forward({given}, x, y)
            loss.backward()
            {step}

    def forward(network, x, y):
        return network(x, y)

    engine, *_ = deepspeed.initialize(model=make_model(), config="ds_config.json")
    train({arguments})
"""


def test_the_engine_is_called_by_the_name_that_it_has_in_the_function() -> None:
    script = IN_FUNCTIONS.format(parameters="ds", given="ds", step="ds.step()", arguments="engine")
    assert "        ds.backward(loss)\n" in mended("DS600", script, config(0))


def test_a_global_engine_is_called_by_its_global_name() -> None:
    script = IN_FUNCTIONS.format(parameters="", given="engine", step="advance(engine)", arguments="")
    script = script.replace("engine, *_ =", "def advance(it):\n        it.step()\n\n    engine, *_ =")
    assert "        engine.backward(loss)\n" in mended("DS600", script, config(0))


def test_an_engine_without_a_name_at_the_place_is_not_made_up() -> None:
    script = """
        import deepspeed
        from data import make_model, loader

        def train(parts):
            for x, y in loader:
                loss = parts[0](x, y)
                loss.backward()
                parts[0].step()

        def main():
            engine, *_ = deepspeed.initialize(model=make_model(), config="ds_config.json")
            train((engine,))

        main()
    """
    assert mended("DS600", script, config(0)) == NOT_MENDED


def test_a_name_that_was_the_model_before_is_the_engine_after_initialize() -> None:
    body = "loss = model(x, y)\nloss.backward()\nmodel.step()"
    script = loop(body, before="model.train()", names="model, *_")
    assert "    model.backward(loss)\n" in mended("DS600", script, config(0))
    assert mended("DS600", script + "    model = model.module\n    model.train()\n", config(0)) == NOT_MENDED


def test_a_name_that_means_something_else_in_the_function_is_not_used() -> None:
    script = """
        import deepspeed
        from data import make_model, loader

        def train(it):
            engine = "diesel"
            for x, y in loader:
                loss = forward(it, x, y)
                loss.backward()
                advance(it)
            return engine

        def forward(network, x, y):
            return network(x, y)

        def advance(network):
            network.step()

        engine, *_ = deepspeed.initialize(model=make_model(), config="ds_config.json")
        train(engine)
    """
    assert mended("DS600", script, config(0)) == NOT_MENDED


def test_a_loss_of_two_engines_is_left_to_a_person() -> None:
    script = """
        import deepspeed
        from data import make_model, loader

        one, *_ = deepspeed.initialize(model=make_model(), config="ds_config.json")
        two, *_ = deepspeed.initialize(model=make_model(), config="ds_config.json")
        for x, y in loader:
            loss = one(x, y) + two(x, y)
            loss.backward()
            one.step()
            two.step()
    """
    assert mended("DS600", script, config(0)) == NOT_MENDED


def test_two_losses_are_added_only_where_nothing_stands_in_between() -> None:
    apart = "a = engine(x, y)\nengine.backward(a, retain_graph=True)\n{}engine.backward(b)\nengine.step()"
    plain = mended("DS606", loop(apart.format("b = a * 2\n")))
    assert "    b = a * 2\n    engine.backward(a + b)\n" in plain
    assert "retain_graph" not in plain
    assert mended("DS606", loop(apart.format("b = a * 2\na = b\n"))) == NOT_MENDED


def test_three_losses_are_left_to_a_person() -> None:
    one = "engine.backward(engine(x, y))\n"
    assert mended("DS606", loop(one * 3 + "engine.step()")) == NOT_MENDED


def test_a_difference_is_put_in_brackets_before_it_is_added() -> None:
    script = loop("a = engine(x, y)\nengine.backward(a if i else -a)\nengine.backward(a)\nengine.step()")
    assert "engine.backward((a if i else -a) + a)" in mended("DS606", script)


def test_an_output_has_a_loss_only_where_the_model_gets_labels() -> None:
    script = loop("out = engine(input_ids=x{})\nengine.backward(out)\nengine.step()", given="model=net")
    script = script.replace("model = make_model()", "net = AutoModelForCausalLM.from_pretrained('m')")
    script = script.replace(
        "import deepspeed, torch", "import deepspeed, torch\nfrom transformers import AutoModelForCausalLM"
    )
    assert "engine.backward(out.loss)" in mended("DS608", script.format(", labels=y"))
    assert mended("DS608", script.format("")) == NOT_MENDED


# --- losses that are divided ---

ACCUMULATING = config(1, gradient_accumulation_steps=4)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("loss = (engine(x, y) + 1) / accum", "loss = engine(x, y) + 1"),
        ("loss = 2 * ((engine(x, y) + 1) / accum)", "loss = 2 * (engine(x, y) + 1)"),
        ("loss = engine(x, y)\nloss = loss / accum", "loss = engine(x, y)"),
    ],
)
def test_the_division_goes_and_the_rest_keeps_its_meaning(body: str, expected: str) -> None:
    script = loop(f"{body}\nengine.backward(loss)\nengine.step()", before="accum = 4")
    text = mended("DS605", script, ACCUMULATING)
    assert f"    {expected}\n    engine.backward(loss)\n" in text.replace(
        "((engine(x, y) + 1))", "(engine(x, y) + 1)"
    )


def test_a_division_in_the_call_goes_too() -> None:
    script = loop("engine.backward(engine(x, y) / accum)\nengine.step()", before="accum = 4")
    assert "engine.backward(engine(x, y))\n" in mended("DS605", script, ACCUMULATING)
    scaled = mended("DS605", script, ACCUMULATING, way=2)
    assert "engine.backward(engine(x, y) / accum, scale_wrt_gas=False)\n" in scaled


# --- what is returned ---


def test_a_returned_loss_is_dropped_only_where_its_name_is_the_same() -> None:
    script = loop("loss = engine(x, y)\n{} = engine.backward(loss)\nengine.step()\nprint({}.item())")
    assert "    engine.backward(loss)\n" in mended("DS609", script.format("loss", "loss"), ACCUMULATING)
    assert mended("DS609", script.format("scaled", "scaled"), ACCUMULATING) == NOT_MENDED

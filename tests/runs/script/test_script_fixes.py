"""What the fixes of the rules about scripts write, and where they leave a script alone."""

from __future__ import annotations

import textwrap
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from dslint.data import data_folder
from dslint.fixes.edit import CannotEditError
from dslint.fixes.edits import changed_files
from dslint.lint import facts_of
from dslint.rulebook.cases import run_of
from dslint.rulebook.changes import changes_of
from dslint.rulebook.judge import judge
from dslint.rulebook.loader import load_rules
from dslint.rulebook.rule import Rule
from tests.runs.script.loop_rules import config, loop

NOT_MENDED = "not mended"


@lru_cache(maxsize=1)
def rules() -> dict[str, Rule]:
    return {one.rule.code: one.rule for one in load_rules(Path(data_folder("rules")))}


def mended(code: str, script: str, settings: dict[str, Any] | None = None, way: int = 1, **case: Any) -> str:
    """The script after the first finding's fix; NOT_MENDED where it can't be made or isn't offered."""
    whole = {"script": textwrap.dedent(script), "gpus": 8, "config": settings or config(), **case}
    found = judge(facts_of(run_of(whole)), [rules()[code]], changes_of).findings
    assert found, "no finding"
    fix = next((one for one in found[0].fixes if one.number == way), None)
    if fix is None or fix.obstacle:
        return NOT_MENDED
    try:
        texts = {before.path: after.data.decode() for before, after in changed_files(fix.changes)}
    except CannotEditError:
        return NOT_MENDED
    return texts.get("train.py", textwrap.dedent(script))


# --- backward passes ---


def test_the_loss_goes_through_the_engine_with_all_of_its_text() -> None:
    script = loop("loss = engine(x, y)\n(loss\n + 0.1 * loss.detach()).backward()\nengine.step()")
    assert "engine.backward(loss\n" in mended("DS600", script, config(0))
    kept = mended("DS600", loop("loss = engine(x, y)\nloss.backward(retain_graph=True)\nengine.step()"), config(0))
    assert "    engine.backward(loss, retain_graph=True)\n" in kept


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


# --- steps ---

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


# --- one rank ---

SAVES = """
    import deepspeed, torch
    from data import make_model, loader

    engine, *_ = deepspeed.initialize(model=make_model(), config="ds_config.json")
    for i, (x, y) in enumerate(loader):
        engine.backward(engine(x, y))
        engine.step()
        {}
"""


def saves(*lines: str) -> str:
    return SAVES.format("\n        ".join(lines))


def test_all_ranks_save_and_one_prints() -> None:
    script = saves(
        "if torch.distributed.get_rank() == 0:", "    engine.save_checkpoint('out')", "    print('saved')"
    )
    text = mended("DS640", script)
    assert (
        "    engine.save_checkpoint('out')\n    if torch.distributed.get_rank() == 0:\n        print('saved')\n"
        in text
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("if torch.distributed.get_rank() == 0 and i % 100 == 0:", "    engine.save_checkpoint('out')"),
        ("if torch.distributed.get_rank() == 0:", "    where = str(i)", "    engine.save_checkpoint(where)"),
        (
            "if torch.distributed.get_rank() == 0:",
            "    where = str(i)",
            "if torch.distributed.get_rank() == 0:",
            "    engine.save_checkpoint(where)",
        ),
        ("if torch.distributed.get_rank() != 0:", "    continue", "engine.save_checkpoint('out')"),
        ("if torch.distributed.get_rank() == 0:", "    print(engine.save_checkpoint('out'))"),
        (
            "if torch.distributed.get_rank() == 0:",
            "    for _ in range(2):",
            "        engine.save_checkpoint('out')",
        ),
    ],
)
def test_a_save_that_needs_its_condition_stays_there(lines: tuple[str, ...]) -> None:
    assert mended("DS640", saves(*lines)) == NOT_MENDED


def test_a_part_of_the_model_is_not_saved_as_the_whole() -> None:
    settings = config(3)
    whole = "torch.save(engine.module.state_dict(), 'out/net.pt')"
    text = mended("DS910", saves("if engine.global_rank == 0:", f"    {whole}"), settings)
    assert '    engine.save_16bit_model("out", "net.pt")\n' in text
    assert "global_rank" not in text
    part = whole.replace("module.", "module.encoder.")
    assert mended("DS910", saves("if engine.global_rank == 0:", f"    {part}"), settings) == NOT_MENDED


def test_a_save_under_a_further_condition_is_left_alone() -> None:
    script = saves("if engine.global_rank == 0 and i % 2:", "    torch.save(engine.module.state_dict(), 'net.pt')")
    assert [mended("DS910", script, config(3), way) for way in (1, 2, 3)] == [NOT_MENDED] * 3


# --- initialize ---


@pytest.mark.parametrize(
    ("names", "four"),
    [
        ("engine, optimizer", "engine, optimizer, _, _"),
        ("engine, _", "engine, _, _, _"),
        ("self.engine, sched", "self.engine, _, _, sched"),
        ("engine, opt, lr_scheduler", "engine, opt, _, lr_scheduler"),
        ("engine, train_loader", "engine, _, train_loader, _"),
        ("engine, other", None),
        ("engine, opt, optimizer", None),
        ("a, b, c, d, e", None),
    ],
)
def test_names_are_unpacked_by_what_they_say(names: str, four: str | None) -> None:
    made = 'deepspeed.initialize(model=model, config="ds_config.json")'
    text = mended("DS623", f"import deepspeed\nfrom data import model, self\n{names} = {made}\n")
    assert text == NOT_MENDED if four is None else text.endswith(f"\n{four} = {made}\n")


def test_a_tuple_whose_parts_are_used_is_not_cut_to_the_engine() -> None:
    script = (
        'import deepspeed\nfrom data import model\nmade = deepspeed.initialize(model=model, config="c.json")\n'
    )
    assert "[0]\n" in mended("DS624", script + "made.train()\n")
    assert mended("DS624", script + "made.train()\noptimizer = made[1]\n") == NOT_MENDED


WRAPPED = """
    import deepspeed, torch
    from data import make_model

    model = make_model()
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])
    engine, *_ = deepspeed.initialize(model=model, config="ds_config.json")
"""


def test_a_statement_that_only_wraps_is_deleted() -> None:
    assert "DistributedDataParallel" not in mended("DS625", WRAPPED, config(3))
    assert "model = model" not in mended("DS625", WRAPPED, config(3))


def test_a_wrapper_whose_module_is_asked_for_stays() -> None:
    assert mended("DS625", WRAPPED + "    print(model.module)\n", config(3)) == NOT_MENDED


def test_options_of_compile_go_along() -> None:
    script = """
        import deepspeed, torch
        from data import make_model

        model = make_model()
        model = torch.compile(model, mode="max-autotune", backend="inductor")
        engine, *_ = deepspeed.initialize(model=model, config="ds_config.json")
    """
    text = mended("DS647", script, config(3))
    assert text.endswith('\nengine.compile(backend="inductor", compile_kwargs={"mode": "max-autotune"})\n')
    assert "torch.compile" not in text


def test_a_positional_optimizer_is_not_taken_out() -> None:
    before = "optimizer = torch.optim.AdamW(model.parameters())"
    script = loop("engine.backward(engine(x, y))\nengine.step()", before, "None, model, optimizer")
    assert mended("DS627", script) == NOT_MENDED


def test_deepspeed_is_called_by_the_name_that_it_was_imported_by() -> None:
    script = "import torch.distributed as dist\n{}\nprint(dist.get_rank())\nfrom data import model\n{}"
    made = '{}initialize(model=model, config="ds_config.json")\n'
    renamed = script.format("import deepspeed as ds", made.format("ds."))
    assert "\nds.init_distributed()\nprint(dist.get_rank())\n" in mended("DS642", renamed)
    direct = script.format("from deepspeed import initialize", made.format(""))
    assert mended("DS642", direct) == NOT_MENDED


# --- precision and clipping ---


def test_clipping_whose_norm_is_used_stays() -> None:
    body = (
        "engine.backward(engine(x, y))\n{}torch.nn.utils.clip_grad_norm_(engine.parameters(), {})\nengine.step()"
    )
    assert "clip_grad" not in mended("DS619", loop(body.format("", "1.0")))
    assert mended("DS619", loop(body.format("norm = ", "1.0"))) == NOT_MENDED
    assert mended("DS619", loop(body.format("", "1.0, norm_type=1"))) == NOT_MENDED
    assert mended("DS619", loop(body.format("", "limit"))) == NOT_MENDED


def test_a_scaler_that_unscales_is_left_to_a_person() -> None:
    body = "scaler.scale(engine(x, y)).backward()\n{}scaler.step(optimizer)\nscaler.update()"
    plain = {"before": "scaler = torch.amp.GradScaler('cuda')", "names": "engine, optimizer, _, _"}
    text = mended("DS621", loop(body.format(""), **plain))
    assert text.endswith("    engine.backward(engine(x, y))\n    engine.step()\n")
    assert mended("DS621", loop(body.format("scaler.unscale_(optimizer)\n"), **plain)) == NOT_MENDED

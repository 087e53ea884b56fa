"""What initialize is given and gives after a fix, and pipelines."""

from __future__ import annotations

import pytest

from tests.runs.script.loop_rules import config, loop
from tests.runs.script.mended_scripts import NOT_MENDED, mended


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
    body = "engine.backward(engine(x, y))\nengine.step()"
    assert mended("DS627", loop(body, before, "None, model, optimizer")) == NOT_MENDED


def test_an_optimizer_under_a_scheduler_is_not_taken_out() -> None:
    before = (
        "optimizer = torch.optim.AdamW(model.parameters())\nsched = torch.optim.lr_scheduler.StepLR(optimizer, 9)"
    )
    body = "engine.backward(engine(x, y))\nengine.step()"
    given = "model=model, optimizer=optimizer"
    assert "initialize(model=model, config" in mended("DS627", loop(body, before, given))
    assert mended("DS627", loop(body, before, f"{given}, lr_scheduler=sched")) == NOT_MENDED


def test_deepspeed_is_called_by_the_name_that_it_was_imported_by() -> None:
    script = "import torch.distributed as dist\n{}\nprint(dist.get_rank())\nfrom data import model\n{}"
    made = '{}initialize(model=model, config="ds_config.json")\n'
    renamed = script.format("import deepspeed as ds", made.format("ds."))
    assert "\nds.init_distributed()\nprint(dist.get_rank())\n" in mended("DS642", renamed)
    direct = script.format("from deepspeed import initialize", made.format(""))
    assert mended("DS642", direct) == NOT_MENDED


def test_an_optimizer_for_the_cpu_does_what_the_one_of_torch_did() -> None:
    offload = {"zero_optimization": {"offload_optimizer": {"device": "cpu"}}, "optimizer": None}
    script = loop(
        "engine.backward(engine(x, y))\nengine.step()", "opt = torch.optim.{}", "model=model, optimizer=opt"
    )
    own = "opt = deepspeed.ops.adam.DeepSpeedCPUAdam"
    for given, expected in (
        ("AdamW(model.parameters(), 0.1)", f"{own}(model.parameters(), 0.1, weight_decay=0.01)\n"),
        ("AdamW(model.parameters(), weight_decay=0)", f"{own}(model.parameters(), weight_decay=0)\n"),
        ("Adam(model.parameters(), eps=1e-5)", f"{own}(model.parameters(), eps=1e-5, adamw_mode=False)\n"),
    ):
        assert expected in mended("DS629", script.format(given), config(2, **offload))
    assert (
        mended("DS629", script.format("AdamW(model.parameters(), fused=True)"), config(2, **offload)) == NOT_MENDED
    )
    assert mended("DS629", script.format("SGD(model.parameters())"), config(2, **offload)) == NOT_MENDED


# --- names that are used again ---


def test_a_second_result_that_is_used_is_kept() -> None:
    script = "import deepspeed\nfrom data import net\nengine, other = deepspeed.init_inference(net)\n"
    assert "\nengine = deepspeed.init_inference(net)\n" in mended("DS686", script)
    assert mended("DS686", script + "print(other)\n") == NOT_MENDED


def test_the_mode_is_set_by_itself() -> None:
    again = loop("engine = engine.train()\nengine(x, y)")
    assert "    engine.train()\n    engine(x, y)\n" in mended("DS635", again, config(1))
    twice = loop("net = engine.train()\nnet(x, y)\nnet(y, x)")
    assert mended("DS635", twice, config(1)) == NOT_MENDED


# --- parameters, zero.Init ---


def test_each_parameter_is_named_once_only_where_one_module_has_all() -> None:
    script = """
        import deepspeed
        from torch import nn

        net, head = nn.Linear(8, 8), nn.Linear(8, 8)
        engine, *_ = deepspeed.initialize(model=net, model_parameters={}, config="ds_config.json")
    """
    both = "[*net.parameters(), net.weight]"
    assert "model_parameters=net.parameters(), config" in mended("DS646", script.format(both))
    others = "[*net.parameters(), net.weight, *head.parameters()]"
    assert mended("DS646", script.format(others)) == NOT_MENDED


def test_zero_init_gets_a_config_that_is_known_by_then() -> None:
    script = """
        import deepspeed
        from data import make_model

        {}
        with deepspeed.zero.Init():
            model = make_model()
        {}
        engine, *_ = deepspeed.initialize(model=model, config=settings)
    """
    made = "settings = 'ds_config.json'"
    text = mended("DS662", script.format(made, "pass"), config(3))
    assert "with deepspeed.zero.Init(config_dict_or_path=settings):\n" in text
    assert mended("DS662", script.format("pass", made), config(3)) == NOT_MENDED


# --- pipelines ---

PIPELINE = """
    import deepspeed
    from deepspeed.pipe import PipelineModule
    from torch import nn
    from torch.utils.data import DataLoader
    from data import rows

    deepspeed.init_distributed()
    model = PipelineModule([nn.Linear(8, 8)], num_stages=1, loss_fn=nn.MSELoss())
    engine, *_ = deepspeed.initialize(model=model, config="ds_config.json")
    loader = DataLoader(rows, batch_size=1)
    {}
"""


def test_a_loader_becomes_an_iterator_where_no_loop_begins_it_anew() -> None:
    once = PIPELINE.format("engine.train_batch(loader)")
    assert mended("DS675", once, config(0)).endswith("\nengine.train_batch(iter(loader))\n")
    again = PIPELINE.format("for _ in range(9):\n        engine.train_batch(data_iter=loader)")
    assert mended("DS675", again, config(0)) == NOT_MENDED


def test_a_step_is_deleted_only_beside_train_batch() -> None:
    beside = PIPELINE.format("engine.train_batch(data_iter=iter(loader))\n    engine.step()")
    assert mended("DS670", beside, config(0)).endswith("\nengine.train_batch(data_iter=iter(loader))\n")
    assert mended("DS670", PIPELINE.format("engine.step()"), config(0)) == NOT_MENDED

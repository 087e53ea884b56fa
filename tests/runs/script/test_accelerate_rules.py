"""What is said, and what isn't, about scripts that train through Accelerate."""

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
    if one.rule.code[:4] in ("DS77", "DS78", "DS64", "DS72")
]

HEAD = """
import torch
from accelerate import Accelerator, DeepSpeedPlugin
from accelerate.utils import DummyOptim, DummyScheduler, DistributedType
from accelerate.state import AcceleratorState
from tiny import Net, loader
"""
ZERO2 = "accelerator = Accelerator(deepspeed_plugin=DeepSpeedPlugin(zero_stage=2))"
ZERO3 = "accelerator = Accelerator(deepspeed_plugin=DeepSpeedPlugin(zero_stage=3))"
FROM_FILE = 'accelerator = Accelerator(deepspeed_plugin=DeepSpeedPlugin(hf_ds_config="ds_config.json"))'
PLAIN = "accelerator = Accelerator()  # DeepSpeed can be chosen with `accelerate config`"
MODEL = """
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
PREPARE = "model, optimizer, batches = accelerator.prepare(model, optimizer, loader(2))"
LOOP = """
for x, y in batches:
    loss = model(x, y)
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
"""
YAML = "distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 2}\nnum_processes: 2\n"


def script(*parts: str) -> str:
    return "\n".join([HEAD, *(textwrap.dedent(part).strip("\n") for part in parts)]) + "\n"


def codes(text: str, **case: Any) -> list[str]:
    """The rules of Accelerate, and the one about collectives, that speak about a script."""
    found = judge(facts_of(run_of({"script": text, "gpus": 2, **case})), OWN).findings
    return sorted({finding.code for finding in found})


def test_an_ordinary_training_is_fine() -> None:
    assert codes(script(ZERO2, MODEL, PREPARE, LOOP)) == []
    assert codes(script(PLAIN, MODEL, PREPARE, LOOP), accelerate=YAML) == []


# --- backward ---


PLAIN_BACKWARD = LOOP.replace("accelerator.backward(loss)", "loss.backward()")


def test_a_plain_backward_trains_nothing() -> None:
    assert codes(script(ZERO2, MODEL, PREPARE, PLAIN_BACKWARD)) == ["DS770"]
    assert codes(script(PLAIN, MODEL, PREPARE, PLAIN_BACKWARD), accelerate=YAML) == ["DS770"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(script(PLAIN, MODEL, PREPARE, PLAIN_BACKWARD), id="nobody says that DeepSpeed trains"),
        pytest.param(
            script(
                ZERO2,
                MODEL,
                PREPARE,
                """
                for x, y in batches:
                    loss = model(x, y)
                    if accelerator.distributed_type == DistributedType.DEEPSPEED:
                        accelerator.backward(loss)
                    else:
                        loss.backward()
                    optimizer.step()
                """,
            ),
            id="the branch of another kind of training",
        ),
        pytest.param(
            script(
                ZERO2,
                MODEL,
                PREPARE,
                """
                uses_plugin = accelerator.state.deepspeed_plugin is not None
                for x, y in batches:
                    loss = model(x, y)
                    if not uses_plugin:
                        loss.backward()
                """,
            ),
            id="a branch by a variable",
        ),
        pytest.param(
            script(ZERO2, MODEL, PREPARE, "for x, y in batches:\n    model(x, y).backward()\n    model.step()\n"),
            id="the engine steps by itself",
        ),
        pytest.param(
            script(
                ZERO2, MODEL, PREPARE, "for x, y in batches:\n    model.backward(model(x, y))\n    model.step()\n"
            ),
            id="the engine's own backward",
        ),
        pytest.param(
            script(
                ZERO2,
                MODEL,
                PREPARE,
                "critic = Net()\nfor x, y in batches:\n    critic(x, y).backward()\n",
            ),
            id="a model that was not prepared",
        ),
        pytest.param(
            script(
                ZERO2,
                MODEL,
                PREPARE,
                "def step(trainer, x, y):\n    trainer.backward(model(x, y))\n",
                PLAIN_BACKWARD,
            ),
            id="something else may go backward",
        ),
        pytest.param(
            script(
                "accelerator = Accelerator(deepspeed_plugin=make_plugin())",
                MODEL,
                PREPARE,
                PLAIN_BACKWARD,
            ),
            id="a plugin that may be None",
        ),
        pytest.param(
            script(
                "import sys\nplugin = DeepSpeedPlugin(zero_stage=2) if len(sys.argv) > 1 else None",
                "accelerator = Accelerator(deepspeed_plugin=plugin)",
                MODEL,
                PREPARE,
                PLAIN_BACKWARD,
            ),
            id="a plugin on demand",
        ),
        pytest.param(
            script(
                "accelerator = Accelerator(cpu=True, deepspeed_plugin=DeepSpeedPlugin(zero_stage=2))",
                MODEL,
                PREPARE,
                PLAIN_BACKWARD,
            ).replace("cpu=True", "cpu=want_cpu()"),
            id="perhaps on the CPU",
        ),
    ],
)
def test_a_plain_backward_may_be_right(text: str) -> None:
    assert codes(text) == []


def test_a_launcher_other_than_accelerate_does_not_read_its_file() -> None:
    yaml = YAML.replace("DEEPSPEED", "MULTI_GPU")
    assert codes(script(PLAIN, MODEL, PREPARE, PLAIN_BACKWARD), accelerate=yaml) == []


# --- clipping ---


def clipped(limit: str) -> str:
    call = f"    accelerator.clip_grad_norm_(model.parameters(), {limit})\n    optimizer.step()"
    return LOOP.replace("    optimizer.step()", call)


def test_another_limit_than_the_configs_is_not_taken() -> None:
    assert codes(script(ZERO2, MODEL, PREPARE, clipped("0.5"))) == ["DS771"]
    assert codes(script(ZERO2, MODEL, PREPARE, clipped("1.0")), deepspeed="0.18.0") == []  # Accelerate puts 1.0
    config = {"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 2}}
    assert codes(script(FROM_FILE, MODEL, PREPARE, clipped("1.0")), config=config) == []
    assert codes(script(FROM_FILE, MODEL, PREPARE, clipped("1.0")), config=config, deepspeed="0.18.0") == ["DS771"]


@pytest.mark.parametrize("limit", ["1.0", "float('inf')", "limit()", "0"])
def test_a_limit_that_is_the_same_or_none_is_fine(limit: str) -> None:
    assert codes(script(ZERO2, MODEL, PREPARE, clipped(limit))) == []


def test_the_limit_of_the_accelerate_file_counts() -> None:
    yaml = YAML.replace("zero_stage: 2", "zero_stage: 2, gradient_clipping: 0.5")
    assert codes(script(PLAIN, MODEL, PREPARE, clipped("0.5")), accelerate=yaml) == []
    assert codes(script(PLAIN, MODEL, PREPARE, clipped("0.2")), accelerate=yaml) == ["DS771"]


def test_a_plugin_cannot_switch_clipping_off() -> None:
    zero = ZERO2.replace("zero_stage=2", "zero_stage=2, gradient_clipping=0.0")
    assert codes(script(zero, MODEL, PREPARE, LOOP)) == ["DS723"]
    config = {"train_micro_batch_size_per_gpu": 2, "gradient_clipping": 0.0, "zero_optimization": {"stage": 2}}
    assert codes(script(FROM_FILE, MODEL, PREPARE, LOOP), config=config) == []


def test_clipping_by_value_fails_under_deepspeed_only() -> None:
    loop = clipped("1.0").replace("clip_grad_norm_", "clip_grad_value_")
    assert codes(script(ZERO2, MODEL, PREPARE, loop)) == ["DS772"]
    assert codes(script(PLAIN, MODEL, PREPARE, loop)) == []


def test_a_config_that_the_script_changes_is_not_known() -> None:
    change = 'accelerator.state.deepspeed_plugin.deepspeed_config["gradient_clipping"] = 0.5'
    assert codes(script(ZERO2, change, MODEL, PREPARE, clipped("0.5"))) == []


# --- prepare ---


def test_prepare_needs_a_loader() -> None:
    apart = "model, optimizer = accelerator.prepare(model, optimizer)\nbatches = accelerator.prepare(loader(2))"
    assert codes(script(ZERO2, MODEL, apart, LOOP)) == ["DS773"]


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(
            (
                'AcceleratorState().deepspeed_plugin.deepspeed_config["train_micro_batch_size_per_gpu"] = 4',
                MODEL,
                "model, optimizer = accelerator.prepare(model, optimizer)",
            ),
            id="the script writes the size",
        ),
        pytest.param(
            (MODEL, PREPARE, "scheduler = accelerator.prepare(torch.optim.lr_scheduler.StepLR(optimizer, 1))"),
            id="the size is known from the first call",
        ),
        pytest.param(
            (MODEL, "model, optimizer, other = accelerator.prepare(model, optimizer, make())"),
            id="something unknown may be a loader",
        ),
        pytest.param((MODEL, "parts = accelerator.prepare(*collect(model, optimizer))"), id="unknown arguments"),
        pytest.param(
            ("def serve(model):\n    return accelerator.prepare(torch.nn.Linear(2, 2))\n", MODEL, PREPARE, LOOP),
            id="a function that nobody calls",
        ),
        pytest.param(
            (
                MODEL,
                "if accelerator.state.deepspeed_plugin is None:\n    model, optimizer = accelerator.prepare(model, optimizer)",
            ),
            id="a branch of another kind of training",
        ),
    ],
)
def test_prepare_may_do_without_a_loader(parts: tuple[str, ...]) -> None:
    assert codes(script(ZERO2, *parts)) == []


def test_a_written_size_makes_a_loader_unnecessary() -> None:
    config = {"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 2}}
    text = script(FROM_FILE, MODEL, "model, optimizer = accelerator.prepare(model, optimizer)")
    assert codes(text, config=config) == []


def test_loaders_of_two_sizes_train_the_same() -> None:
    text = script(
        ZERO2,
        MODEL,
        "model, optimizer, batches, tests = accelerator.prepare(model, optimizer, loader(8), loader(2))",
        LOOP,
    )
    assert codes(text) == []


def test_model_and_optimizer_belong_together() -> None:
    apart = "model, batches = accelerator.prepare(model, loader(2))\noptimizer = accelerator.prepare(optimizer)"
    assert "DS775" in codes(script(ZERO2, MODEL, apart, LOOP))
    assert codes(script(PLAIN, MODEL, apart, LOOP)) == []


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(
            (
                "import sys",
                MODEL,
                """
                if len(sys.argv) > 1:
                    model, optimizer, batches, tests = accelerator.prepare(model, optimizer, loader(2), loader(2))
                else:
                    model, optimizer, batches = accelerator.prepare(model, optimizer, loader(2))
                """,
            ),
            id="two ways to prepare",
        ),
        pytest.param(
            ("model = torch.nn.Linear(2, 2)", "model, batches = accelerator.prepare(model, loader(2))"),
            id="no optimizer at all",
        ),
        pytest.param(
            (
                "teacher = torch.nn.Linear(2, 2)",
                MODEL,
                PREPARE,
                "teacher = accelerator.prepare(teacher)",
                LOOP,
            ),
            id="a model that nobody trains",
        ),
    ],
)
def test_models_prepared_in_other_ways(parts: tuple[str, ...]) -> None:
    assert codes(script(ZERO3, *parts)) == []


def test_one_engine_has_one_model() -> None:
    both = "model, other, optimizer, batches = accelerator.prepare(model, torch.nn.Linear(2, 2), optimizer, loader(2))"
    assert codes(script(ZERO2, MODEL, both, LOOP)) == ["DS776"]
    assert codes(script(PLAIN, MODEL, both, LOOP)) == []
    unknown = both.replace("torch.nn.Linear(2, 2)", "make_something()")
    assert codes(script(ZERO2, MODEL, unknown, LOOP)) == []


def test_an_accelerator_steps_its_first_model() -> None:
    second = """
    critic = Net()
    other = torch.optim.SGD(critic.parameters(), lr=0.1)
    critic, other = accelerator.prepare(critic, other)
    """
    loop = "for x, y in batches:\n    accelerator.backward({})\n    other.step()\n"
    assert codes(script(ZERO2, MODEL, PREPARE, second, loop.format("critic(x, y)"))) == ["DS777"]
    assert codes(script(ZERO2, MODEL, PREPARE, second, loop.format("model(x, y)"))) == []
    assert codes(script(ZERO2, MODEL, PREPARE, second, loop.format("critic(x, y) + model(x, y)"))) == []
    assert codes(script(PLAIN, MODEL, PREPARE, second, loop.format("critic(x, y)"))) == []


OPTIMIZER = {"type": "AdamW", "params": {"lr": 0.001}}
AUTO = {"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}}


def test_optimizers_fit_the_config() -> None:
    assert codes(script(FROM_FILE, MODEL, PREPARE, LOOP), config={**AUTO, "optimizer": OPTIMIZER}) == ["DS778"]
    dummy = MODEL.replace("torch.optim.SGD", "DummyOptim")
    assert codes(script(FROM_FILE, dummy, PREPARE, LOOP), config=AUTO) == ["DS778"]
    assert codes(script(FROM_FILE, dummy, PREPARE, LOOP), config={**AUTO, "optimizer": OPTIMIZER}) == []


@pytest.mark.parametrize("config", [AUTO, {**AUTO, "optimizer": OPTIMIZER}])
def test_an_optimizer_chosen_by_the_config_is_fine(config: dict[str, Any]) -> None:
    chosen = """
    model = Net()
    section = accelerator.state.deepspeed_plugin.deepspeed_config
    make = torch.optim.AdamW if "optimizer" not in section else DummyOptim
    optimizer = make(model.parameters(), lr=0.001)
    """
    assert codes(script(FROM_FILE, chosen, PREPARE, LOOP), config=config) == []
    branches = """
    model = Net()
    if "optimizer" in accelerator.state.deepspeed_plugin.deepspeed_config:
        optimizer = DummyOptim(model.parameters())
    else:
        optimizer = torch.optim.AdamW(model.parameters())
    """
    assert codes(script(FROM_FILE, branches, PREPARE, LOOP), config=config) == []


SCHEDULER = {"type": "WarmupLR", "params": {"warmup_num_steps": 4}}


def test_schedulers_fit_the_config() -> None:
    prepare = "model, optimizer, batches, scheduler = accelerator.prepare(model, optimizer, loader(2), scheduler)"
    step = "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)"
    dummy = "scheduler = DummyScheduler(optimizer, total_num_steps=8)"
    own = "scheduler = DummyScheduler(optimizer, lr_scheduler_callable=make)"
    with_section = {**AUTO, "scheduler": SCHEDULER}
    assert codes(script(FROM_FILE, MODEL, step, prepare, LOOP), config=with_section) == ["DS779"]
    assert codes(script(FROM_FILE, MODEL, dummy, prepare, LOOP), config=AUTO) == ["DS779"]
    assert codes(script(FROM_FILE, MODEL, step, prepare, LOOP), config=AUTO) == []
    assert codes(script(FROM_FILE, MODEL, dummy, prepare, LOOP), config=with_section) == []
    assert codes(script(FROM_FILE, MODEL, own, prepare, LOOP), config=AUTO) == []


def test_the_length_of_a_schedule_may_be_counted_before_prepare() -> None:
    """Before prepare a loader is as long as all ranks together step, so that this schedule is right."""
    text = script(
        "from transformers import get_scheduler",
        ZERO2,
        MODEL,
        """
        data = loader(2)
        scheduler = get_scheduler("linear", optimizer, num_warmup_steps=2, num_training_steps=len(data))
        model, optimizer, batches, scheduler = accelerator.prepare(model, optimizer, data, scheduler)
        """,
        LOOP,
    )
    assert codes(text) == []


OFFLOAD = {**AUTO, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}


@pytest.mark.parametrize(
    ("optimizer", "config", "found"),
    [
        ("torch.optim.SGD", OFFLOAD, ["DS787"]),
        ("torch.optim.RMSprop", OFFLOAD, ["DS787"]),
        ("torch.optim.AdamW", OFFLOAD, []),
        ("torch.optim.Adam", OFFLOAD, []),
        ("torch.optim.Adagrad", OFFLOAD, []),
        ("bitsandbytes.optim.Lion", OFFLOAD, []),
        ("torch.optim.SGD", {**OFFLOAD, "zero_force_ds_cpu_optimizer": False}, []),
        ("torch.optim.SGD", AUTO, []),
    ],
)
def test_offload_replaces_optimizers(optimizer: str, config: dict[str, Any], found: list[str]) -> None:
    model = "import bitsandbytes\n" + MODEL.replace("torch.optim.SGD", optimizer)
    assert codes(script(FROM_FILE, model, PREPARE, LOOP), config=config) == found


def test_deepspeed_places_its_tensors_itself() -> None:
    placed = PREPARE.replace("loader(2))", "loader(2), device_placement=[True, True, False])")
    assert codes(script(ZERO2, MODEL, placed, LOOP)) == ["DS789"]
    assert codes(script(PLAIN, MODEL, placed, LOOP)) == []
    assert codes(script(ZERO2, MODEL, placed.replace("[True, True, False]", "None"), LOOP)) == []


# --- accumulation ---


FOUR = "accelerator = Accelerator(gradient_accumulation_steps=4, deepspeed_plugin=DeepSpeedPlugin({}))"
ACCUMULATE = """
for x, y in batches:
    with accelerator.accumulate(model):
        accelerator.backward(model(x, y))
        optimizer.step()
        optimizer.zero_grad()
"""
FILE = 'hf_ds_config="ds_config.json"'


@pytest.mark.parametrize(
    ("written", "found"),
    [(None, ["DS780"]), (2, ["DS780"]), (4, []), ("auto", [])],
    ids=["none", "2", "4", "auto"],
)
def test_the_config_decides_about_accumulation(written: Any, found: list[str]) -> None:
    config = AUTO if written is None else {**AUTO, "gradient_accumulation_steps": written}
    assert codes(script(FOUR.format(FILE), MODEL, PREPARE, ACCUMULATE), config=config) == found


@pytest.mark.parametrize(
    "maker",
    [
        FOUR.format("zero_stage=2"),
        FOUR.format(FILE).replace("=4", "=steps()"),
        FOUR.format(FILE).replace("=4", "=1"),
        FOUR.format(FILE).replace("=4", "=int(os.environ.get('STEPS', 2))"),
        "accelerator = Accelerator(gradient_accumulation_steps=4)",
    ],
)
def test_an_accumulation_that_is_taken_or_not_known(maker: str) -> None:
    config = {**AUTO, "gradient_accumulation_steps": 2}
    assert codes(script("import os", maker, MODEL, PREPARE, ACCUMULATE), config=config) == []


def test_a_config_that_nobody_can_follow_is_not_known() -> None:
    assert codes(script(FOUR.format("hf_ds_config=make_config()"), MODEL, PREPARE, ACCUMULATE)) == []


def test_the_number_of_the_accelerate_file_wins() -> None:
    maker = "accelerator = Accelerator(gradient_accumulation_steps=4)  # with DeepSpeed"
    one = YAML.replace("zero_stage: 2", "zero_stage: 2, gradient_accumulation_steps: 1")
    assert codes(script(maker, MODEL, PREPARE, ACCUMULATE), accelerate=one) == ["DS780"]
    assert codes(script(maker, MODEL, PREPARE, ACCUMULATE), accelerate=YAML) == []


def test_somebody_tells_which_pass_ends_a_step() -> None:
    assert codes(script(FOUR.format("zero_stage=2"), MODEL, PREPARE, LOOP)) == ["DS781"]


@pytest.mark.parametrize(
    "loop",
    [
        ACCUMULATE,
        "def step(x, y):\n    accelerator.backward(model(x, y))\n\nfor x, y in batches:\n"
        "    with accelerator.accumulate(model):\n        step(x, y)\n",
        "for x, y in batches:\n    with accelerator.no_sync(model):\n        accelerator.backward(model(x, y))\n",
        "for x, y in batches:\n    accelerator.gradient_state._set_sync_gradients(last())\n"
        "    accelerator.backward(model(x, y))\n",
        "x, y = next(iter(batches))\naccelerator.backward(model(x, y))\n",
    ],
)
def test_accumulation_is_counted_in_several_ways(loop: str) -> None:
    assert codes(script(FOUR.format("zero_stage=2"), MODEL, PREPARE, loop)) == []


def test_steps_of_one_pass_need_no_counting() -> None:
    assert (
        codes(
            script(
                ZERO2.replace("Accelerator(", "Accelerator(gradient_accumulation_steps=1, "), MODEL, PREPARE, LOOP
            )
        )
        == []
    )


def divided(by: str) -> str:
    return ACCUMULATE.replace("model(x, y))", f"model(x, y) / {by})")


@pytest.mark.parametrize("by", ["accelerator.gradient_accumulation_steps", "grad_accum_steps"])
def test_deepspeed_divides_the_loss_itself(by: str) -> None:
    text = script("grad_accum_steps = 4", FOUR.format("zero_stage=2"), MODEL, PREPARE, divided(by))
    assert codes(text) == ["DS782"]


@pytest.mark.parametrize("by", ["4", "len(x)", "parts", "grad_accum_steps()", "other.gradient_accumulation_steps"])
def test_other_divisions_may_be_meant(by: str) -> None:
    text = script("parts = 4", FOUR.format("zero_stage=2"), MODEL, PREPARE, divided(by))
    assert codes(text) == []


def test_a_division_by_one_does_no_harm() -> None:
    assert codes(script(ZERO2, MODEL, PREPARE, divided("accelerator.gradient_accumulation_steps"))) == []


# --- several Accelerators ---


def test_only_the_first_accelerator_brings_plugins() -> None:
    second = "other = Accelerator(deepspeed_plugin=DeepSpeedPlugin(zero_stage=3))"
    assert codes(script(ZERO2, second, MODEL, PREPARE, LOOP)) == ["DS783"]
    assert codes(script(ZERO2, "other = Accelerator()", MODEL, PREPARE, LOOP)) == []
    assert codes(script(ZERO2, "AcceleratorState._reset_state(True)", second, MODEL, PREPARE, LOOP)) == []
    either = """
    import sys
    if len(sys.argv) > 1:
        accelerator = Accelerator(deepspeed_plugin=DeepSpeedPlugin(zero_stage=2))
    else:
        accelerator = Accelerator(deepspeed_plugin=DeepSpeedPlugin(zero_stage=3))
    """
    assert codes(script(either, MODEL, PREPARE, LOOP)) == []


def test_the_cpu_switches_deepspeed_off() -> None:
    on_cpu = ZERO2.replace("Accelerator(", "Accelerator(cpu=True, ")
    assert codes(script(on_cpu, MODEL, PREPARE, LOOP)) == ["DS786"]
    assert codes(script(on_cpu.replace("True", "False"), MODEL, PREPARE, LOOP)) == []
    assert codes(script(on_cpu.replace("True", "args.cpu"), MODEL, PREPARE, LOOP)) == []
    assert codes(script("accelerator = Accelerator(cpu=True)  # no DeepSpeed", MODEL, PREPARE, LOOP)) == []


@pytest.mark.parametrize(
    ("asked", "section", "found"),
    [
        ("fp16", {"bf16": {"enabled": True}}, ["DS788"]),
        ("bf16", {"fp16": {"enabled": True}}, ["DS788"]),
        ("bf16", {"bf16": {"enabled": True}}, []),
        ("fp16", {"bf16": {"enabled": "auto"}}, []),
        ("fp16", {"bf16": {"enabled": False}}, []),
        ("no", {"bf16": {"enabled": True}}, []),
    ],
)
def test_mixed_precision_agrees_with_the_config(asked: str, section: dict[str, Any], found: list[str]) -> None:
    maker = FROM_FILE.replace("Accelerator(d", f'Accelerator(mixed_precision="{asked}", d')
    assert codes(script(maker, MODEL, PREPARE, LOOP), config={**AUTO, **section}) == found


# --- saving ---


STATE = "state = accelerator.get_state_dict(model)"


def test_weights_are_gathered_if_the_config_says_so() -> None:
    assert codes(script(ZERO3, MODEL, PREPARE, LOOP, STATE)) == ["DS784"]
    assert codes(script(ZERO3, MODEL, PREPARE, LOOP, 'accelerator.save_model(model, "out")')) == ["DS784"]
    gathering = ZERO3.replace("zero_stage=3", "zero_stage=3, zero3_save_16bit_model=True")
    assert codes(script(gathering, MODEL, PREPARE, LOOP, STATE)) == []
    assert codes(script(ZERO2, MODEL, PREPARE, LOOP, STATE)) == []
    assert codes(script(PLAIN, MODEL, PREPARE, LOOP, STATE)) == []
    assert codes(script(ZERO3.replace("zero_stage=3", "zero_stage=stage()"), MODEL, PREPARE, LOOP, STATE)) == []


SAVE = 'accelerator.unwrap_model(model).save_pretrained("out")'
LARGE = """
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained("somewhere")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def test_an_unwrapped_model_saves_its_partitions() -> None:
    assert codes(script(ZERO3, LARGE, PREPARE, LOOP, SAVE)) == ["DS785"]


@pytest.mark.parametrize(
    "parts",
    [
        (ZERO2, LARGE, PREPARE, LOOP, SAVE),
        (PLAIN, LARGE, PREPARE, LOOP, SAVE),
        (ZERO3, LARGE, 'model.save_pretrained("before")', PREPARE, LOOP),
        (ZERO3, LARGE, PREPARE, LOOP, SAVE.replace('"out"', '"out", state_dict=whole()')),
        (
            ZERO3,
            LARGE,
            "from peft import get_peft_model\nmodel = get_peft_model(model, None)",
            PREPARE,
            LOOP,
            SAVE,
        ),
        (ZERO3, LARGE, PREPARE, LOOP, f"if accelerator.state.deepspeed_plugin is None:\n    {SAVE}"),
        (
            ZERO3,
            "import deepspeed",
            LARGE,
            PREPARE,
            LOOP,
            f"with deepspeed.zero.GatheredParameters(list(model.parameters())):\n    {SAVE}",
        ),
    ],
)
def test_a_model_that_is_whole_saves_itself(parts: tuple[str, ...]) -> None:
    assert codes(script(*parts)) == []


def test_checkpoints_are_saved_on_all_ranks_under_deepspeed() -> None:
    on_one = 'if accelerator.is_main_process:\n    accelerator.save_state("out")'
    assert codes(script(ZERO2, MODEL, PREPARE, LOOP, on_one)) == ["DS640"]
    assert codes(script(PLAIN, MODEL, PREPARE, LOOP, on_one)) == []
    assert codes(script(ZERO2, MODEL, PREPARE, LOOP, 'accelerator.save_state("out")')) == []

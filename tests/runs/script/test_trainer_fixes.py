"""What the fixes of the rules about Hugging Face's Trainer write, and where they leave a script alone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runs.mending import mended, tiers

HEAD = """
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
    args = TrainingArguments("out", deepspeed="ds_config.json", max_steps=2)
"""


def config(stage: int = 2, **more: Any) -> dict[str, Any]:
    return {"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": stage}, **more}


def script_after(code: str, script: str, stage: int = 2, way: int = 1, **case: Any) -> str | None:
    return mended(code, way, script=script, config=config(stage), **case).get("train.py")


# --- device_map, HfDeepSpeedConfig ---


def test_a_device_map_goes_with_its_line() -> None:
    script = (
        HEAD
        + """
    model = AutoModelForCausalLM.from_pretrained(
        "base",
        device_map="auto",  # wherever
        torch_dtype="auto",
    )
    Trainer(model=model, args=args, train_dataset=rows)
    """
    )
    assert '(\n    "base",\n    torch_dtype="auto",\n)\n' in str(script_after("DS737", script, 3))


def test_a_device_map_out_of_a_dict_stays() -> None:
    script = (
        HEAD
        + """
    options = {"device_map": "auto"}
    model = AutoModelForCausalLM.from_pretrained("base", **options)
    Trainer(model=model, args=args, train_dataset=rows)
    """
    )
    assert script_after("DS737", script, 3) is None


KEPT = """
    import deepspeed
    from transformers import AutoModelForCausalLM
    from transformers.integrations import HfDeepSpeedConfig
    {}
    engine, *_ = deepspeed.initialize(model=model, config="ds_config.json")
"""
LOAD = 'model = AutoModelForCausalLM.from_pretrained("base")'


def test_a_config_is_kept_under_a_name_that_is_free() -> None:
    script = KEPT.format(f'HfDeepSpeedConfig("ds_config.json")\n    {LOAD}')
    assert '\nhf_deepspeed_config = HfDeepSpeedConfig("ds_config.json")\n' in str(script_after("DS736", script, 3))
    taken = KEPT.format(f'hf_deepspeed_config = 1\n    HfDeepSpeedConfig("ds_config.json")\n    {LOAD}')
    assert '\nkept_deepspeed_config = HfDeepSpeedConfig("ds_config.json")\n' in str(
        script_after("DS736", taken, 3)
    )


def test_a_local_name_does_not_keep_a_config_for_others() -> None:
    inside = 'def prepare():\n        HfDeepSpeedConfig("ds_config.json")\n    prepare()'
    assert script_after("DS736", KEPT.format(f"{inside}\n    {LOAD}"), 3) is None


# --- arguments of calls ---


def test_what_a_dict_brings_is_not_given_twice() -> None:
    script = """
    import deepspeed
    from tiny import causal_lm
    options = {"synced_gpus": False}
    engine, *_ = deepspeed.initialize(model=causal_lm(), config="ds_config.json")
    print(engine.module.generate(input_ids=prompt, %s))
    """
    assert "synced_gpus=True" in str(script_after("DS746", script % "do_sample=True", 3, gpus=2))
    assert "synced_gpus=True" in str(script_after("DS746", script % "synced_gpus=False", 3, gpus=2))
    assert script_after("DS746", script % "**options", 3, gpus=2) is None


def test_a_checkpoint_to_resume_from_goes_in_either_form() -> None:
    script = """
    from transformers import Trainer, TrainingArguments
    args = TrainingArguments("out", deepspeed="ds_config.json", save_only_model=True)
    Trainer(model=model, args=args, train_dataset=rows).train(%s)
    """
    for form in ("resume_from_checkpoint=True", "True"):
        assert ".train()\n" in str(script_after("DS745", script % form, way=2))


def test_arguments_are_made_once_more_where_one_line_makes_them() -> None:
    script = HEAD + "    Trainer(model=model, args=args)\n    Trainer(model=model, args=args).train()\n"
    again = 'args = TrainingArguments("out", deepspeed="ds_config.json", max_steps=2)\n'
    assert f"{again}Trainer(model=model, args=args).train()\n" in str(script_after("DS758", script))
    lines = script.replace('"out", ', '\n        "out", ')
    assert script_after("DS758", lines) is None


# --- training_step ---

STEP = """
    from transformers import Trainer, TrainingArguments
    class OwnTrainer(Trainer):
        def training_step(own, model, inputs, num_items_in_batch=None):
            loss = own.compute_loss(model, inputs)
            {}
            return loss.detach()
    args = TrainingArguments("out", deepspeed="ds_config.json", gradient_accumulation_steps=4)
    OwnTrainer(model=model, args=args, train_dataset=rows).train()
"""


def test_a_backward_goes_through_the_accelerator_of_the_trainer() -> None:
    after = str(script_after("DS749", STEP.format("(loss * 2).backward()")))
    assert "\n        own.accelerator.backward(loss * 2)\n" in after


def test_a_backward_with_arguments_stays() -> None:
    assert script_after("DS749", STEP.format("loss.backward(retain_graph=True)")) is None


@pytest.mark.parametrize(
    ("divided", "undivided"),
    [
        (
            "own.accelerator.backward(loss / own.args.gradient_accumulation_steps)",
            "own.accelerator.backward(loss)",
        ),
        (
            "loss = loss / own.args.gradient_accumulation_steps\n            own.accelerator.backward(loss)",
            "loss = own.compute_loss(model, inputs)\n        own.accelerator.backward(loss)",
        ),
        (
            "loss = (loss + 1) / own.args.gradient_accumulation_steps * 2\n            own.accelerator.backward(loss)",
            "loss = (loss + 1) * 2\n        own.accelerator.backward(loss)",
        ),
    ],
)
def test_a_division_goes_with_what_does_nothing_else(divided: str, undivided: str) -> None:
    steps = config(2, gradient_accumulation_steps="auto")
    after = mended("DS750", 2, script=STEP.format(divided), config=steps)
    assert undivided in after["train.py"]


# --- one rank ---

GUARDED = (
    HEAD
    + """
    trainer = Trainer(model=model, args=args, train_dataset=rows, eval_dataset=rows)
    trainer.train()
    if {}:
        {}
        print(scores)
"""
)


def test_a_call_whose_result_is_kept_goes_before_the_condition() -> None:
    script = GUARDED.format("args.process_index == 0", "scores = trainer.evaluate()")
    after = str(script_after("DS753", script, gpus=2))
    assert "scores = trainer.evaluate()\nif args.process_index == 0:\n    print(scores)\n" in after
    assert tiers("DS753", script=script, config=config(), gpus=2) == {1: "safe"}


def test_a_condition_that_asks_more_than_the_rank_stays() -> None:
    script = GUARDED.format("args.process_index == 0 and args.do_eval", "scores = trainer.evaluate()")
    assert tiers("DS753", script=script, config=config(), gpus=2) == {3: "display"}


def test_a_statement_that_does_more_is_no_safe_one_to_move() -> None:
    script = GUARDED.format("args.process_index == 0", "log(trainer.evaluate())")
    assert tiers("DS753", script=script, config=config(), gpus=2) == {2: "unsafe", 3: "display"}


# --- imports ---


def test_an_import_of_names_comes_from_the_new_module() -> None:
    script = "import deepspeed\nfrom transformers.deepspeed import (\n    HfDeepSpeedConfig,  # kept\n)\n"
    after = mended("DS761", script=script)["train.py"]
    assert "from transformers.integrations.deepspeed import (\n    HfDeepSpeedConfig,  # kept\n)\n" in after


def test_an_import_of_the_module_stays_since_its_name_is_used_elsewhere() -> None:
    assert mended("DS761", script="import deepspeed\nimport transformers.deepspeed\n") == {}


# --- assignments ---


ASSIGNED = """
    from transformers import Trainer, TrainingArguments
    args = TrainingArguments("out", deepspeed="ds_config.json", learning_rate=0.1)
    {}
    Trainer(model=model, args=args, train_dataset=rows).train()
"""
FILLED = config(2, optimizer={"type": "AdamW", "params": {"lr": "auto"}})


def test_an_assigned_value_is_given_when_the_arguments_are_made() -> None:
    script = ASSIGNED.format("args.learning_rate = 0.01  # less")
    after = mended("DS751", script=script, config=FILLED)["train.py"]
    assert 'args = TrainingArguments("out", deepspeed="ds_config.json", learning_rate=0.01)\n' in after
    assert "args.learning_rate" not in after


@pytest.mark.parametrize(
    "assignment",
    ["if late():\n        args.learning_rate = 0.01", "args.learning_rate = best()", "a = args.learning_rate = 1"],
)
def test_an_assignment_that_depends_on_something_or_does_more_stays(assignment: str) -> None:
    assert mended("DS751", script=ASSIGNED.format(assignment), config=FILLED) == {}

"""Scripts with Hugging Face's Trainer: where its rules fire, and the correct scripts on which they stay silent."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runs.judging import codes

RULES = ("DS73", "DS74", "DS75")

START = """# trains with deepspeed
import torch
from transformers import AutoModelForCausalLM, Seq2SeqTrainer, Trainer, TrainerCallback, TrainingArguments
from trl import SFTConfig, SFTTrainer
from helpers import anything, dataset, name, tokenizer
"""
STAGE_2: dict[str, Any] = {"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}}
STAGE_3: dict[str, Any] = {"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 3}}
ARGS = 'args = TrainingArguments("out", deepspeed="ds_config.json")\n'
MODEL = "model = AutoModelForCausalLM.from_pretrained(name)\n"
TRAINER = ARGS + MODEL + "trainer = Trainer(model=model, args=args, train_dataset=dataset)\n"


def found(text: str, config: dict[str, Any] = STAGE_2, **case: Any) -> list[str]:
    return codes(*RULES, script=START + text, config=config, **case)


def with_keys(**keys: Any) -> dict[str, Any]:
    return {**STAGE_2, **keys}


ADAM = {"optimizer": {"type": "AdamW", "params": {"lr": "auto"}}}


class TestValuesThatAreCompared:
    @pytest.mark.parametrize(
        ("config", "given"),
        [
            ({"gradient_clipping": 1}, "max_grad_norm=1.0"),
            ({"gradient_clipping": 1.0}, ""),
            ({"gradient_clipping": None}, "max_grad_norm=0.5"),
            ({"optimizer": {"type": "AdamW", "params": {"lr": 1e-5}}}, "learning_rate=1e-5"),
            ({"optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": [0.9, 0.98]}}}, "adam_beta2=0.98"),
            ({"bf16": {"enabled": True}}, "bf16=True"),
            ({"bf16": {"enabled": True}}, "bf16_full_eval=True"),
            ({"fp16": {"enabled": False}}, "bf16=True"),
            ({"gradient_accumulation_steps": 4}, "gradient_accumulation_steps=4"),
            ({"gradient_accumulation_steps": 4}, "gradient_accumulation_steps=anything()"),
            ({"gradient_accumulation_steps": 4}, "**anything()"),
            ({"optimizer": {"type": "AdamW", "params": {"lr": 1e-5}}}, "learning_rate=name.rate"),
            ({"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 90}}}, "num_train_epochs=2"),
        ],
    )
    def test_equal_or_unknown_values_are_silent(self, config: dict[str, Any], given: str) -> None:
        text = (
            f'args = TrainingArguments("out", deepspeed="ds_config.json", {given})\nTrainer(args=args).train()\n'
        )
        assert found(text, with_keys(**config)) == []

    def test_warmup_in_the_config_alone_is_a_difference(self) -> None:
        text = 'args = TrainingArguments("out", deepspeed="ds_config.json"{})\nTrainer(args=args).train()\n'
        config = with_keys(
            **ADAM, scheduler={"type": "WarmupLR", "params": {"warmup_max_lr": "auto", "warmup_num_steps": 50}}
        )
        assert found(text.format(""), config) == ["DS730"]
        assert found(text.format(", warmup_steps=50"), config) == []
        assert found(text.format(", warmup_ratio=0.1"), config) == []

    def test_without_deepspeed_nothing_is_compared(self) -> None:
        text = 'args = TrainingArguments("out")\nTrainer(args=args).train()\n'
        assert found(text, with_keys(gradient_clipping=0.3)) == []

    def test_deepspeed_under_a_condition_is_unknown(self) -> None:
        text = 'args = TrainingArguments("out", deepspeed="ds_config.json" if anything() else None)\n'
        assert found(text, with_keys(gradient_clipping=0.3)) == []

    def test_the_batch_size_that_the_trainer_looks_for_is_not_compared(self) -> None:
        text = 'args = TrainingArguments("out", deepspeed="ds_config.json", auto_find_batch_size=True)\n'
        assert found(text, {**STAGE_2, "train_micro_batch_size_per_gpu": 4}) == []

    def test_defaults_of_other_packages_are_not_known(self) -> None:
        text = 'args = SFTConfig("out", deepspeed="ds_config.json")\nSFTTrainer(args=args).train()\n'
        assert (
            found(text, with_keys(optimizer={"type": "AdamW", "params": {"lr": 1e-3}}, bf16={"enabled": True}))
            == []
        )

    def test_what_other_packages_are_given_is_known(self) -> None:
        text = 'args = SFTConfig("out", deepspeed="ds_config.json", learning_rate=1e-4)\nSFTTrainer(args=args).train()\n'
        assert found(text, with_keys(optimizer={"type": "AdamW", "params": {"lr": 1e-3}})) == ["DS730"]

    def test_two_arguments_are_not_mixed_up(self) -> None:
        text = ARGS + 'other = TrainingArguments("out", deepspeed="ds_config.json", max_grad_norm=0.3)\n'
        assert found(text, with_keys(gradient_clipping=0.3)) == []

    def test_a_class_of_the_script_has_defaults_of_its_own(self) -> None:
        text = """
from dataclasses import dataclass, field
@dataclass
class Own(TrainingArguments):
    max_grad_norm: float = field(default=0.3)
args = Own("out", deepspeed="ds_config.json")
"""
        assert found(text, with_keys(gradient_clipping=0.3)) == []
        assert found(text, with_keys(gradient_clipping=0.4)) == ["DS730"]

    def test_a_class_that_sets_an_argument_itself_is_not_judged(self) -> None:
        text = """
from dataclasses import dataclass
@dataclass
class Own(TrainingArguments):
    def __post_init__(self):
        self.max_grad_norm = 0.3
        super().__post_init__()
args = Own("out", deepspeed="ds_config.json")
"""
        assert found(text, with_keys(gradient_clipping=0.3)) == []

    def test_the_number_of_ranks_has_to_be_known(self) -> None:
        assert found(TRAINER, {"train_batch_size": 7, "zero_optimization": {"stage": 2}}) == []
        assert found(TRAINER, {"train_batch_size": 7, "zero_optimization": {"stage": 2}}, gpus=2) == ["DS732"]

    def test_filled_values_are_effective_for_other_rules(self) -> None:
        text = 'TrainingArguments("out", deepspeed="ds_config.json", bf16=True, per_device_train_batch_size=4)\n'
        config = with_keys(bf16={"enabled": "auto"}, gradient_accumulation_steps="auto")
        assert codes("DS102", script=START + text, config=config, gpu="v100") == ["DS102"]
        text = text.replace("bf16=True, ", "")
        assert codes("DS102", script=START + text, config=config, gpu="v100") == []


class TestKeysThatAreMissing:
    @pytest.mark.parametrize(
        ("config", "given"),
        [
            ({}, "gradient_accumulation_steps=4"),
            ({"train_batch_size": "auto", "gradient_accumulation_steps": "auto"}, "gradient_accumulation_steps=4"),
            ({}, "max_grad_norm=1.0"),
            ({}, "learning_rate=1e-4, weight_decay=0.1"),
            (ADAM, "weight_decay=0.01"),
            (ADAM, "weight_decay=anything()"),
            ({"optimizer": {"type": "Lamb", "params": {"lr": "auto"}}}, "weight_decay=0.1"),
            (ADAM, "warmup_steps=100"),
        ],
    )
    def test_what_makes_no_difference_is_silent(self, config: dict[str, Any], given: str) -> None:
        text = (
            f'args = TrainingArguments("out", deepspeed="ds_config.json", {given})\nTrainer(args=args).train()\n'
        )
        assert found(text, with_keys(**config)) == []

    @pytest.mark.parametrize(
        ("config", "given", "code"),
        [
            ({"train_batch_size": "auto"}, "gradient_accumulation_steps=4", "DS733"),
            ({}, "max_grad_norm=0.3", "DS734"),
            ({"optimizer": {"type": "AdamW", "params": {}}}, "learning_rate=1e-5", "DS755"),
            ({"optimizer": {"type": "Adam"}}, "adam_beta2=0.95", "DS755"),
            (
                {**ADAM, "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": "auto"}}},
                "warmup_ratio=0.1",
                "DS755",
            ),
        ],
    )
    def test_what_is_lost_is_told(self, config: dict[str, Any], given: str, code: str) -> None:
        text = (
            f'args = TrainingArguments("out", deepspeed="ds_config.json", {given})\nTrainer(args=args).train()\n'
        )
        assert found(text, with_keys(**config)) == [code]

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ("", ["DS759"]),
            ("warmup_steps=0", ["DS759"]),
            ("warmup_steps=10", []),
            ("warmup_ratio=0.1", []),
            ("warmup_ratio=anything()", []),
            ("**anything()", []),
        ],
    )
    def test_no_steps_of_warmup(self, given: str, expected: list[str]) -> None:
        text = (
            f'args = TrainingArguments("out", deepspeed="ds_config.json", {given})\nTrainer(args=args).train()\n'
        )
        scheduler = {"type": "WarmupLR", "params": {"warmup_max_lr": "auto", "warmup_num_steps": "auto"}}
        assert found(text, with_keys(**ADAM, scheduler=scheduler)) == expected

    @pytest.mark.parametrize("kind", ["WarmupDecayLR", "WarmupLR"])
    def test_the_usual_pairs_of_schedules_are_silent(self, kind: str) -> None:
        schedule = "linear" if kind == "WarmupDecayLR" else "constant_with_warmup"
        text = f'TrainingArguments("out", deepspeed="ds_config.json", optim="adamw_torch", warmup_steps=5, lr_scheduler_type="{schedule}")\n'
        assert (
            found(text, with_keys(**ADAM, scheduler={"type": kind, "params": {"warmup_num_steps": "auto"}})) == []
        )


class TestModels:
    @pytest.mark.parametrize(
        "text",
        [
            ARGS + MODEL + "Trainer(model=model, args=args).train()\n",
            "tokens = AutoModelForCausalLM.from_pretrained(name)\n" + TRAINER,
            MODEL.replace("(name)", "(name, quantization_config=anything())")
            + ARGS
            + "Trainer(model=model, args=args)\n",
            "if anything():\n    " + MODEL + ARGS + "Trainer(model=model, args=args)\n",
            "from accelerate import Accelerator\na = Accelerator()\n"
            + MODEL
            + ARGS
            + "Trainer(model=model, args=args)\n",
            "def load():\n    return AutoModelForCausalLM.from_pretrained(name)\n"
            + ARGS
            + "Trainer(model=load(), args=args)\n",
        ],
    )
    def test_a_model_after_the_arguments_is_in_order(self, text: str) -> None:
        assert found(text, STAGE_3) == []

    def test_a_model_before_the_arguments_is_whole_under_stage_3_only(self) -> None:
        text = MODEL + ARGS + "Trainer(model=model, args=args).train()\n"
        assert found(text, STAGE_3) == ["DS735"]
        assert found(text, STAGE_2) == []

    @pytest.mark.parametrize(
        "value", ["None", "anything()", "'auto' if anything() else None", "**{'device_map': anything()}"]
    )
    def test_a_device_map_that_may_be_none_is_silent(self, value: str) -> None:
        given = value if value.startswith("**") else f"device_map={value}"
        assert found(ARGS + f"model = AutoModelForCausalLM.from_pretrained(name, {given})\n", STAGE_3) == []

    @pytest.mark.parametrize("value", ["'auto'", "0", "{'': 0}"])
    def test_a_device_map_is_refused_under_stage_3_only(self, value: str) -> None:
        text = ARGS + f"model = AutoModelForCausalLM.from_pretrained(name, device_map={value})\n"
        assert found(text, STAGE_3) == ["DS737"]
        assert found(text, STAGE_2) == []

    def test_a_device_map_before_the_arguments_is_not_seen_by_stage_3(self) -> None:
        text = f"model = AutoModelForCausalLM.from_pretrained(name, device_map='auto')\n{ARGS}Trainer(model=model, args=args)\n"
        assert "DS737" not in found(text, STAGE_3)

    @pytest.mark.parametrize(
        "text",
        [
            "kept = HfDeepSpeedConfig('ds_config.json')\n" + MODEL,
            "class Holder:\n    def __init__(self):\n        self.kept = HfDeepSpeedConfig('ds_config.json')\nh = Holder()\n"
            + MODEL,
            "def prepare():\n    global kept\n    kept = HfDeepSpeedConfig('ds_config.json')\nprepare()\n" + MODEL,
            "def load():\n    kept = HfDeepSpeedConfig('ds_config.json')\n    return AutoModelForCausalLM.from_pretrained(name)\nmodel = load()\n",
            "def prepare(things):\n    kept = HfDeepSpeedConfig('ds_config.json')\n    things.append(kept)\nprepare([])\n"
            + MODEL,
            MODEL + "HfDeepSpeedConfig('ds_config.json')\n",
        ],
    )
    def test_a_config_that_is_kept_is_in_order(self, text: str) -> None:
        text = "import deepspeed\nfrom transformers.integrations import HfDeepSpeedConfig\n" + text
        assert found(text + "deepspeed.initialize(model=model, config='ds_config.json')\n", STAGE_3) == []

    def test_a_state_dict_of_the_model_is_in_parts_as_well(self) -> None:
        text = (
            TRAINER
            + """
def save(trainer):
    {}
    state = trainer.model.state_dict()
    if trainer.args.should_save:
        trainer._save("out", state_dict={{key: value.cpu() for key, value in state.items()}})
trainer.train()
save(trainer)
"""
        )
        assert found(text.format(""), STAGE_3) == ["DS754"]
        assert found(text.format(""), STAGE_2) == []
        assert found(text.format("if trainer.deepspeed:\n        return trainer.save_model('out')"), STAGE_3) == []

    def test_a_state_dict_of_adapters_is_not_judged(self) -> None:
        text = "from peft import get_peft_model\n" + ARGS + MODEL + "model = get_peft_model(model, anything())\n"
        text += "trainer = Trainer(model=model, args=args)\ntrainer.train()\n"
        assert found(text + "trainer._save('out', state_dict=model.state_dict())\n", STAGE_3) == []

    def test_a_module_with_a_config_may_tell_its_size(self) -> None:
        body = "class Own(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.{} = anything()\n"
        rest = ARGS + "Trainer(model=Own(), args=args).train()\n"
        config = {**STAGE_2, "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"}}
        assert found(body.format("config") + rest, config) == []
        assert found(body.format("inner") + rest, config) == ["DS756"]


class TestTrainers:
    @pytest.mark.parametrize("pair", ["(None, None)", "anything()", "(anything(), None)"])
    def test_optimizers_that_may_be_none_are_silent(self, pair: str) -> None:
        assert found(ARGS + f"Trainer(args=args, optimizers={pair}).train()\n") == []

    def test_optimizers_are_used_without_deepspeed(self) -> None:
        text = 'Trainer(args=TrainingArguments("out"), optimizers=(torch.optim.SGD(anything(), lr=1), None)).train()\n'
        assert found(text) == []

    def test_a_trainer_that_makes_its_optimizer_itself_is_silent(self) -> None:
        text = "class Own(Trainer):\n    def create_optimizer(self):\n        return anything()\n"
        assert (
            found(text + ARGS + "Own(args=args, optimizers=(torch.optim.SGD(anything(), lr=1), None)).train()\n")
            == []
        )

    @pytest.mark.parametrize(
        "text",
        [
            "trainer.train()\ntrainer.evaluate()\n",
            "if args.do_train:\n    trainer.train()\nif args.do_eval:\n    trainer.evaluate()\n",
            "anything(trainer)\ntrainer.evaluate()\n",
            "if not args.deepspeed:\n    trainer.evaluate()\n",
            "def later():\n    trainer.evaluate()\ntrainer.train()\n",
        ],
    )
    def test_evaluations_in_order_are_silent(self, text: str) -> None:
        assert found(TRAINER + text) == []

    def test_an_evaluation_first_is_told(self) -> None:
        assert found(TRAINER + "trainer.evaluate()\ntrainer.train()\n") == ["DS741"]
        assert found(TRAINER + "trainer.evaluate()\n", STAGE_3) == []

    @pytest.mark.parametrize(
        "text",
        [
            "trainer.train()\nif anything():\n    trainer.train()\n",
            f"trainer.train()\n{ARGS}trainer = Trainer(model=model, args=args)\ntrainer.train()\n",
            "trainer.train()\ntrainer.model_wrapped = trainer.model\ntrainer.train()\n",
            "trainer.train()\ntrainer.evaluate()\ntrainer.predict(dataset)\n",
        ],
    )
    def test_one_training_of_a_trainer_is_in_order(self, text: str) -> None:
        assert found(TRAINER + text) == []

    def test_a_second_trainer_needs_arguments_of_its_own(self) -> None:
        second = "Trainer(model=model, args=args)\n"
        assert found(TRAINER + second) == ["DS758"]
        assert found(TRAINER + "if anything():\n    " + second) == []
        assert found(TRAINER + ARGS + second) == []
        assert found((TRAINER + second).replace(', deepspeed="ds_config.json"', "")) == []

    def test_two_trainings_of_a_trainer_are_told(self) -> None:
        assert found(TRAINER + "trainer.train()\ntrainer.evaluate()\ntrainer.train()\n") == ["DS757"]
        assert found(TRAINER + "trainer.evaluate()\ntrainer.train()\n", STAGE_3) == ["DS757"]

    @pytest.mark.parametrize(
        "text",
        [
            "if trainer.is_world_process_zero():\n    tokenizer.save_pretrained('out')\n",
            "if trainer.is_world_process_zero():\n    trainer.save_state()\n    trainer.save_metrics('all', {})\n",
            "if args.local_rank == 0 and not trainer.is_deepspeed_enabled:\n    trainer.save_model('out')\n",
            "if args.should_save and args.world_size == 1:\n    trainer.save_model('out')\n",
            "if args.local_rank == 0:\n    trainer.save_model('a')\nelse:\n    trainer.save_model('b')\n",
        ],
    )
    def test_work_of_the_main_rank_is_in_order(self, text: str) -> None:
        assert found(TRAINER + "trainer.train()\n" + text, STAGE_3, gpus=2) == []

    def test_saving_on_the_main_rank_hangs_under_stage_3_only(self) -> None:
        text = TRAINER + "trainer.train()\nif args.local_rank in (-1, 0):\n    trainer.save_model('out')\n"
        assert found(text, STAGE_3, gpus=2) == ["DS753"]
        assert found(text, STAGE_2, gpus=2) == []
        assert found(text, STAGE_3, gpus=1) == []

    @pytest.mark.parametrize("where", ["None", "anything()", "anything() or None", "'out/checkpoint-5'"])
    def test_resuming_from_somewhere_else_is_silent(self, where: str) -> None:
        text = 'args = TrainingArguments("out", deepspeed="ds_config.json", save_only_model=True)\n'
        assert found(text + f"Trainer(args=args).train(resume_from_checkpoint={where})\n") == []


class TestOwnTrainingSteps:
    STEP = """
class Own(Trainer):
    def training_step(self, model, inputs, num_items_in_batch=None):
        loss = self.compute_loss(model, inputs)
        {}
        return loss.detach()
"""
    REST = (
        'args = TrainingArguments("out", deepspeed="ds_config.json", gradient_accumulation_steps=2)\n'
        "Own(args=args, train_dataset=dataset).train()\n"
    )
    CONFIG = with_keys(gradient_accumulation_steps="auto")

    @pytest.mark.parametrize(
        "body",
        [
            "self.accelerator.backward(loss)",
            "if self.is_deepspeed_enabled: self.accelerator.backward(loss)\n        else: loss.backward()",
            "loss = self.deepspeed.backward(loss)",
            "model.backward(loss)",
            "(loss / self.args.gradient_accumulation_steps).detach()\n        self.accelerator.backward(loss)",
            "self.accelerator.backward(loss / self.args.gradient_accumulation_steps, scale_wrt_gas=False)",
            "self.accelerator.backward(loss / self.args.gradient_accumulation_steps, **anything())",
            "loss = super().training_step(model, inputs)",
        ],
    )
    def test_steps_through_the_engine_are_in_order(self, body: str) -> None:
        assert found(self.STEP.format(body) + self.REST, self.CONFIG) == []

    def test_a_class_that_nobody_uses_is_silent(self) -> None:
        assert (
            found(self.STEP.format("loss.backward()") + self.REST.replace("Own(", "Trainer("), self.CONFIG) == []
        )

    @pytest.mark.parametrize(
        ("body", "code"),
        [
            ("loss.backward()", "DS749"),
            ("self.accelerator.backward(loss / self.args.gradient_accumulation_steps)", "DS750"),
            (
                "loss = loss / self.current_gradient_accumulation_steps\n        self.accelerator.backward(loss)",
                "DS750",
            ),
        ],
    )
    def test_steps_past_the_engine_are_told(self, body: str, code: str) -> None:
        assert found(self.STEP.format(body) + self.REST, self.CONFIG) == [code]


class TestChangesThatComeTooLate:
    @pytest.mark.parametrize(
        "text",
        [
            ARGS + "args.learning_rate = 0.1\n",
            ARGS + "args.learning_rate = 5e-5\n",
            ARGS + "args.output_dir = 'there'\n",
            ARGS + "args.per_device_train_batch_size = 4\n",
            'args = TrainingArguments("out")\nargs.max_grad_norm = 0.3\n',
        ],
    )
    def test_changes_that_the_trainer_sees_are_in_order(self, text: str) -> None:
        assert found(text, with_keys(gradient_clipping="auto")) == []

    def test_changes_to_what_was_filled_are_told(self) -> None:
        assert found(ARGS + "args.max_grad_norm = 0.3\n", with_keys(gradient_clipping="auto")) == ["DS751"]

    DICT = 'config = {"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}}\n'
    TAKES = 'args = TrainingArguments("out", deepspeed=config)\n'

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (DICT + 'config["zero_optimization"]["overlap_comm"] = True\n' + TAKES, []),
            (DICT + TAKES + 'config["zero_optimization"]["overlap_comm"] = True\n', ["DS752"]),
            (DICT + TAKES + 'other = dict(config)\nother["steps_per_print"] = 5\n', []),
            (
                f"def make():\n    config = {{}}\n    config['zero_optimization'] = {{'stage': 2}}\n    return config\nconfig = make()\n{TAKES}",
                [],
            ),
        ],
    )
    def test_dicts(self, text: str, expected: list[str]) -> None:
        assert codes(*RULES, script=START + text) == expected


class TestFolklore:
    """What is often called a mistake and is none, or can't be told from the files."""

    @pytest.mark.parametrize(
        "text",
        [
            ARGS + "model = AutoModelForCausalLM.from_pretrained(name, low_cpu_mem_usage=True)\n",
            ARGS + MODEL + "model.gradient_checkpointing_enable()\nmodel(**anything(), use_cache=True)\n",
            ARGS + MODEL + "model.generate(**anything())\n",
            ARGS
            + MODEL
            + "model.resize_token_embeddings(len(tokenizer))\nTrainer(model=model, args=args).train()\n",
            ARGS + MODEL + "model.cuda()\nTrainer(model=model, args=args).train()\n",
            "from peft import get_peft_model\n"
            'args = TrainingArguments("out", deepspeed="ds_config.json", gradient_checkpointing=True,'
            ' gradient_checkpointing_kwargs={"use_reentrant": True})\n'
            + MODEL
            + "Trainer(model=get_peft_model(model, anything()), args=args).train()\n",
            "def arguments():\n    "
            + ARGS
            + "    return args\nargs = arguments()\n"
            + MODEL
            + "Trainer(model=model, args=args)\n",
        ],
    )
    def test_it_is_silent(self, text: str) -> None:
        assert found(text, {**STAGE_3, "steps_per_print": 10}, gpus=2) == []

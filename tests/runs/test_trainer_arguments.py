"""The Trainer's arguments: from constructors, from launch commands, from classes of a script's own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dslint.documents.python_reader import read_script
from dslint.documents.source import Source
from dslint.runs.auto_filling import COMPARED, FILLED, SOURCES
from dslint.runs.script.reading import read_deeds
from dslint.runs.trainer_arguments import DEFAULTS, NAMES, TrainerArguments, find_trainer_arguments
from dslint.runs.unknown import Unknown

IMPORTS = """
from dataclasses import dataclass, field
from transformers import HfArgumentParser, TrainingArguments
from trl import DPOConfig, TrlParser
from elsewhere import settings
"""


def arguments(text: str, words: list[str | None] | None = None) -> TrainerArguments:
    script = read_script(Source("train.py", (IMPORTS + text).encode()))
    deeds = read_deeds(script, words)
    found = find_trainer_arguments(deeds, SimpleNamespace(launch=None))
    assert found is not None
    return found


def value(name: str, text: str, words: list[str | None] | None = None) -> Any:
    return arguments(text, words).value(name)


PARSED = "args, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\n"


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ('TrainingArguments("out", learning_rate=1e-4)', "learning_rate", 1e-4),
        ('TrainingArguments("out")', "learning_rate", 5e-5),
        ('TrainingArguments("out")', "output_dir", "out"),
        ("TrainingArguments(output_dir='here')", "output_dir", "here"),
        ("TrainingArguments(**{'max_steps': 7})", "max_steps", 7),
        ("TrainingArguments('out', fsdp=['full_shard', 'offload'])", "fsdp", ["full_shard", "offload"]),
        ('DPOConfig("out")', "save_only_model", False),
        ('DPOConfig("out")', "gradient_accumulation_steps", 1),
        ('DPOConfig("out", per_device_train_batch_size=2)', "per_device_train_batch_size", 2),
    ],
)
def test_constructors(text: str, name: str, expected: Any) -> None:
    assert value(name, text) == expected


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('TrainingArguments("out", **settings)', "learning_rate"),
        ('TrainingArguments("out", learning_rate=settings.rate)', "learning_rate"),
        ('TrainingArguments("out", True)', "learning_rate"),
        ('TrainingArguments("out")', "optim"),
        ('TrainingArguments("out", per_gpu_train_batch_size=4)', "per_device_train_batch_size"),
        ('DPOConfig("out")', "learning_rate"),
        ('DPOConfig("out")', "bf16"),
    ],
)
def test_what_nobody_can_tell_is_unknown(text: str, name: str) -> None:
    assert isinstance(value(name, text), Unknown)


@pytest.mark.parametrize(
    ("words", "name", "expected"),
    [
        (["--learning_rate", "2e-5"], "learning_rate", 2e-5),
        (["--learning_rate=2e-5", "--bf16"], "bf16", True),
        (["--bf16", "False"], "bf16", False),
        (["--deepspeed", "ds.json"], "deepspeed", "ds.json"),
        (["--output_dir", "out"], "max_grad_norm", 1.0),
        (["--gradient_accumulation_steps", "4", "--optim", "adafactor"], "optim", "adafactor"),
    ],
)
def test_commands(words: list[str | None], name: str, expected: Any) -> None:
    assert value(name, PARSED, words) == expected


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (None, "learning_rate"),
        (["--learning_rate", None], "learning_rate"),
        ([None, "--bf16"], "learning_rate"),
        (["settings.json"], "learning_rate"),
        (["--config", "settings.yaml"], "learning_rate"),
        (["--learning_r", "1e-4"], "learning_rate"),
    ],
)
def test_commands_that_hide_something(words: list[str | None] | None, name: str) -> None:
    assert isinstance(value(name, PARSED, words), Unknown)


OWN = """
@dataclass
class Own(TrainingArguments):
    learning_rate: float = field(default=1e-3)
    max_grad_norm: float = 0.5
    extra: int = 1
"""


def test_defaults_of_a_class_of_the_script() -> None:
    assert value("learning_rate", OWN + 'Own("out")') == 1e-3
    assert value("learning_rate", OWN + 'Own("out", learning_rate=1.0)') == 1.0
    assert value("max_grad_norm", OWN + "Own('out')") == 0.5
    assert value("weight_decay", OWN + "Own('out')") == 0.0
    parsed = OWN + "args, = HfArgumentParser(Own).parse_args_into_dataclasses()\n"
    assert value("learning_rate", parsed, ["--output_dir", "out"]) == 1e-3
    assert value("learning_rate", parsed, ["--learning_rate", "0.25"]) == 0.25


def test_given_means_in_constructor_or_command() -> None:
    assert arguments('TrainingArguments("out", bf16=True)').given("bf16") is True
    assert arguments('TrainingArguments("out", bf16=True)').given("fp16") is False
    assert isinstance(arguments('TrainingArguments("out", **settings)').given("fp16"), Unknown)
    assert arguments(OWN + "Own('out')").given("learning_rate") is False
    assert arguments(PARSED, ["--bf16", "true"]).given("bf16") is True
    assert arguments(PARSED, ["--bf16", "true"]).given("fp16") is False
    assert isinstance(arguments(PARSED).given("fp16"), Unknown)


def test_an_argument_changed_after_parsing_is_unknown() -> None:
    text = PARSED + "args.learning_rate = 1.0\n"
    assert isinstance(value("learning_rate", text, ["--learning_rate", "2e-5"]), Unknown)
    assert value("max_steps", text, ["--learning_rate", "2e-5"]) == -1


def test_an_argument_changed_after_construction_keeps_what_it_was_made_with() -> None:
    found = arguments('args = TrainingArguments("out", learning_rate=0.5)\nargs.learning_rate = 1.0\n')
    assert found.value("learning_rate") == 0.5
    assert found.changed == {"learning_rate"}


@pytest.mark.parametrize("body", ["self.learning_rate = 1.0", "setattr(self, 'learning_rate', 1.0)"])
def test_a_class_that_sets_an_argument_hides_it(body: str) -> None:
    text = f"{OWN}\n    def __post_init__(self):\n        super().__post_init__()\n        {body}\n"
    assert isinstance(value("learning_rate", text + "Own('out')"), Unknown)


def test_the_place_is_the_keyword_with_its_value() -> None:
    found = arguments('TrainingArguments("out", learning_rate=1e-4)')
    source, span = found.place("learning_rate")
    assert source.slice(span) == "learning_rate=1e-4"
    source, span = found.place("bf16")
    assert source.slice(span) == 'TrainingArguments("out", learning_rate=1e-4)'


def test_several_arguments_are_nobodys() -> None:
    script = read_script(
        Source("train.py", (IMPORTS + "TrainingArguments('a')\nTrainingArguments('b')\n").encode())
    )
    deeds = read_deeds(script, None)
    assert find_trainer_arguments(deeds, SimpleNamespace(launch=None)) is None


def test_the_tables_speak_of_the_same_keys_and_arguments() -> None:
    assert set(SOURCES) == set(COMPARED) <= set(FILLED)
    assert {name for names in SOURCES.values() for name in names} <= NAMES
    assert set(DEFAULTS) <= NAMES

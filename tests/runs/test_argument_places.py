"""Where arguments of the Trainer are changed: in the constructor, or in the launch command."""

from __future__ import annotations

import textwrap

import pytest

from dslint.lint import facts_of
from dslint.rulebook.cases import run_of
from dslint.runs.argument_places import NoArgumentError, place_of
from tests.runs.mending import mended, ways

CONFIG = {"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}}
IN_COMMAND = """
    from transformers import HfArgumentParser, Trainer, TrainingArguments
    (arguments,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
    trainer = Trainer(model=model, args=arguments, train_dataset=rows)
"""
IN_SCRIPT = """
    from transformers import Trainer, TrainingArguments
    {}
    arguments = TrainingArguments({})
    trainer = Trainer(model=model, args=arguments, train_dataset=rows)
"""
START = "deepspeed --num_gpus 2 train.py --output_dir out --deepspeed ds_config.json"


def after(words: str, way: int = 1) -> str | None:
    """The words behind the usual ones once a precision is taken out."""
    changed = mended("DS841", way, script=IN_COMMAND, launch=f"{START} {words}\n", config=CONFIG)
    return changed["run.sh"].removeprefix(START) if changed else None


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--bf16 --fp16", " --bf16\n"),
        ("--fp16 --bf16", " --bf16\n"),
        ("--bf16 True --fp16 True", " --bf16 True\n"),
        ("--bf16=True --fp16=True --seed 1", " --bf16=True --seed 1\n"),
        ("--fp16 \\\n  True \\\n  --bf16", " \\\n  --bf16\n"),
    ],
)
def test_an_option_goes_with_its_value(words: str, expected: str) -> None:
    assert after(words) == expected


def test_an_option_that_stands_twice_stays() -> None:
    assert after("--fp16 --bf16 --fp16") is None


@pytest.mark.parametrize("words", ['--fp16 "$@"', "--fp16 $MORE", "--learning_rate $RATE", "--fp16 --bf16 --fp16"])
def test_an_option_whose_words_are_not_sure_has_no_place(words: str) -> None:
    case = {"script": textwrap.dedent(IN_COMMAND), "launch": f"{START} {words}\n", "config": CONFIG}
    with pytest.raises(NoArgumentError):
        place_of(facts_of(run_of(case)), words.split()[0].removeprefix("--"))


def test_a_list_of_values_has_a_place_as_a_whole_only() -> None:
    case = {"script": textwrap.dedent(IN_COMMAND), "launch": f"{START} --report_to a b\n", "config": CONFIG}
    place = place_of(facts_of(run_of(case)), "report_to")
    assert place.option is not None
    assert place.source.slice(place.option) == "--report_to a b"
    assert place.value is None


def test_an_option_out_of_a_variable_or_an_array_stays() -> None:
    for lines in ("P=--fp16\n" + START + " --bf16 $P\n", "A=(--fp16 --bf16)\n" + START + ' "${A[@]}"\n'):
        assert mended("DS841", script=IN_COMMAND, launch=lines, config=CONFIG) == {}


def test_a_command_in_a_text_that_another_runs_stays() -> None:
    launch = f"bash -c '{START} --bf16 --fp16'\n"
    found = ways("DS841", script=IN_COMMAND, launch=launch, config=CONFIG)
    assert {fix.obstacle for fix in found} == {"the launch command stands in a text that another command runs"}


def test_a_keyword_goes_from_the_constructor() -> None:
    script = IN_SCRIPT.format("", '"out", deepspeed="ds_config.json", fp16=True, bf16=True')
    changed = mended("DS841", script=script, config=CONFIG)["train.py"]
    assert 'TrainingArguments("out", deepspeed="ds_config.json", bf16=True)' in changed


def test_a_keyword_that_a_dict_brings_stays() -> None:
    script = IN_SCRIPT.format('more = {"fp16": True, "bf16": True}', '"out", deepspeed="ds_config.json", **more')
    assert mended("DS841", script=script, config=CONFIG) == {}

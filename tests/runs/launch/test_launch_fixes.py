"""What the fixes of the rules about launch commands write, and where they leave a command alone."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dslint.smoke.proofs.planning import planned
from tests.runs.mending import mended, tiers

PARSING = """
    import argparse
    import deepspeed
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1)
    {}
    args = parser.parse_args()
    engine, *_ = deepspeed.initialize(args=args, model=net, config="ds_config.json")
"""
RAW = PARSING.format('parser.add_argument("--local_rank", type=int, default=-1)')


def launch_after(code: str, launch: str, way: int = 1, **case: Any) -> str | None:
    return mended(code, way, launch=launch, **case).get("run.sh")


def test_an_option_with_hyphens_is_written_with_underscores_wherever_it_stands() -> None:
    text = "deepspeed \\\n  --num-gpus 2 \\\n  --no_local_rank \\\n  train.py\n"
    assert launch_after("DS801", text) == text.replace("--num-gpus", "--num_gpus")
    assert launch_after("DS801", "deepspeed --num-gpus=2 train.py\n") == "deepspeed --num_gpus=2 train.py\n"


def test_words_of_a_variable_an_array_or_a_text_are_left_alone() -> None:
    assert launch_after("DS801", 'ARGS="--num-gpus 2"\ndeepspeed $ARGS train.py\n') is None
    assert launch_after("DS801", 'ARGS=(--num-gpus 2)\ndeepspeed "${ARGS[@]}" train.py\n') is None
    assert launch_after("DS801", "bash -c 'deepspeed --num-gpus 2 train.py'\n") is None
    assert launch_after("DS803", "bash -c 'deepspeed --num_gpus 2 --include localhost:0,1 train.py'\n") is None


def test_a_count_over_all_machines_is_not_taken_for_one_of_a_node_unasked() -> None:
    assert tiers("DS801", launch="torchrun --num_gpus 2 train.py\n", script=RAW) == {1: "safe"}
    assert tiers("DS801", launch="deepspeed --num_processes 4 train.py\n") == {2: "unsafe", 3: "display"}


def test_the_options_of_elastic_training_go_with_their_values() -> None:
    text = (
        "deepspeed --elastic_training --min_elastic_nodes=1 \\\n --max_elastic_nodes 4 --no_local_rank train.py\n"
    )
    assert launch_after("DS800", text) == "deepspeed \\\n --no_local_rank train.py\n"


def test_what_may_be_a_value_or_the_script_is_left_alone() -> None:
    assert launch_after("DS800", "deepspeed --min_elastic_nodes 1 --module train\n") is None


def test_a_value_in_quotes_is_replaced_within_them() -> None:
    text = "accelerate launch --use_deepspeed --mixed_precision '{}' train.py\n"
    assert launch_after("DS802", text.format("BF16"), way=2) == text.format("bf16")
    text = 'deepspeed --include="localhost:{}" train.py\n'
    assert launch_after("DS806", text.format("0-1,3"), gpus=4) == text.format("0,1,3")


def test_a_value_that_comes_from_a_variable_is_left_alone() -> None:
    text = "WHERE=localhost:0-1\ndeepspeed --include $WHERE train.py\n"
    assert launch_after("DS806", text, gpus=4) is None


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--num_gpus 2 --include localhost:0,1", {1: "safe"}),
        ("--num_gpus 3 --include localhost:0,1", {1: "unsafe", 2: "unsafe"}),
        ("--num_gpus 2 --exclude localhost:0,1", {1: "unsafe", 2: "unsafe"}),
        ("--num_nodes 1 --include localhost:0,1", {1: "safe"}),
    ],
)
def test_a_count_that_says_what_the_filter_says_goes_unasked(options: str, expected: dict[int, str]) -> None:
    assert tiers("DS803", launch=f"deepspeed {options} train.py\n", gpus=4) == expected


def test_an_exclusion_of_what_is_not_included_goes_unasked() -> None:
    text = "deepspeed --include localhost:0,1 --exclude {} train.py\n"
    assert tiers("DS804", launch=text.format("localhost:2"), gpus=4) == {1: "safe"}
    assert tiers("DS804", launch=text.format("localhost:1"), gpus=4) == {1: "unsafe", 2: "unsafe"}
    assert tiers("DS804", launch=text.format("localhost"), gpus=4) == {1: "unsafe", 2: "unsafe"}


def test_hosts_that_a_comma_separates_are_separated_by_an_at_sign() -> None:
    files = {"hostfile": "a slots=2\nb slots=2\n"}
    text = "deepspeed --hostfile hostfile --include {} train.py\n"
    assert launch_after("DS806", text.format("a:0,b:0-1"), files=files) == text.format("a:0@b:0,1")
    assert launch_after("DS807", text.format("a,b"), files=files) == text.format("a@b")
    assert launch_after("DS807", text.format("a,c"), files=files) is None


def test_a_variable_goes_unless_it_may_be_for_other_commands_too() -> None:
    before = "CUDA_VISIBLE_DEVICES=2,3 NAME=x deepspeed --num_gpus=2 train.py\n"
    assert launch_after("DS815", before, gpus=8, script=RAW) == (
        "NAME=x deepspeed --include=localhost:2,3 train.py\n"
    )
    exported = "export CUDA_VISIBLE_DEVICES=2,3\ndeepspeed --num_gpus 2 train.py\n"
    assert launch_after("DS815", exported + "python test.py\n", gpus=8, script=RAW) is None
    assert launch_after("DS815", exported + "python test.py\n", way=2, gpus=8, script=RAW) is None
    assert launch_after("DS815", exported, gpus=8, script=RAW) == ("deepspeed --include localhost:2,3 train.py\n")


@pytest.mark.parametrize(("value", "goes"), [("2", True), ('"$N"', True), ('"${N}"', True), ("$N", False)])
def test_a_variable_that_may_hold_more_words_keeps_its_option(value: str, goes: bool) -> None:
    text = f"N=2\ndeepspeed --num_gpus {value} --include localhost:0,1 train.py\n"
    after = "N=2\ndeepspeed --include localhost:0,1 train.py\n"
    assert launch_after("DS803", text, gpus=4) == (after if goes else None)


def test_an_array_that_may_hold_more_words_keeps_its_option() -> None:
    text = 'N=(2)\ndeepspeed --num_gpus "${N[@]}" --include localhost:0,1 train.py\n'
    assert launch_after("DS803", text, gpus=4) is None


def test_the_number_of_tasks_a_node_is_the_one_to_change() -> None:
    text = "srun -N 2 {} torchrun --nnodes 2 --nproc_per_node 8 --rdzv_endpoint n:1 train.py\n"
    after = launch_after("DS836", text.format("--ntasks-per-node=8"), script=RAW)
    assert after == text.format("--ntasks-per-node=1")
    assert launch_after("DS836", text.format("-n 16"), script=RAW) is None


@pytest.mark.parametrize("word", ["--learning-rate", "--learnin_rate", "--epcohs"])
def test_a_word_like_an_option_of_the_script_may_be_that_option(word: str) -> None:
    script = PARSING.format(
        'parser.add_argument("--learning_rate", type=float)\n    parser.add_argument("--local_rank", type=int)'
    )
    text = f"deepspeed --num_gpus 2 train.py {word}=3\n"
    meant = "--epochs=3" if word == "--epcohs" else "--learning_rate=3"
    assert launch_after("DS826", text, way=2, script=script) == f"deepspeed --num_gpus 2 train.py {meant}\n"
    assert tiers("DS826", launch=text, script=script) == {2: "unsafe", 3: "display"}


def test_the_parser_learns_the_argument_that_the_launcher_adds() -> None:
    script = PARSING.format("pass")
    after = mended("DS820", launch="deepspeed --num_gpus 2 train.py\n", script=script)["train.py"]
    assert 'parser.add_argument("--local_rank", type=int, default=-1)\nargs = parser.parse_args()' in after


def test_a_parser_without_a_name_is_left_alone() -> None:
    script = "import argparse\nimport deepspeed\nargs = argparse.ArgumentParser().parse_args()\n"
    script += 'engine, *_ = deepspeed.initialize(model=net, config="ds_config.json")\n'
    assert mended("DS820", launch="deepspeed train.py\n", script=script) == {}


def test_the_declared_argument_gets_the_other_spelling() -> None:
    launch = "python -m torch.distributed.launch --nproc_per_node 2 train.py\n"
    script = PARSING.format("parser.add_argument('-r', '--local_rank', type=int, default=0)")
    after = mended("DS822", launch=launch, script=script)["train.py"]
    assert "parser.add_argument('-r', '--local-rank', '--local_rank', type=int, default=0)" in after


def test_the_device_is_taken_from_the_environment_where_os_is_imported() -> None:
    script = PARSING.format('parser.add_argument("--local_rank", type=int, default=0)')
    script += "    torch.cuda.set_device(args.local_rank)\n"
    launch = "torchrun --nproc_per_node 2 train.py\n"
    assert mended("DS824", launch=launch, script="    import torch" + script) == {}
    after = mended("DS824", launch=launch, script="    import os, torch" + script)["train.py"]
    assert 'torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", args.local_rank)))' in after


def test_a_script_is_started_by_a_launcher_only_where_python_stands_right_before_it() -> None:
    assert launch_after("DS831", "python train.py --a\n", script=RAW) == "torchrun train.py --a\n"
    assert launch_after("DS831", "python -u train.py\n", script=RAW) is None


def test_the_number_of_reserved_gpus_or_nodes_is_changed_in_its_comment() -> None:
    gpus = "#!/bin/bash\n#SBATCH --gres=gpu:a100:{}\ntorchrun --nproc_per_node=8 train.py\n"
    assert launch_after("DS817", gpus.format(4), way=2, script=RAW) == gpus.format(8)
    nodes = "#!/bin/bash\n#SBATCH {}\ntorchrun --nproc_per_node=8 train.py\n"
    assert launch_after("DS837", nodes.format("--nodes=4"), script=RAW) == nodes.format("--nodes=1")
    assert launch_after("DS837", nodes.format("-N 4"), script=RAW) == nodes.format("-N 1")
    assert launch_after("DS837", nodes.format("--nodes=4\n#SBATCH --ntasks=4"), script=RAW) is None


OPTIONS = (["--num_gpus", "2"], ["--include", "localhost:0,1"], ["--master_port", "29501"], ["--no_local_rank"])
BETWEEN = st.sampled_from([" ", "  ", " \\\n  "])


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@settings(max_examples=60, deadline=None)
@given(st.permutations(OPTIONS), st.lists(BETWEEN, min_size=12, max_size=12), st.booleans())
def test_bash_sees_all_words_but_those_of_the_option_that_goes(
    options: list[list[str]], between: list[str], is_one_word: bool
) -> None:
    joined = [["=".join(one)] if is_one_word else one for one in options]
    words = ["deepspeed", *(word for one in joined for word in one), "train.py", "--a", "b c"]
    quoted = [f'"{word}"' if " " in word else word for word in words]
    text = "".join(word + gap for word, gap in zip(quoted, between, strict=False)).rstrip(" \\\n") + "\n"
    after = launch_after("DS803", text, gpus=4)
    assert after is not None
    real = planned({"launch": after})
    assert real is not None
    gone = {"--num_gpus=2"} if is_one_word else {"--num_gpus", "2"}
    assert list(real.words) == [word for word in words if word not in gone]

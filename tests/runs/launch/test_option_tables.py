"""The option tables say what the installed launchers' own parsers say."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence
from unittest import mock

import pytest

from dslint.documents.source import Span
from dslint.runs.launch.launch import Argument
from dslint.runs.launch.option_parsing import parse_options
from dslint.runs.launch.option_tables import option_table

pytestmark = pytest.mark.deepspeed


def deepspeed_parser() -> argparse.ArgumentParser:
    runner = pytest.importorskip("deepspeed.launcher.runner")
    made: list[argparse.ArgumentParser] = []

    def keep(parser: argparse.ArgumentParser, args: Sequence[str] | None = None) -> argparse.Namespace:
        made.append(parser)
        return argparse.Namespace()

    with mock.patch.object(argparse.ArgumentParser, "parse_args", keep):
        runner.parse_args([])
    return made[0]


def torchrun_parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = pytest.importorskip("torch.distributed.run").get_args_parser()
    return parser


def accelerate_parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = pytest.importorskip("accelerate.commands.launch").launch_command_parser()
    return parser


PARSERS = {"deepspeed": deepspeed_parser, "torchrun": torchrun_parser, "accelerate": accelerate_parser}


@pytest.mark.parametrize("launcher", PARSERS)
def test_every_option_is_known_with_and_without_value(launcher: str) -> None:
    table = option_table(launcher)
    real = {name: action.nargs == 0 for action in PARSERS[launcher]()._actions for name in action.option_strings}
    assert {name: canonical in table.flags for name, canonical in table.names.items()} == real


@pytest.mark.parametrize("launcher", PARSERS)
def test_spellings_of_one_option_share_a_name(launcher: str) -> None:
    table = option_table(launcher)
    for action in PARSERS[launcher]()._actions:
        assert len({table.names[name] for name in action.option_strings}) <= 1


LINES = {
    "deepspeed": [
        "--num_gpus 8 t.py --a", "--num_g=8 t.py", "-H h -i a:0 t.py -H x", "-Hh t.py", "--mod pkg --num_gpus 1", "--num_gpus -1 t.py",
        "--num-gpus 8 t.py", "--no_ssh --node_rank=1 t.py b", "--master 1 t.py",
    ],
    "torchrun": ["--nproc-per-node=2 --nnodes 1:2 t.py", "--standalone -m pkg -m", "--nproc 2 t.py", "-r3 -t 3 t.py --tee", "--nnode 2 t.py"],
    "accelerate": ["--config_file a --use-deepspeed t.py --b", "--num_processes 8 -m pkg", "--zero_stage 3 t.py --zero_stage 2"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("launcher", "line"), [(launcher, line) for launcher, lines in LINES.items() for line in lines]
)
def test_lines_are_parsed_as_the_launcher_does(launcher: str, line: str) -> None:
    parser = PARSERS[launcher]()
    parsed = parse_options([Argument(word, Span(0, 0)) for word in line.split()], option_table(launcher))
    refused = False
    with contextlib.redirect_stderr(None):
        try:
            expected = vars(parser.parse_args(line.split()))
        except SystemExit:
            refused = True
    if refused:
        assert parsed.unknown_options
        return
    assert not parsed.unknown_options
    script = expected.get("user_script") or expected.get("training_script")
    rest = expected.get("user_args") or expected.get("training_script_args") or []
    assert parsed.script is not None
    assert (parsed.script.text, [argument.text for argument in parsed.rest]) == (script, rest)
    for name, option in parsed.options.items():
        assert str(expected[name]) == str(option.value)

"""What a script's parser refuses, held against argparse itself."""

from __future__ import annotations

import argparse
import contextlib
import io
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dslint.rulebook.cases import run_of
from dslint.runs.script.events import Call
from dslint.runs.script.facts.command_line import knows, refusal, strict_parses
from dslint.runs.script.reading import Deeds

PARSER = """
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=1e-4)
parser.add_argument("--epochs", "-e", type=int, required=True)
parser.add_argument("--kind", choices=["a", "b"], default="a")
parser.add_argument("--names", nargs="*")
parser.add_argument("--local_rank", type=int, default=-1)
group = parser.add_argument_group("more")
group.add_argument("--fast", action="store_true")
"""
WORDS = [
    "--lr",
    "0.1",
    "--epochs",
    "3",
    "-e",
    "x",
    "--kind",
    "a",
    "--names",
    "--fast",
    "--local",
    "--lr=1",
    "--no",
    "-1",
]


def deeds_of(text: str) -> Deeds:
    deeds = run_of({"script": "import deepspeed, argparse\n" + textwrap.dedent(text)}).script
    assert deeds is not None
    return deeds


def parse_in(text: str) -> Call:
    (call,) = strict_parses(deeds_of(text))
    return call


@given(st.lists(st.sampled_from(WORDS), max_size=7))
@settings(max_examples=300, deadline=None)
def test_it_refuses_what_argparse_refuses(words: list[str]) -> None:
    space: dict[str, argparse.ArgumentParser] = {}
    exec("import argparse\n" + PARSER, space)  # type: ignore[arg-type]
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            space["parser"].parse_args(words)
            is_refused = False
        except SystemExit:
            is_refused = True
    found = refusal(PARSE.receiver, words)
    assert (found is not None) is is_refused
    if found is not None and found.index is not None:
        assert words[found.index]


PARSE = parse_in(PARSER + "args = parser.parse_args()\n")


def test_the_word_that_stops_it_is_told() -> None:
    assert refusal(PARSE.receiver, ["--epochs", "3", "--lrs", "1"]).index == 2  # type: ignore[union-attr]
    assert refusal(PARSE.receiver, ["--epochs", "three"]).index == 0  # type: ignore[union-attr]
    assert refusal(PARSE.receiver, []).index is None  # type: ignore[union-attr]


def test_words_that_cannot_be_told_hide_everything_but_unknown_options() -> None:
    assert refusal(PARSE.receiver, [None, "--kind", "z"]) is None
    assert refusal(PARSE.receiver, [None, "--kinds", "z"]).index == 1  # type: ignore[union-attr]
    assert refusal(PARSE.receiver, [None, "--", "--kinds"]) is None


@pytest.mark.parametrize(
    "text",
    [
        "args, rest = parser.parse_known_args()",
        "args = parser.parse_args([])",
        "more(parser)\nargs = parser.parse_args()",
        "parser = more(parser)\nargs = parser.parse_args()",
        "for name in more:\n    parser.add_argument(name)\nargs = parser.parse_args()",
        "if more:\n    args = parser.parse_args()",
        "try:\n    args = parser.parse_args()\nexcept SystemExit:\n    args = None",
        "def main():\n    return parser.parse_args()",
        "import sys\nsys.argv = sys.argv[:1]\nargs = parser.parse_args()",
        "import sys\nsys.argv[1:] = []\nargs = parser.parse_args()",
        "import sys\nsys.argv.remove('--local_rank=0')\nargs = parser.parse_args()",
        "parser.add_argument('rest', nargs=argparse.REMAINDER)\nargs = parser.parse_args()",
        "parser.add_argument('rest', nargs='...')\nargs = parser.parse_args()",
        "parser.add_argument('--set', action=more)\nargs = parser.parse_args()",
        "parser.add_subparsers()\nargs = parser.parse_args()",
        "parser = argparse.ArgumentParser(fromfile_prefix_chars='@')\nargs = parser.parse_args()",
        "parser = argparse.ArgumentParser(parents=[more])\nargs = parser.parse_args()",
        "class Own(argparse.ArgumentParser):\n    pass\nargs = Own().parse_args()",
    ],
)
def test_parsers_that_may_take_more(text: str) -> None:
    assert list(strict_parses(deeds_of(f"from helpers import more\n{PARSER}\n{text}\n"))) == []


def test_dataclasses_of_this_file() -> None:
    text = """
    from dataclasses import dataclass, field
    from transformers import HfArgumentParser
    @dataclass
    class Arguments:
        lr: float = 0.1
        batch_size: int = field(default=1, metadata={"help": "rows"})
    arguments, = HfArgumentParser(Arguments).parse_args_into_dataclasses()
    """
    parser = parse_in(text).receiver
    assert [knows(parser, flag) for flag in ("--batch-size", "--batch", "--local_rank")] == [True, True, False]
    assert refusal(parser, ["--lr", "1", "--rows=1"]).index == 2  # type: ignore[union-attr]
    assert list(strict_parses(deeds_of(text.replace("(Arguments)", "((Arguments, TrainingArguments))")))) == []

"""Edits of random shell scripts change what was asked and nothing else."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from itertools import chain
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dslint.documents.shell_document import Command
from dslint.documents.shell_reader import read_shell
from dslint.documents.source import Source, Span
from dslint.fixes.edit import CannotEditError, Edit, applied, undoing
from dslint.fixes.shell_words.edits import delete_words, insert_word, replace_word

SEEDS = st.integers(0, 2**32)
SETTLED = settings(max_examples=200, deadline=None)
WORDS = (
    "train.py",
    "--a",
    "--b=2",
    "8",
    "'c d'",
    '"e f"',
    "$X",
    '"${Y[@]}"',
    "${Z:-1}",
    "ü",
    "$(date +%s)",
    "a\\ b",
)
TEXTS = ("16", "a b", "it's", '"x"', "$V", '{"a": [1]}', "*", "ü", "", "a;b", "#x", "`", "${")


def script_of(random: Random) -> Source:
    end = random.choice(("\n", "\n", "\r\n"))
    lines = ["#!/bin/bash"] if random.random() < 0.5 else []
    for _ in range(random.randint(1, 4)):
        words = ["deepspeed", *random.choices(WORDS, k=random.randint(1, 6))]
        between = random.choice((" ", "  ", " \\\n    "))
        command = between.join(words)
        kind = random.random()
        if kind < 0.15:
            command = f"if true; then\n  {command}\nfi"
        elif kind < 0.3:
            command = "ARGS=(\n" + "".join(f"  {word}  # why\n" for word in words) + ")"
        elif kind < 0.4:
            command += " <<EOF\n$X text\nEOF"
        elif kind < 0.6:
            command += random.choice((" | tee log", " > log 2>&1", " &", "; echo", "  # why"))
        lines.append(command)
    return Source("run.sh", ("\n".join(lines) + "\n").replace("\n", end).encode())


def values(source: Source) -> list[list[str]]:
    """The words of each command and array, as they are written; those inside of `$( … )` are a part of one."""
    return [
        [source.slice(word.span) for word in words]
        for command in read_shell(source).commands
        if not command.inside("substitution")
        for words in (command.words, *(one.array or () for one in command.assignments))
    ]


def commands_with_words(source: Source) -> list[Command]:
    commands = read_shell(source).commands
    return [command for command in commands if len(command.words) > 1 and not command.inside("substitution")]


def assert_undone(source: Source, edits: list[Edit]) -> Source:
    after = applied(source, edits)
    assert applied(after, undoing(edits, source)).data == source.data
    return after


@SETTLED
@given(SEEDS)
def test_only_the_word_is_replaced(seed: int) -> None:
    random = Random(seed)
    source = script_of(random)
    commands = commands_with_words(source)
    if not commands:
        return
    word = random.choice(random.choice(commands).words[1:])
    text = random.choice(TEXTS)
    if source.slice(word.span) == '"${Y[@]}"':
        with pytest.raises(CannotEditError):
            replace_word(source, word.span, text)
        return
    after = assert_undone(source, replace_word(source, word.span, text))
    old, new = values(source), values(after)
    assert [len(row) for row in old] == [len(row) for row in new]
    changed = [pair for pair in zip(chain(*old), chain(*new), strict=True) if pair[0] != pair[1]]
    assert len(changed) <= 1
    found = [
        one for command in read_shell(after).commands for one in command.words if one.span.start == word.span.start
    ]
    if text not in ("$V", '"x"'):
        assert text in [one.literal for one in found]


@SETTLED
@given(SEEDS)
def test_only_the_words_named_are_taken_out(seed: int) -> None:
    random = Random(seed)
    source = script_of(random)
    commands = commands_with_words(source)
    if not commands:
        return
    command = random.choice(commands)
    index = random.randrange(1, len(command.words))
    word = command.words[index]
    try:
        edits = delete_words(source, word.span)
    except CannotEditError:
        assert word.literal is None
        return
    after = assert_undone(source, edits)
    before = list(chain(*values(source)))
    before.remove(source.slice(word.span))
    assert sorted(chain(*values(after))) == sorted(before)


@SETTLED
@given(SEEDS)
def test_a_further_word_comes_behind_the_one_named(seed: int) -> None:
    random = Random(seed)
    source = script_of(random)
    commands = commands_with_words(source)
    if not commands:
        return
    word = random.choice(random.choice(commands).words)
    after = assert_undone(source, insert_word(source, word.span, "--new 1"))
    flat = list(chain(*values(after)))
    assert len(flat) == len(list(chain(*values(source)))) + 2
    assert flat[flat.index("--new") + 1] == "1"


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.integers(0, 200), st.integers(0, 20))
def test_no_place_gives_anything_but_edits_or_a_reason(seed: int, start: int, length: int) -> None:
    random = Random(seed)
    source = script_of(random)
    span = Span(min(start, len(source.data)), min(start + length, len(source.data)))
    for change in (
        lambda: replace_word(source, span, random.choice(TEXTS)),
        lambda: delete_words(source, span),
        lambda: insert_word(source, span, random.choice(TEXTS), random.random() < 0.5),
    ):
        try:
            assert_undone(source, change())
        except CannotEditError:
            continue


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_can_still_read_the_script() -> None:
    for seed in range(40):
        random = Random(seed)
        source = script_of(random)
        commands = commands_with_words(source)
        if not commands or b"\r" in source.data:
            continue
        word = random.choice(random.choice(commands).words[1:])
        edits: list[list[Edit]] = []
        with suppress(CannotEditError):
            edits.append(insert_word(source, word.span, "--new 1"))
            edits.append(delete_words(source, word.span))
            edits.append(replace_word(source, word.span, random.choice(TEXTS)))
        for each in edits:
            data = applied(source, each).data
            outcome = subprocess.run(["bash", "-n"], input=data, capture_output=True, check=False)
            assert not outcome.stderr, data.decode()

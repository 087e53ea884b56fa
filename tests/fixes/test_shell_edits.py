"""Edits of shell scripts, one case each."""

from __future__ import annotations

import pytest

from dslint.documents.source import Source, Span
from dslint.fixes.edit import CannotEditError, Edit, applied
from dslint.fixes.shell_words.edits import delete_words, insert_word, replace_word

COMMAND = "deepspeed --num_gpus 8 train.py \\\n    --a 1 \\\n    --b=2 \\\n    --c  # x\n"


def at(text: str, piece: str) -> tuple[Source, Span]:
    data = text.encode()
    start = data.index(piece.encode())
    return Source("run.sh", data), Span(start, start + len(piece.encode()))


def after(source: Source, edits: list[Edit]) -> str:
    return applied(source, edits).data.decode()


@pytest.mark.parametrize(
    ("text", "piece", "new", "expected"),
    [
        (COMMAND, "8", "16", COMMAND.replace("8", "16")),
        (COMMAND, "2", "a b", COMMAND.replace("2", "'a b'")),
        (COMMAND, "2", "'a b'", COMMAND.replace("2", "'a b'")),
        (COMMAND, "2", '{"a":1}', COMMAND.replace("2", "'{\"a\":1}'")),
        (COMMAND, "--num_gpus 8", "--num_gpus $N", COMMAND.replace("8", "$N")),
        ('a "x y" $Z', "x", 'q"', 'a "q\\" y" $Z'),
        ("a 'x y'", "x", "it's", "a 'it'\\''s y'"),
        ("a $'x y'", "x", "it's", "a $'it\\'s y'"),
        ("a ${Y:-8} $Z", "8", "9 1", "a ${Y:-'9 1'} $Z"),
        ("export A=8\r\n", "A=8", "A=9", "export A=9\r\n"),
        ("x=$(foo --b 8)\n", "8", "9", "x=$(foo --b 9)\n"),
        ("#SBATCH --nodes=2\nfoo", "2", "4", "#SBATCH --nodes=4\nfoo"),
    ],
)
def test_a_word_is_replaced_with_the_quotes_it_needs(text: str, piece: str, new: str, expected: str) -> None:
    source, span = at(text, piece)
    assert after(source, replace_word(source, span, new)) == expected


@pytest.mark.parametrize(
    ("text", "piece", "expected"),
    [
        (COMMAND, "--num_gpus 8", COMMAND.replace(" --num_gpus 8", "")),
        (COMMAND, "--a 1", COMMAND.replace("    --a 1 \\\n", "")),
        (COMMAND, "--c", COMMAND.replace(" \\\n    --c", "")),
        ("f \\\r\n  --a 1 \\\r\n  --b\r\n", "--b", "f \\\r\n  --a 1\r\n"),
        ("A=(\n  --x 8  # c\n  --y\n)\n", "--x 8", "A=(\n  --y\n)\n"),
        ("A='--x 8 --y'\n", "--x 8", "A='--y'\n"),
        ('A="--x 8 \\\n --y"\n', "--y", 'A="--x 8"\n'),
        ("export A=8  # c\nfoo\n", "A=8", "foo\n"),
        ("A=8 foo\n", "A=8", "foo\n"),
        ("foo a --x 8 | tee b <<EOF\nx\nEOF\n", "--x 8", "foo a | tee b <<EOF\nx\nEOF\n"),
        ("#SBATCH --nodes=2\nfoo", "#SBATCH --nodes=2", "foo"),
    ],
)
def test_an_option_goes_with_its_blank_or_its_line(text: str, piece: str, expected: str) -> None:
    source, span = at(text, piece)
    assert after(source, delete_words(source, span)) == expected


@pytest.mark.parametrize(
    ("text", "piece", "new", "expected"),
    [
        (COMMAND, "--a 1", "--d a b", COMMAND.replace("--a 1 \\\n", "--a 1 \\\n    --d 'a b' \\\n")),
        (COMMAND, "8", "--d", COMMAND.replace("8", "8 --d")),
        ('foo "${A[@]}"', "${A[@]}", "--d $X", 'foo "${A[@]}" --d $X'),
        ("A=(\n  --x 8\n)\n", "8", "--z 1", "A=(\n  --x 8\n  --z 1\n)\n"),
        ("foo \\\r\n  --x 8\r\n", "8", "--z 1", "foo \\\r\n  --x 8 \\\r\n  --z 1\r\n"),
        ('A="--x 8"\n', "8", "--z 1", 'A="--x 8 --z 1"\n'),
    ],
)
def test_an_option_comes_in_as_its_neighbour_stands(text: str, piece: str, new: str, expected: str) -> None:
    source, span = at(text, piece)
    assert after(source, insert_word(source, span, new)) == expected


@pytest.mark.parametrize(
    ("text", "piece"), [("foo $A", "$A"), ('foo "${A[@]}"', "${A[@]}"), ("foo --x=8", "8"), ("# foo", "foo")]
)
def test_what_may_hold_more_or_less_is_not_taken_out(text: str, piece: str) -> None:
    source, span = at(text, piece)
    with pytest.raises(CannotEditError):
        delete_words(source, span)


def test_an_unclosed_quote_is_left_alone() -> None:
    source, span = at("foo 'bar 8\n", "8")
    with pytest.raises(CannotEditError):
        replace_word(source, span, "9")

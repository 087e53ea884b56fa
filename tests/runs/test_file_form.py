"""Facts about the form of a config's text."""

from __future__ import annotations

import pytest

from dslint.documents.config_reader import read_config
from dslint.documents.source import Source
from dslint.lint import facts_of
from dslint.runs.facts import Facts
from dslint.runs.run import Options, Run


def facts(text: str) -> Facts:
    return facts_of(Run(read_config(Source("ds_config.json", text.encode())), None, Options(), None))


@pytest.mark.parametrize(
    ("text", "meant", "is_typed"),
    [
        ('{\n"bf16": {\n"enabled": True,\n"x": 1\n}\n}', True, True),
        ('{\n"memory_breakdown": False\n}', False, False),
        ('{\n"scheduler": None,\n"steps_per_print": 1\n}', None, False),
    ],
)
def test_a_python_word_tells_what_is_meant(text: str, meant: bool | None, is_typed: bool) -> None:
    (item,) = facts(text).value("file.python_words")
    assert item.fields["meant"] is meant
    assert item.fields["is_typed"] is is_typed


def test_a_python_word_knows_the_place_of_its_key() -> None:
    run = facts('{\n"memory_breakdown": True\n}')
    (item,) = run.value("file.python_words")
    assert item.source.slice(item.fields["place"]) == '"memory_breakdown"'


def test_a_key_that_stands_twice_knows_its_first_place() -> None:
    run = facts('{"train_batch_size": 1, "train_batch_size": 2}')
    (item,) = run.value("file.duplicates")
    assert item.source.slice(item.fields["first"]) == '"train_batch_size"'
    assert item.fields["first"].start < item.span.start

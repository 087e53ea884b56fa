"""A config written anew is strict JSON with the same values."""

from __future__ import annotations

import json

import pytest

from dslint.documents.config_reader import read_config
from dslint.documents.source import Source
from dslint.fixes.edit import CannotEditError, applied
from dslint.fixes.json_text.plainly import written_anew


def anew(text: str) -> str:
    document = read_config(Source("ds.json", text.encode()))
    return applied(document.source, written_anew(document)).data.decode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{\n    "a": 1, // one\n}', '{\n    "a": 1\n}\n'),
        ("a: 1\nb: text\n", '{\n  "a": 1,\n  "b": "text"\n}\n'),
        ('{\r\n\t"a": 1,\r\n}\r\n', '{\r\n\t"a": 1\r\n}\r\n'),
        ('\ufeff{"a": "ä"}', '{\n  "a": "ä"\n}\n'),
    ],
)
def test_the_values_stay_and_everything_else_is_plain(text: str, expected: str) -> None:
    assert anew(text) == expected
    assert json.loads(anew(text)) == read_config(Source("ds.json", text.encode())).value


@pytest.mark.parametrize("text", ['{"a": ', '{"stage": ZERO_STAGE,\n"a": 1}'])
def test_what_can_not_be_read_is_left_alone(text: str) -> None:
    with pytest.raises(CannotEditError):
        anew(text)

"""The config reader gives DeepSpeed's own value, and a span for every key and value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dslint.documents.config_reader import read_config
from dslint.documents.document import Document
from dslint.documents.source import Source

hjson = pytest.importorskip("hjson")


def read(text: str) -> Document:
    return read_config(Source("ds_config.json", text.encode()))


def as_deepspeed_reads(text: str) -> Any:
    """The value of `hjson.loads`, or the exception's class."""
    try:
        return hjson.loads(text.replace("\r\n", "\n").replace("\r", "\n"))
    except (ValueError, IndexError, OverflowError, RecursionError) as error:
        return type(error)


def assert_same_as_deepspeed(text: str) -> None:
    expected = as_deepspeed_reads(text)
    document = read(text)
    if isinstance(expected, type):
        assert document.value is None, (text, document.value)
        assert document.problem is not None or document.placeholders
    else:
        assert document.problem is None, (text, document.problem, expected)
        assert document.value == expected
        assert same_types(document.value, expected), (document.value, expected)


def same_types(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, dict):
        return all(same_types(mine[key], theirs[key]) for key in mine)
    if isinstance(mine, list):
        return all(map(same_types, mine, theirs))
    return type(mine) is type(theirs)


PIECES = st.sampled_from(
    ["{", "}", "[", "]", ",", ":", '"a"', "'b'", "key", "true", "false", "null", "True", "1", "-2.5", "5e8",
     "1e12", "0x1", "01", "#c", "//c", "/* c */", "/*", "'''", "\n", " ", "\t", '"\\u00e4"', '"\\ud83d\\ude00"',
     '"\\q"', "ZERO_STAGE", "nulls", "1 2", "é", "-", "\r\n", "\ufeff"]
)  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(st.lists(PIECES, max_size=14).map("".join))
def test_any_text_of_config_pieces_reads_as_hjson_does(text: str) -> None:
    assert_same_as_deepspeed(text)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=8).map("".join))
def test_any_value_of_config_pieces_reads_as_hjson_does(text: str) -> None:
    assert_same_as_deepspeed('{\n  "key": ' + text + "\n}\n")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.text(), VALUES, max_size=5), st.sampled_from([None, 2, "\t"]), st.booleans())
def test_generated_json_reads_as_hjson_does_and_spans_cover_the_text(
    value: dict[str, Any], indent: int | str | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    assert_same_as_deepspeed(text)
    assert_spans_cover_their_text(read(text), value)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text(), VALUES, max_size=5))
def test_generated_hjson_reads_as_hjson_does(value: dict[str, Any]) -> None:
    text = hjson.dumps(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    assert_same_as_deepspeed(text)


def assert_spans_cover_their_text(document: Document, value: Any) -> None:
    source = document.source
    for path, span in document.keys.items():
        assert json.loads(source.slice(span)) == path[-1]
    for path, span in document.values.items():
        part = value
        for step in path:
            part = part[step]
        assert json.loads(source.slice(span)) == part


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": 1 // note\n}', "a comment"),
        ('{"a": 1, # note\n "b": 2}', "a comment"),
        ('{"a": 1,\n}', "a trailing comma"),
        ('{"a": [1, 2,]}', "a trailing comma"),
        ("{'a': 1}", "single quotes"),
        ("{a: 1}", "text that is not plain JSON"),
        ("", "an empty text"),
    ],
)
def test_text_that_only_deepspeed_accepts_is_marked_as_not_strict(text: str, why: str) -> None:
    document = read(text)
    assert document.problem is None
    assert document.not_strict is not None
    assert document.not_strict.message == why


def test_strict_json_is_not_marked() -> None:
    assert read('{"a": [1, 2.5, "x", null, true]}').not_strict is None


def test_duplicate_keys_keep_both_places_and_the_last_value() -> None:
    document = read('{"a": {"x": 1}, "a": {"y": 2}}')
    (duplicate,) = document.duplicates
    assert duplicate.path == ("a",)
    assert (duplicate.first.start, duplicate.second.start) == (1, 16)
    assert document.value == {"a": {"y": 2}}
    assert ("a", "x") not in document.values


@pytest.mark.parametrize(
    "text",
    [
        '{"zero_optimization": {"stage": ZERO_STAGE,\n "x": 1}}',
        '{"stage": ${zero_stage},\n}',
        '{"stage": {{ stage }},\n}',
        '{"stage": "${STAGE}"}',
        '{"stage": CL_1st_MIN\n}',
        '{"stage": <stage>\n}',
    ],
)
def test_a_template_is_recognised_by_its_placeholders(text: str) -> None:
    document = read(text)
    assert len(document.placeholders) == 1
    assert document.problem is None


@pytest.mark.parametrize("text", ['{"a": True,\n}', '{"a": "STAGE_X"}', '{"a": NaN\n}', '{"a": cpu\n}'])
def test_a_plain_word_is_no_placeholder(text: str) -> None:
    assert read(text).placeholders == ()


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_nesting_without_end_is_a_syntax_problem(opening: str) -> None:
    problem = read(opening * 100_000).problem
    assert problem is not None
    assert "nested more than" in problem.message


def test_columns_count_characters_and_lines_count_all_line_ends() -> None:
    source = Source("x.json", '{\r\n  "é": "ü", "b": 1\r\n}'.encode())
    document = read_config(source)
    place = source.place(document.keys[("b",)].start)
    assert (place.line, place.column) == (2, 13)
    assert source.slice(document.values[("b",)]) == "1"

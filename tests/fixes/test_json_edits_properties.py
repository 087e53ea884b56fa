"""Edits of configs in random styles change what was asked and nothing else."""

from __future__ import annotations

import contextlib
import copy
import re
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dslint.documents.config_reader import read_config
from dslint.documents.document import Document, NodePath
from dslint.documents.source import Source, Span
from dslint.fixes.edit import CannotEditError, Edit, applied, undoing
from dslint.fixes.json_text.edits import delete_key, move_key, rename_key, set_key
from tests.fixes.json_texts import TidyText, WildText, random_config, random_look

NEW_VALUES = (
    True,
    None,
    3,
    1e-05,
    2.5,
    "cpu",
    'it\'s "new"',
    [1, "two"],
    [],
    {},
    {"a": {"b": [0.9, 1]}, "c d": "x"},
)


def read(text: str) -> Document:
    return read_config(Source("ds_config.json", text.encode()))


def tidy_document(random: Random) -> Document:
    config = random_config(random)
    document = read(TidyText(random, random_look(random)).written(config))
    if document.value is None:  # a text without braces that holds but a comment behind a byte order mark, say
        return read("{}")
    assert document.value == config
    return document


def wild_document(random: Random) -> Document:
    document = read(WildText(random).written())
    return read("{}") if document.value is None or not isinstance(document.value, dict) else document


SEEDS = st.integers(0, 2**32)
WRITERS = pytest.mark.parametrize("write", [tidy_document, wild_document])


def paths_of_objects(value: Any, path: NodePath = ()) -> list[NodePath]:
    found = [path] if isinstance(value, dict) else []
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, child in children:
        found += paths_of_objects(child, (*path, step))
    return found


def at(value: Any, path: NodePath) -> Any:
    for step in path:
        value = value[step]
    return value


def shown(value: Any) -> str:
    """A form in which two values are equal if kinds, order and all are, and 1.0 is 1."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key!r}:{shown(child)}" for key, child in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(shown, value)) + "]"
    return repr(int(value) if isinstance(value, float) and value.is_integer() else value)


def comments_outside(document: Document, *spans: Span) -> list[str]:
    data = document.source.data
    return [
        match.group().decode()
        for match in re.finditer(rb"note-\d+-", data)
        if not any(span.start <= match.start() < span.end for span in spans)
    ]


def checked(document: Document, edits: list[Edit], expected: Any, *gone: Span) -> Document:
    """What all edits must keep; gives the document after them."""
    after = read_config(applied(document.source, edits))
    assert shown(after.value) == shown(expected), (document.source.text, after.source.text)
    assert applied(after.source, undoing(edits, document.source)).data == document.source.data
    assert comments_outside(document, *gone) == comments_outside(after), after.source.text
    if b"\r" in document.source.data:
        assert b"\n" not in after.source.data.replace(b"\r\n", b"")
    if document.not_strict is None:
        assert after.not_strict is None
    return after


def a_key(document: Document, random: Random) -> NodePath | None:
    return random.choice(sorted(document.keys, key=repr)) if document.keys else None


@WRITERS
@settings(max_examples=200, deadline=None)
@given(seed=SEEDS)
def test_setting_a_key_that_is_there_changes_only_the_bytes_of_its_value(write: Any, seed: int) -> None:
    random = Random(seed)
    document = write(random)
    path = a_key(document, random)
    if path is None:
        return
    value = random.choice(NEW_VALUES)
    edits = set_key(document, path, value)
    expected = copy.deepcopy(document.value)
    at(expected, path[:-1])[path[-1]] = value
    span = document.values[path]
    assert all(span.start <= edit.span.start and edit.span.end <= span.end for edit in edits)
    checked(document, edits, expected, *([span] if edits else []))


@WRITERS
@settings(max_examples=200, deadline=None)
@given(seed=SEEDS)
def test_a_new_key_comes_last_in_its_section_and_nothing_is_taken_away(write: Any, seed: int) -> None:
    random = Random(seed)
    document = write(random)
    section = random.choice(paths_of_objects(document.value))
    rest = random.choice((("new_key",), ("new section", "new_key")))
    value = random.choice(NEW_VALUES)
    expected = copy.deepcopy(document.value)
    at(expected, section)[rest[0]] = {rest[1]: value} if len(rest) == 2 else value
    edits = set_key(document, (*section, *rest), value)
    assert all(not document.source.slice(edit.span).strip() for edit in edits)
    checked(document, edits, expected)


@WRITERS
@settings(max_examples=200, deadline=None)
@given(seed=SEEDS)
def test_deleting_a_key_leaves_all_others_and_the_comments_on_other_lines(write: Any, seed: int) -> None:
    random = Random(seed)
    document = write(random)
    path = a_key(document, random)
    if path is None:
        return
    edits = delete_key(document, path)
    expected = copy.deepcopy(document.value)
    del at(expected, path[:-1])[path[-1]]
    after = read_config(applied(document.source, edits))
    kept = comments_outside(document, Span(document.keys[path].start, end_of_line(document, path)))
    assert set(kept) <= set(comments_outside(after)), (document.source.text, after.source.text)
    gone = set(comments_outside(document)) - set(comments_outside(after))
    checked(document, edits, expected, *(span_of(document, note) for note in gone))


def end_of_line(document: Document, path: NodePath) -> int:
    """Where the line on which a value and its comma end is over, a comment that starts on it included."""
    data = document.source.data
    match = re.compile(rb"(?:[ \t]+|,|/\*.*?\*/)*[^\r\n]*", re.DOTALL).match(data, document.values[path].end)
    assert match is not None
    return match.end()


def span_of(document: Document, note: str) -> Span:
    start = document.source.data.index(note.encode())
    return Span(start, start + len(note))


@WRITERS
@settings(max_examples=150, deadline=None)
@given(seed=SEEDS)
def test_renaming_a_key_changes_only_the_bytes_of_the_key(write: Any, seed: int) -> None:
    random = Random(seed)
    document = write(random)
    path = a_key(document, random)
    if path is None:
        return
    name = random.choice(("new_name", "new name", "it's", 'a "b"', "ü"))
    edits = rename_key(document, path, name)
    expected = copy.deepcopy(document.value)
    section = at(expected, path[:-1])
    entries = [(name if key == path[-1] else key, value) for key, value in section.items()]
    section.clear()
    section.update(entries)
    span = document.keys[path]
    assert [edit for edit in edits if not span.start == edit.span.start <= edit.span.end <= span.end] == []
    checked(document, edits, expected)


@WRITERS
@settings(max_examples=200, deadline=None)
@given(seed=SEEDS)
def test_moving_a_key_keeps_its_value_and_all_other_keys(write: Any, seed: int) -> None:
    random = Random(seed)
    document = write(random)
    path = a_key(document, random)
    if path is None:
        return
    section = random.choice([one for one in paths_of_objects(document.value) if one[: len(path)] != path])
    to = (*section, *random.choice((("new_key",), ("new section", "new_key"))))
    if to[:-1] == path[:-1]:
        return
    edits = move_key(document, path, to)
    expected = copy.deepcopy(document.value)
    value = at(expected, path[:-1]).pop(path[-1])
    for step in to[len(section) : -1]:
        at(expected, section)[step] = {}
    at(expected, to[:-1])[to[-1]] = value
    after = read_config(applied(document.source, edits))
    kept = comments_outside(document, Span(document.keys[path].start, end_of_line(document, path)))
    assert set(kept) <= set(comments_outside(after)), (document.source.text, after.source.text)
    assert shown(after.value) == shown(expected)
    assert applied(after.source, undoing(edits, document.source)).data == document.source.data


@settings(max_examples=200, deadline=None)
@given(seed=SEEDS)
def test_of_a_key_that_stands_twice_either_one_can_be_taken_out(seed: int) -> None:
    random = Random(seed)
    document = read(WildText(random, doubles=True).written())
    for double in document.duplicates:
        without_first = read_config(applied(document.source, delete_key(document, double.path, double.first)))
        assert without_first.value == document.value
        assert len(without_first.duplicates) < len(document.duplicates)
        without_second = read_config(applied(document.source, delete_key(document, double.path, double.second)))
        assert without_second.problem is None
        assert len(without_second.duplicates) < len(document.duplicates)


@settings(max_examples=150, deadline=None)
@given(seed=SEEDS)
def test_without_a_place_all_keys_of_that_name_are_taken_out(seed: int) -> None:
    document = read(WildText(Random(seed), doubles=True).written())
    for path in {double.path for double in document.duplicates} & set(document.keys):
        after = read_config(applied(document.source, delete_key(document, path)))
        assert after.problem is None
        assert path not in after.values


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)
BASES = st.sampled_from(
    [
        '{"a": 1}',
        "{'a': 'x'}",
        "{a: 1\n}",
        "a: 1\nb: text\n",
        '{\r\n\t"a": {},\r\n\t"b": []\r\n}',
        "{}",
        "",
        '{"a": t }\n}',
    ]
)


@settings(max_examples=300, deadline=None)
@given(BASES, VALUES, st.sampled_from([("a",), ("new",), ("b", "new"), ("a", "b", "c")]))
def test_any_plain_value_is_read_back_as_it_was_set(text: str, value: Any, path: NodePath) -> None:
    document = read(text)
    after = read_config(applied(document.source, set_key(document, path, value)))
    assert at(after.value, path) == value


PIECES = st.sampled_from(
    ["{", "}", "[", "]", ",", ":", '"a"', "'b'", "key", "true", "null", "True,", "1", "-2.5", "#c", "//c", "/* c */",
     "/*", "'''", "\n", " ", "\t", '"\\u00e4"', "ZERO_STAGE", "1 2", "é", "\r\n", "\r", "\ufeff", "${x}", '{"a": 1}']
)  # fmt: skip
PATHS = st.lists(st.sampled_from(["a", "b", "key", 0, 1, -1, ""]), max_size=3).map(tuple)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=14).map("".join), PATHS, PATHS, VALUES)
def test_a_text_of_any_pieces_is_edited_or_refused(text: str, path: NodePath, to: NodePath, value: Any) -> None:
    document = read(text)
    for edit in (
        lambda: set_key(document, path, value),
        lambda: delete_key(document, path),
        lambda: delete_key(document, path, Span(0, 3)),
        lambda: rename_key(document, path, "new"),
        lambda: move_key(document, path, to),
    ):
        with contextlib.suppress(CannotEditError):
            assert read_config(applied(document.source, edit())).problem is None

"""Edits of JSON and Hjson look like what stands around them, and leave the rest as it is."""

from __future__ import annotations

from typing import Any

import pytest

from dslint.documents.config_reader import read_config
from dslint.documents.document import Document, NodePath
from dslint.documents.source import Source, read_source
from dslint.fixes.edit import CannotEditError, Edit, applied, undoing
from dslint.fixes.json_text.edits import delete_key, move_key, rename_key, set_key
from tests.realworld.corpus import CONFIGS


def read(text: str) -> Document:
    return read_config(Source("ds_config.json", text.encode()))


def text_after(document: Document, edits: list[Edit]) -> str:
    return applied(document.source, edits).data.decode()


def set_in(text: str, path: str, value: Any) -> str:
    document = read(text)
    return text_after(document, set_key(document, tuple(path.split(".")), value))


def deleted_in(text: str, path: str) -> str:
    document = read(text)
    return text_after(document, delete_key(document, tuple(path.split("."))))


def renamed_in(text: str, path: str, name: str) -> str:
    document = read(text)
    return text_after(document, rename_key(document, tuple(path.split(".")), name))


def moved_in(text: str, path: str, to: str) -> str:
    document = read(text)
    return text_after(document, move_key(document, tuple(path.split(".")), tuple(to.split("."))))


@pytest.mark.parametrize(
    ("text", "value", "after"),
    [
        ('{"a": 1}', 2, '{"a": 2}'),
        ('{"a" : 5e8 , "b": 5e8}', 1e-05, '{"a" : 1e-05 , "b": 5e8}'),
        ('{"a": 1 // one\n}', None, '{"a": null // one\n}'),
        ("{'a': 'x'}", "it's", "{'a': 'it\\'s'}"),
        ("a: text\nb: 1\n", False, "a: false\nb: 1\n"),
        ("{a: 'x' b: 2}", 3, "{a: 3, b: 2}"),
        ("{\n  a:\n    '''\n    some\n    text\n    '''\n  b: 1\n}", "x", '{\n  a:\n    "x"\n  b: 1\n}'),
        ('{"a": [1, 2]}', [3], '{"a": [3]}'),
        ('{\n  "a": {\n    "b": 1\n  }\n}', {"c": 2}, '{\n  "a": {\n    "c": 2\n  }\n}'),
        ('\ufeff{"a": "auto"}', True, '\ufeff{"a": true}'),
        ('{"a": "ä", "b": "ö"}', "ü", '{"a": "ü", "b": "ö"}'),
    ],
)
def test_a_value_is_replaced_by_itself(text: str, value: Any, after: str) -> None:
    assert set_in(text, "a", value) == after


@pytest.mark.parametrize(
    ("written", "after"),
    [
        ("True,", "true,"),
        ("True , // on", "true , // on"),
        ("True // on, I think", "true // on, I think"),
        ("True /* on */", "true /* on */"),
        ("https://example.org", "true"),
        ("True /* not closed", "true"),
        ("some text, and more", "true"),
    ],
)
def test_a_comma_or_comment_that_hjson_takes_for_a_part_of_the_text_stays(written: str, after: str) -> None:
    text = '{\n  "a": %s\n  "b": 1\n}\n'
    assert set_in(text % written, "a", True) == text % after


def test_a_value_that_is_there_already_needs_no_edit() -> None:
    assert set_key(read('{"a": 500000000}'), ("a",), 500000000) == []
    assert set_key(read('{"a": 5e-1}'), ("a",), 0.5) == []
    assert set_key(read('{"a": 1}'), ("a",), True) != []


def test_a_whole_number_is_written_out_where_strict_json_reads_a_fraction() -> None:
    """Hjson reads 5e8 as 500000000, Hugging Face's reader as 500000000.0, which is no number of steps."""
    assert set_in('{"a": 5e8}', "a", 500000000) == '{"a": 500000000}'
    assert set_in('{"a": 100.0}', "a", 100) == '{"a": 100}'


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("", '{\n  "new": 1\n}\n'),
        ("\n", '{\n  "new": 1\n}\n'),
        ("# only a note\n", '# only a note\n{\n  "new": 1\n}\n'),
        ("{}", '{\n  "new": 1\n}'),
        ("{ }\n", '{\n  "new": 1\n}\n'),
        ("{\n\n}\n", '{\n  "new": 1\n}\n'),
        ("{\n  // note\n}\n", '{\n  // note\n  "new": 1\n}\n'),
        ("{ /* note */ }", '{ /* note */\n  "new": 1\n}'),
        ('{"a":1}', '{"a":1,"new":1}'),
        ('{ "a" : 1 }', '{ "a" : 1, "new" : 1 }'),
        ('{"a": 1,}', '{"a": 1, "new": 1,}'),
        ('{\n\t"a": 1\n}\n', '{\n\t"a": 1,\n\t"new": 1\n}\n'),
        ('{\r\n    "a": 1\r\n}', '{\r\n    "a": 1,\r\n    "new": 1\r\n}'),
        ('{\n  "a": 1, // one\n  "b": 2 // two\n}', '{\n  "a": 1, // one\n  "b": 2, // two\n  "new": 1\n}'),
        ('{\n  "a": 1, // one\n  # below\n}', '{\n  "a": 1, // one\n  "new": 1,\n  # below\n}'),
        ('{\n  "a": 1,\n  "b": 2 }', '{\n  "a": 1,\n  "b": 2,\n  "new": 1 }'),
        ('{\n  "a": 1, "b": 2\n}', '{\n  "a": 1, "b": 2, "new": 1\n}'),
        ("{\n  'a': 1\n}", "{\n  'a': 1,\n  'new': 1\n}"),
        ("{\n  a: 1\n  b: text, and more\n}", "{\n  a: 1\n  b: text, and more\n  new: 1\n}"),
        ("a: 1\nb: text", "a: 1\nb: text\nnew: 1"),
        ("{a: text\n}", "{a: text\n  new: 1\n}"),
        ('{"a": True,\n}', '{"a": True,\n  "new": 1\n}'),
        ('"a": 1, "b": 2', '"a": 1, "b": 2, "new": 1'),
    ],
)  # fmt: skip
def test_a_new_key_is_written_as_its_neighbours_are(text: str, after: str) -> None:
    assert set_in(text, "new", 1) == after


@pytest.mark.parametrize(
    ("text", "after"),
    [
        (
            '{\n    "b": 1\n}',
            '{\n    "b": 1,\n    "a": {\n        "x": {\n            "y": 1\n        }\n    }\n}',
        ),
        ('{"b": 1}', '{"b": 1, "a": {"x": {"y": 1}}}'),
        ('{\n  "b": {"c": 1},\n}', '{\n  "b": {"c": 1},\n  "a": {"x": {"y": 1}},\n}'),
        ('{\n  "a": {}\n}', '{\n  "a": {\n    "x": {\n      "y": 1\n    }\n  }\n}'),
        (
            '{\n  "a": true, // on\n  "b": 1\n}',
            '{\n  "a": {\n    "x": {\n      "y": 1\n    }\n  }, // on\n  "b": 1\n}',
        ),
        ('{"a": null}', '{"a": {"x": {"y": 1}}}'),
        ('{"a": []}', '{"a": {"x": {"y": 1}}}'),
        ('{"a": {"x": 0}}', '{"a": {"x": {"y": 1}}}'),
        ("{\n  a: {\n    b: 1\n  }\n}", "{\n  a: {\n    b: 1\n    x: {\n      y: 1\n    }\n  }\n}"),
    ],
)
def test_sections_on_the_way_come_into_being(text: str, after: str) -> None:
    assert set_in(text, "a.x.y", 1) == after


def test_lists_are_written_as_other_lists_of_the_file_are() -> None:
    text = '{\n  "a": [\n    1,\n    2\n  ]\n}'
    assert set_in(text, "b", [3]) == '{\n  "a": [\n    1,\n    2\n  ],\n  "b": [\n    3\n  ]\n}'
    assert set_in('{\n  "a": 1\n}', "b", [3, 4]) == '{\n  "a": 1,\n  "b": [3, 4]\n}'


def test_a_path_may_go_through_lists() -> None:
    document = read('{"a": [{"b": 1}, {"b": 2}]}')
    assert text_after(document, set_key(document, ("a", 1, "b"), 3)) == '{"a": [{"b": 1}, {"b": 3}]}'
    assert text_after(document, delete_key(document, ("a", 0))) == '{"a": [{"b": 2}]}'
    assert text_after(document, rename_key(document, ("a", 0, "b"), "c")) == '{"a": [{"c": 1}, {"b": 2}]}'


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ('{"a": 1}', "{}"),
        ('{\n  "a": 1 // one\n}\n', "{}\n"),
        ('{\n  # above\n  "a": 1 // one\n}\n', "{\n  # above\n}\n"),
        ('{"a": 1, "b": 2}', '{"b": 2}'),
        ('{"b": 2, "a": 1}', '{"b": 2}'),
        ('{"b": 2, "a": 1,}', '{"b": 2,}'),
        ('{"b": 2, "a": 1, "c": 3}', '{"b": 2, "c": 3}'),
        ('{\n  "a": 1,\n  "b": 2\n}', '{\n  "b": 2\n}'),
        ('{\n  "b": 2,\n  "a": 1\n}', '{\n  "b": 2\n}'),
        ('{\r\n\t"b": 2,\r\n\t"a": 1\r\n}\r\n', '{\r\n\t"b": 2\r\n}\r\n'),
        ('{\n  "b": 2, // two\n  "a": 1 // one\n  // below\n}', '{\n  "b": 2 // two\n  // below\n}'),
        ('{\n  // above\n  "a": 1, // one\n  "b": 2\n}', '{\n  // above\n  "b": 2\n}'),
        ('{\n  "a": {\n    "c": 1 // one\n  }, // a\n  "b": 2\n}', '{\n  "b": 2\n}'),
        ('{\n  "b": 2,\n  "a": 1 }', '{\n  "b": 2\n  }'),
        ('{\n  "b": 2, "a": 1, // both\n  "c": 3\n}', '{\n  "b": 2, // both\n  "c": 3\n}'),
        ('{\n  "a": 1\n  , "b": 2\n}', '{\n  \n  "b": 2\n}'),
        ("a: text\nb: 1\n", "b: 1\n"),
        ("b: 1\na: text", "b: 1"),
        ("a: text\n", "{}\n"),
        ("{\n  a: True,\n  b: 1\n}", "{\n  b: 1\n}"),
        ("{\n  b: 2\n  a: '''x\n  y'''\n}", "{\n  b: 2\n}"),
    ],
)
def test_a_key_is_taken_out_with_its_comma_and_line(text: str, after: str) -> None:
    assert deleted_in(text, "a") == after


def test_a_section_left_empty_stays() -> None:
    assert deleted_in('{\n  "s": {\n    "a": 1\n  },\n  "b": 2\n}', "s.a") == '{\n  "s": {},\n  "b": 2\n}'


def test_of_two_equal_keys_the_one_meant_is_taken_out() -> None:
    document = read('{\n  "a": {"x": 1},\n  "b": 2,\n  "a": {"y": 1}\n}')
    (double,) = document.duplicates
    assert text_after(document, delete_key(document, ("a",), double.first)) == '{\n  "b": 2,\n  "a": {"y": 1}\n}'
    assert text_after(document, delete_key(document, ("a",), double.second)) == '{\n  "a": {"x": 1},\n  "b": 2\n}'
    assert text_after(document, delete_key(document, ("a",))) == '{\n  "b": 2\n}'


def test_of_two_equal_keys_the_last_gets_the_value() -> None:
    assert set_in('{"a": {"x": 1}, "a": {"y": 1}}', "a.y", 2) == '{"a": {"x": 1}, "a": {"y": 2}}'


@pytest.mark.parametrize(
    ("text", "name", "after"),
    [
        ('{"a" : 1}', "new", '{"new" : 1}'),
        ("{'a': 1}", "it's", "{'it\\'s': 1}"),
        ("a : 1", "new", "new : 1"),
        ("a: 1", "two words", '"two words": 1'),
        ('{"a": 1}', "a", '{"a": 1}'),
    ],
)
def test_a_key_keeps_its_quotes_under_another_name(text: str, name: str, after: str) -> None:
    assert renamed_in(text, "a", name) == after


@pytest.mark.parametrize(
    ("text", "path", "to", "after"),
    [
        ('{"a": 5e8, "s": {"b": 1}}', "a", "s.c", '{"s": {"b": 1, "c": 5e8}}'),
        ('{"a": 5e8, "b": 1}', "a", "c", '{"c": 5e8, "b": 1}'),
        ('{"a": 5e8}', "a", "s.c", '{"s": {"c": 5e8}}'),
        ('{"a": 5e8}', "a", "a.enabled", '{"a": {"enabled": 5e8}}'),
        (
            '{\n  "s": {\n    "a": 1 // one\n  },\n  "b": 2\n}',
            "s.a",
            "a",
            '{\n  "s": {},\n  "b": 2,\n  "a": 1 // one\n}',
        ),
        ("{\n  a: text\n  s: {\n    b: 1\n  }\n}", "a", "s.c", "{\n  s: {\n    b: 1\n    c: text\n  }\n}"),
        ("{\n  a: text\n  s: {b: 1}\n}", "a", "s.c", '{\n  s: {b: 1, c: "text"}\n}'),
        (
            '{\n  "a": [\n    1\n  ],\n  "s": true\n}',
            "a",
            "s.c",
            '{\n  "s": {\n    "c": [\n      1\n    ]\n  }\n}',
        ),
        ('{\n  "a": {\n    "x": 1\n  }\n}', "a", "a.c", '{\n  "a": {\n    "c": {\n      "x": 1\n    }\n  }\n}'),
        (
            '{\n  "a": {\n    "x": 1, // one\n\n    "y": [\n      2\n    ]\n  },\n  "s": {\n    "b": {}\n  }\n}',
            "a",
            "s.b.c",
            '{\n  "s": {\n    "b": {\n      "c": {\n        "x": 1, // one\n\n        "y": [\n          2\n        ]\n      }\n    }\n  }\n}',
        ),
    ],
)
def test_a_key_moves_with_its_value_as_it_is_written(text: str, path: str, to: str, after: str) -> None:
    assert moved_in(text, path, to) == after


@pytest.mark.parametrize(
    ("text", "path", "value", "reason"),
    [
        ('{"a": 1', ("a",), 2, "can't be read"),
        ('{"a": {{ a }} }', ("a",), 2, "template"),
        ("3", ("a",), 2, "no object"),
        ("[1]", ("a",), 2, "no object"),
        ('{"a": [1]}', ("a", 1), 2, "no such item"),
        ('{"a": [1]}', ("a", -1), 2, "no such item"),
        ('{"a": 1}', ("b", 0), 2, "no such item"),
        ('{"a": 1}', (), {}, "whole file"),
        ('{"a": 1}', ("a",), float("nan"), "no number nan"),
        ('{"a": 1}', ("a",), float("inf"), "no number inf"),
        ('{"a": 1}', ("a",), {1, 2}, "no way to write a set"),
        ('{"a": 1}', ("a",), {1: 2}, "must be text"),
        ('{"a": 1}', ("a",), [10**5000], "too large"),
        ('{"a": 1}', tuple("a" * 200), 1, "nested too deeply"),
        ('{"a": ' * 149 + "1" + "}" * 149, tuple("a" * 160), 1, "can't edit safely"),
    ],
)
def test_what_cannot_be_set_is_refused_with_a_reason(text: str, path: NodePath, value: Any, reason: str) -> None:
    with pytest.raises(CannotEditError, match=reason):
        set_key(read(text), path, value)


def test_keys_that_are_not_there_or_in_the_way_are_refused() -> None:
    document = read('{"a": 1, "b": {"c": 2}, "d": 1, "d": 2}')
    with pytest.raises(CannotEditError, match="not there"):
        delete_key(document, ("x",))
    with pytest.raises(CannotEditError, match="not there"):
        rename_key(document, ("b", "x"), "y")
    with pytest.raises(CannotEditError, match='there is a key "b" already'):
        rename_key(document, ("a",), "b")
    with pytest.raises(CannotEditError, match='there is a key "c" already'):
        move_key(document, ("a",), ("b", "c"))
    with pytest.raises(CannotEditError, match="stands twice"):
        rename_key(document, ("d",), "e")


@pytest.mark.corpus
@pytest.mark.skipif(not CONFIGS, reason="no corpus of configs here")
def test_public_configs_can_be_edited() -> None:
    for number, path in enumerate(CONFIGS):
        document = read_config(read_source(path))
        if not isinstance(document.value, dict) or not document.keys:
            continue
        keys = [key for key in document.keys if key not in {double.path for double in document.duplicates}]
        key = keys[number % len(keys)]
        edits = (
            set_key(document, key, {"enabled": True}),
            set_key(document, ("new section", "new key"), [1, 1e-05]),
            delete_key(document, key),
            rename_key(document, key, "new key"),
            move_key(document, key, ("new section", key[-1])),
        )
        for edit in edits:
            after = applied(document.source, edit)
            assert applied(after, undoing(edit, document.source)).data == document.source.data

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dslint.documents.document import Document
from dslint.documents.source import Source
from dslint.documents.yaml_reader import read_yaml
from dslint.fixes.edit import CannotEditError, Edit, applied
from dslint.fixes.yaml_text.edits import delete_key, move_key, rename_key, set_key

CONFIG = """\
# made by hand
compute_environment: LOCAL_MACHINE
deepspeed_config:
  # the larger one
  zero_stage: 3  # was 2
  offload_optimizer_device: 'none'
distributed_type: DEEPSPEED
downcast_bf16: 'no'
"""


def read(text: str) -> Document:
    return read_yaml(Source("accelerate.yaml", text.encode()))


def edited(change: Callable[..., list[Edit]], text: str, *arguments: Any) -> str:
    document = read(text)
    return applied(document.source, change(document, *arguments)).data.decode()


def refusal(change: Callable[..., list[Edit]], text: str, *arguments: Any) -> str:
    with pytest.raises(CannotEditError) as refused:
        change(read(text), *arguments)
    return str(refused.value)


def test_a_value_is_replaced_and_the_comment_behind_it_stays() -> None:
    after = edited(set_key, CONFIG, ("deepspeed_config", "zero_stage"), 2)
    assert after == CONFIG.replace("zero_stage: 3  #", "zero_stage: 2  #")


def test_an_absent_key_comes_last_among_its_siblings() -> None:
    after = edited(set_key, CONFIG, ("deepspeed_config", "gradient_clipping"), 1.0)
    assert after == CONFIG.replace("'none'\n", "'none'\n  gradient_clipping: 1.0\n")


def test_a_section_is_made_where_it_is_absent() -> None:
    after = edited(set_key, CONFIG, ("dynamo_config", "dynamo_backend"), "INDUCTOR")
    assert after == CONFIG + "dynamo_config:\n  dynamo_backend: INDUCTOR\n"


def test_a_value_that_is_there_already_needs_no_edit() -> None:
    assert set_key(read(CONFIG), ("deepspeed_config", "zero_stage"), 3) == []


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("no", "'no'"),
        ("fp16", "fp16"),
        ("y", "'y'"),
        ("1e-5", "'1e-5'"),
        ("16", "'16'"),
        ("None", "'None'"),
        ("", "''"),
        ("a: b", "'a: b'"),
        ("cuda:0", "cuda:0"),
        ("two\nlines", '"two\\nlines"'),
        (1e-05, "1.0e-05"),
        (1e16, "1.0e+16"),
        (float("inf"), ".inf"),
        (True, "true"),
        (None, "null"),
        ([1, "a, b"], "[1, 'a, b']"),
        ({}, "{}"),
    ],
)
def test_values_are_written_so_that_they_read_the_same(value: Any, written: str) -> None:
    assert edited(set_key, "a: 5 # x\n", ("a",), value) == f"a: {written} # x\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('a: "fp16"\n', 'a: "bf16"\n'),
        ("a: 'fp16'\n", "a: 'bf16'\n"),
        ("a: 'no'\n", "a: bf16\n"),
        ("a:\n", "a: bf16\n"),
        ("a: \n", "a: bf16\n"),
        ("a: # x\n", "a: bf16 # x\n"),
        ("a:\t1\t# x\n", "a:\tbf16\t# x\n"),
        ("'a' : 1\n", "'a' : bf16\n"),
        ("a: |  # x\n  one\n\n  two\nb: 1\n", "a: bf16  # x\nb: 1\n"),
        ("a: >-\n  one\nb: 1\n", "a: bf16\nb: 1\n"),
        ("a:\n  'one\n  two' # x\n", "a:\n  'bf16' # x\n"),
        ("a: # x\n  b: 1\n  # y\n  c: 2 # z\nd: 1\n", "a: bf16 # x\nd: 1\n"),
        ("a:\n- 1\n- 2\nd: 1\n", "a: bf16\nd: 1\n"),
        ("{a: 1, b: 2}", "{a: bf16, b: 2}"),
        ('{"a": 1, "b": 2}', '{"a": "bf16", "b": 2}'),
        ("{a, b}", "{a: bf16, b}"),
        ("? a\n: 1\n", "? a\n: bf16\n"),
        ("? a\n? b\n", "? a\n: bf16\n? b\n"),
        ("a: 1\na: 2\n", "a: 1\na: bf16\n"),
        ("--- # x\na: 1\n...\n", "--- # x\na: bf16\n...\n"),
        ("\ufeffa: 1\r\nb: 2\r\n", "\ufeffa: bf16\r\nb: 2\r\n"),
        ("a: &unused 1\n", "a: bf16\n"),
        ("b: &x 1\na: *x\n", "b: &x 1\na: bf16\n"),
        ("b: &x {a: 1}\n<<: *x\n", "b: &x {a: 1}\n<<: *x\na: bf16\n"),
    ],
)
def test_a_value_is_replaced_however_it_is_written(before: str, after: str) -> None:
    assert edited(set_key, before, ("a",), "bf16") == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "s:\n  k: 1\n"),
        ("\ufeff", "\ufeffs:\n  k: 1\n"),
        ("# x", "# x\ns:\n  k: 1\n"),
        ("---\n", "---\ns:\n  k: 1\n"),
        ("---", "---\ns:\n  k: 1\n"),
        ("--- # x\n...\n", "--- # x\ns:\n  k: 1\n...\n"),
        ("--- null # x\n", "---\ns:\n  k: 1 # x\n"),
        ("{}\n", "s:\n  k: 1\n"),
        ("s:\n", "s:\n  k: 1\n"),
        ("s: {}  # x\n", "s:  # x\n  k: 1\n"),
        ("s: ~ # x\n", "s: # x\n  k: 1\n"),
        ("s: 5\nt:\n    u: 1\n", "s:\n    k: 1\nt:\n    u: 1\n"),
        ("s: |\n  text\nt: 1\n", "s:\n  k: 1\nt: 1\n"),
        ("a: 1", "a: 1\ns:\n  k: 1"),
        ("a: 1\r\n", "a: 1\r\ns:\r\n  k: 1\r\n"),
        ("s:\n    a: 1 # x\n\n# y\nt: 1\n", "s:\n    a: 1 # x\n    k: 1\n\n# y\nt: 1\n"),
        ("s:\n  a: |+\n    one\n\nt: 1\n", "s:\n  a: |+\n    one\n\n  k: 1\nt: 1\n"),
        ("s:\n  a:\n  - 1\n  - b: 2\n", "s:\n  a:\n  - 1\n  - b: 2\n  k: 1\n"),
        ("s: {a: 1}\n", "s: {a: 1, k: 1}\n"),
        ("s: { a: 1 }\n", "s: { a: 1, k: 1 }\n"),
        ("s: {a: 1,}\n", "s: {a: 1, k: 1,}\n"),
        ("s: {a: , }\n", "s: {a: , k: 1, }\n"),
        ("s: {\n  a: 1  # x\n}\n", "s: {\n  a: 1,  # x\n  k: 1\n}\n"),
        ("s: {\n\ta: 1,  # x\n}\n", "s: {\n\ta: 1,  # x\n\tk: 1,\n}\n"),
        ('{\n  "a": 1\n}\n', '{\n  "a": 1,\n  "s": {"k": 1}\n}\n'),
        ('"a": 1\n', '"a": 1\n"s":\n  k: 1\n'),
        ("b: [{s: {}}]\ns: &x {}\n", "b: [{s: {}}]\ns:\n  k: 1\n"),
    ],
)
def test_a_key_is_put_in_as_the_file_is_written(before: str, after: str) -> None:
    assert edited(set_key, before, ("s", "k"), 1) == after


def test_paths_may_go_through_lists() -> None:
    text = "runs:\n- a: 1\n  b: 2\n- {a: 3}\n- 4\n"
    assert edited(set_key, text, ("runs", 0, "c"), 5) == text.replace("b: 2\n", "b: 2\n  c: 5\n")
    assert edited(set_key, text, ("runs", 1, "c"), 5) == text.replace("{a: 3}", "{a: 3, c: 5}")
    assert edited(set_key, text, ("runs", 2), 5) == text.replace("- 4", "- 5")
    assert edited(delete_key, text, ("runs", 0, "a")) == text.replace("- a: 1\n  b", "- b")
    assert edited(delete_key, text, ("runs", 1)) == text.replace("- {a: 3}\n", "")


def test_a_comment_between_two_keys_survives() -> None:
    text = "a: 1\n# about b\nb: 2  # two\n# about c\nc: 3\n"
    assert edited(delete_key, text, ("b",)) == "a: 1\n# about b\n# about c\nc: 3\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("k: 1", "{}"),
        ("# x\nk: 1 # y\n# z\n", "# x\n{}\n# z\n"),
        ("a: 1\nk: 2", "a: 1\n"),
        ("k: 1\r\na: 2\r\n", "a: 2\r\n"),
        ("k:\n  b: 1\n  # inside\n# outside\na: 2\n", "# outside\na: 2\n"),
        ("k:\n- 1\n- 2\na: 2\n", "a: 2\n"),
        ("k: |+\n  one\n\n\na: 2\n", "a: 2\n"),
        ("k: {\n  b: 1\n}\na: 2\n", "a: 2\n"),
        ("? k\n: 1\na: 2\n", "a: 2\n"),
        ("a: 1\nk:\n", "a: 1\n"),
        ("k: 1\na: 2\nk: 3\n", "a: 2\n"),
        ("a: >\n  one\nk:\n  # nothing here\n", "a: >\n  one\n"),
        ("---\nk: 1\n...\n", "---\n{}\n...\n"),
        ("{k: 1, a: 2}", "{a: 2}"),
        ("{a: 2, k: 1}", "{a: 2}"),
        ("{a: 2, k: 1,}", "{a: 2,}"),
        ("{ k: 1 }", "{}"),
        ("{\n  k: 1,  # x\n  a: 2\n}", "{\n  a: 2\n}"),
        ("{\n  a: 2,  # x\n  k: 1  # y\n}", "{\n  a: 2  # x\n}"),
        ("{\n  a: 2,  # x\n  k: 1,\n}", "{\n  a: 2,  # x\n}"),
        ("{a: 2, # x\n  k: 1 }", "{a: 2 # x\n   }"),
    ],
)
def test_a_key_is_taken_out_however_it_is_written(before: str, after: str) -> None:
    assert edited(delete_key, before, ("k",)) == after


def test_a_section_that_becomes_empty_stays_as_braces() -> None:
    text = "s: # x\n  k: 1 # y\na: 2\n"
    assert edited(delete_key, text, ("s", "k")) == "s: {} # x\na: 2\n"
    assert edited(delete_key, "s:\n- 1\n", ("s", 0)) == "s: []\n"


def test_of_a_key_that_stands_twice_the_one_that_is_meant_goes() -> None:
    document = read("k: 1\na: 2\nk: 3\n")
    (twice,) = document.duplicates
    first, second = (delete_key(document, ("k",), span) for span in (twice.first, twice.second))
    assert applied(document.source, first).data == b"a: 2\nk: 3\n"
    assert applied(document.source, second).data == b"k: 1\na: 2\n"


@pytest.mark.parametrize(
    ("before", "name", "after"),
    [
        ("k: 1 # x\na: 2\n", "new", "new: 1 # x\na: 2\n"),
        ('"k": 1\n', "new", '"new": 1\n'),
        ("'k' : 1\n", "on", "'on' : 1\n"),
        ("k: 1\n", "on", "'on': 1\n"),
        ("k:\n  b: 1\n", "new", "new:\n  b: 1\n"),
        ('{"k":1}', "new", '{"new":1}'),
        ("{'k':1}", "on", "{'on':1}"),
        ("{a: 1, k}", "x, y", "{a: 1, 'x, y'}"),
        ("? k\n: 1\n", "new", "? new\n: 1\n"),
        ("k: 1\n", "k", "k: 1\n"),
    ],
)
def test_a_key_gets_another_name_at_its_place(before: str, name: str, after: str) -> None:
    assert edited(rename_key, before, ("k",), name) == after


@pytest.mark.parametrize(
    ("before", "to", "after"),
    [
        ("k: 1_000  # why\ns:\n  a: 1\n", ("s", "k"), "s:\n  a: 1\n  k: 1_000  # why\n"),
        ("k: 1\na: 2\n", ("new",), "new: 1\na: 2\n"),
        ("k: 1\na: 2\n", ("s", "k"), "a: 2\ns:\n  k: 1\n"),
        ("k: 1\n", ("k", "type"), "k:\n  type: 1\n"),
        (
            "k:\n    # x\n    b: 1 # y\n\n    c: 2\ns:\n  a: 1\n",
            ("s", "k"),
            "s:\n  a: 1\n  k:\n      # x\n      b: 1 # y\n\n      c: 2\n",
        ),
        ("k: |  # x\n  one\n    two\ns: {}\n", ("s", "k"), "s:\n  k: |  # x\n    one\n      two\n"),
        ("k: 'x'\ns: {a: 1}\n", ("s", "k"), "s: {a: 1, k: 'x'}\n"),
        ("k: a, b\ns: {a: 1}\n", ("s", "k"), "s: {a: 1, k: 'a, b'}\n"),
        ("k:\n  b: 1\ns: {a: 1}\n", ("s", "k"), "s: {a: 1, k: {b: 1}}\n"),
        ("k:\r\n- 1\r\ns:\r\n  a: 1\r\n", ("s", "k"), "s:\r\n  a: 1\r\n  k:\r\n  - 1\r\n"),
    ],
)
def test_a_key_moves_with_its_value_as_written(before: str, to: tuple[str, ...], after: str) -> None:
    assert edited(move_key, before, ("k",), to) == after


def test_a_key_moves_up_out_of_a_section() -> None:
    assert (
        edited(move_key, "s:\n    k: # x\n        b: 1\n    a: 2\n", ("s", "k"), ("k",))
        == "s:\n    a: 2\nk: # x\n    b: 1\n"
    )
    assert edited(move_key, "s:\n  k: 1\n", ("s", "k"), ("k",)) == "s: {}\nk: 1\n"


SHARED = "base: &b\n  k: 1\n  l: &l 2\none: *b\ntwo:\n  <<: *b\n  m: 3\nthree: *l\n"


@pytest.mark.parametrize(
    ("change", "arguments", "reason"),
    [
        (set_key, (("base", "k"), 5), "base is repeated by the alias *b, which would change too"),
        (set_key, (("base",), 5), "base is repeated by the alias *b, which would change too"),
        (set_key, (("one", "k"), 5), "one is an alias (*b): what it repeats stands elsewhere"),
        (set_key, (("two", "l", "x"), 5), "two.l is brought in by a merge key (<<)"),
        (delete_key, (("base",),), "an alias elsewhere repeats what would be taken out"),
        (delete_key, (("two", "k"),), "two.k is brought in by a merge key (<<)"),
        (rename_key, (("two", "k"), "x"), "two.k is brought in by a merge key (<<)"),
        (move_key, (("base", "k"), ("k",)), "base is repeated by the alias *b, which would change too"),
    ],
)
def test_what_an_alias_or_a_merge_shares_is_not_edited(
    change: Callable[..., list[Edit]], arguments: tuple[Any, ...], reason: str
) -> None:
    assert refusal(change, SHARED, *arguments) == reason


def test_beside_aliases_and_merges_edits_are_made() -> None:
    assert edited(set_key, SHARED, ("two", "m"), 4) == SHARED.replace("m: 3", "m: 4")
    assert edited(set_key, SHARED, ("two", "k"), 4) == SHARED.replace("m: 3\n", "m: 3\n  k: 4\n")
    assert edited(set_key, SHARED, ("one",), 4) == SHARED.replace("one: *b", "one: 4")
    assert edited(delete_key, SHARED, ("one",)) == SHARED.replace("one: *b\n", "")
    assert edited(rename_key, SHARED, ("base",), "basis") == SHARED.replace("base:", "basis:")


def test_a_key_that_hides_a_merged_one_is_not_taken_out() -> None:
    text = "base: &b {k: 1}\ntwo:\n  <<: *b\n  k: 2\n"
    assert "can't edit safely" in refusal(delete_key, text, ("two", "k"))


@pytest.mark.parametrize(
    ("change", "text", "arguments", "reason"),
    [
        (
            set_key,
            "a: [",
            (("a",), 1),
            "the file can't be read: not valid YAML: did not find expected node content while parsing a flow node",
        ),
        (set_key, "a: 1\n---\nb: 1\n", (("a",), 2), "the file holds several YAML documents"),
        (set_key, "a: 1\n---\nb: [\n", (("a",), 2), "the file holds several YAML documents"),
        (set_key, "a: 1\n", ((), 2), "it would replace the whole file"),
        (set_key, "a: [1]\n", (("a", "b"), 2), "a is a list"),
        (set_key, "a: [1]\n", (("a", 1), 2), "there is no such item in the list"),
        (set_key, "a: [1]\n", (("b", 0), 2), "there is no such item in the list"),
        (set_key, "just text\n", (("a",), 2), "the file holds no mapping"),
        (set_key, "1: x\n", ((1,), 2), "a key that is no text is not edited"),
        (set_key, "1.5: x\n", (("1.5",), 2), "a key that is no text is not edited"),
        (set_key, "a: 1\n", (("a",), object()), "the new value can't be written as YAML"),
        (set_key, "a: |\n  text", (("b",), 1), "the file ends in a text behind | or > that would get a line end"),
        (delete_key, "a: 1\n", (("b",),), "b is not there"),
        (delete_key, "a: 1\n", ((),), "it would take out the whole file"),
        (rename_key, "a: 1\nb: 2\n", (("a",), "b"), "b is there already"),
        (rename_key, "a: 1\na: 2\n", (("a",), "b"), "a stands there twice"),
        (rename_key, "a: [1]\n", (("a", 0), "b"), "an item of a list has no name"),
        (rename_key, "&x a: *x\n", (("a",), "b"), "the name of a is shared through an alias"),
        (move_key, "a: 1\ns: {a: 2}\n", (("a",), ("s", "a")), "s.a is there already"),
        (
            move_key,
            "a: &x 1\ns: {b: *x}\n",
            (("a",), ("s", "a")),
            "an alias elsewhere repeats what would be taken out",
        ),
        (move_key, "a: 1\n", (("a",), ()), "it would replace the whole file"),
    ],
)
def test_an_edit_that_can_t_be_made_has_a_reason(
    change: Callable[..., list[Edit]], text: str, arguments: tuple[Any, ...], reason: str
) -> None:
    assert refusal(change, text, *arguments) == reason

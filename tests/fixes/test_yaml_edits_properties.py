from __future__ import annotations

import contextlib
import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dslint.documents.document import Document, NodePath
from dslint.documents.source import Source
from dslint.documents.yaml_reader import read_yaml
from dslint.fixes.edit import CannotEditError, Edit, applied, undoing
from dslint.fixes.plain_data import same, with_name, with_value, without
from dslint.fixes.yaml_text.edits import delete_key, move_key, rename_key, set_key
from dslint.fixes.yaml_text.writing import write_inline

NAMES = ("zero_stage", "a", "b c", "no", "stage3", "größe", "on", "x.y", "1")
PLAIN = (
    "3",
    "true",
    "bf16",
    "1.0e-05",
    "~",
    "null",
    "cpu # not a number",
    "auto",
    "a b",
    "'no'",
    '"x: y"',
    "2024-01-01",
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-100, 10**6),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(
        ("no", "fp16", "", "a: b", "# x", "1e-5", "a\nb", " x ", "é😀", "[", "-", "null", "<<", "C:\\x")
    ),
    st.text(max_size=6),
)
SECTIONS = st.dictionaries(st.sampled_from(NAMES), VALUES, min_size=1, max_size=3)
NEW_VALUES = st.one_of(VALUES, SECTIONS, st.lists(VALUES, max_size=3), st.just({}))


class Writer:
    """Writes random YAML the way that people do, in all styles that they have."""

    def __init__(self, choose: random.Random) -> None:
        self.choose = choose
        self.step = choose.choice((1, 2, 2, 4))
        self.comments = choose.random() < 0.6

    def file(self) -> bytes:
        lines = self.mapping("", 0)
        text = self.choose.choice(("", "---\n", "# top\n---\n", "\n")) + "\n".join(lines)
        text += self.choose.choice(("", "\n", "\n", "\n# end\n", "\n...\n", "\n\n"))
        if text.endswith("two: three"):  # the last text would get another line end if more came behind it
            text += "\n"
        text = text.replace("\n", self.choose.choice(("\n", "\n", "\r\n")))
        return (self.choose.choice(("", "", "\ufeff")) + text).encode()

    def mapping(self, indent: str, depth: int) -> list[str]:
        lines: list[str] = []
        for name in self.names():
            lines += self.between(indent)
            lines += self.entry(f"{indent}{self.key(name)}:", indent, depth)
        return lines

    def names(self) -> list[str]:
        return self.choose.sample(NAMES, self.choose.randint(1, 4))

    def between(self, indent: str) -> list[str]:
        if not self.comments or self.choose.random() < 0.7:
            return []
        return self.choose.choice(
            ([""], [f"{indent}# note {self.choose.random()}: 'x"], ["", f"{indent}# it's {{"])
        )

    def comment(self) -> str:
        return (
            self.choose.choice(("  # why: {[", " #", "\t# tab"))
            if self.comments and self.choose.random() < 0.3
            else ""
        )

    def key(self, name: str) -> str:
        if name in ("no", "on", "1") or self.choose.random() < 0.2:
            return self.choose.choice((f"'{name}'", json.dumps(name, ensure_ascii=False)))
        return name

    def entry(self, head: str, indent: str, depth: int) -> list[str]:
        kind = self.choose.choice(("scalar", "scalar", "empty", "text", "flow", "mapping", "list", "below"))
        inner = indent + " " * self.step
        if kind == "scalar" or depth > 2:
            return [f"{head} {self.choose.choice(PLAIN)}{self.comment()}"]
        if kind == "empty":
            return [head + self.comment()]
        if kind == "text":
            mark = self.choose.choice(("|", ">", "|-", ">-"))
            return [f"{head} {mark}{self.comment()}", f"{inner}one", f"{inner}# two: three"]
        if kind == "flow":
            return [f"{head} {self.flow(inner, 0)}{self.comment()}"]
        if kind == "below":
            return [head + self.comment(), f"{inner}'some", f"{inner}text'{self.comment()}"]
        if kind == "mapping":
            return [head + self.comment(), *self.mapping(inner, depth + 1)]
        return [head + self.comment(), *self.items(self.choose.choice((indent, inner)), depth + 1)]

    def items(self, indent: str, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.choose.randint(1, 3)):
            lines += self.between(indent)
            if self.choose.random() < 0.5:
                lines.append(f"{indent}- {self.choose.choice(PLAIN)}{self.comment()}")
            else:
                first, *others = self.mapping(indent + "  ", depth + 1)
                if not first.strip() or "#" in first[: len(indent) + 3]:
                    continue
                lines += [f"{indent}- {first.lstrip()}", *others]
        return lines

    def flow(self, indent: str, depth: int) -> str:
        if depth > 1 or self.choose.random() < 0.4:
            return self.choose.choice(("1", "true", "x y", "'no'", '"a, b"', "{}", "[]", "{ }"))
        if self.choose.random() < 0.3:
            return f"[{', '.join(self.flow(indent, depth + 1) for _ in range(self.choose.randint(1, 3)))}]"
        entries = [f"{self.key(name)}: {self.flow(indent + '  ', depth + 1)}" for name in self.names()]
        return self.braced(entries, indent)

    def braced(self, entries: list[str], indent: str) -> str:
        if self.choose.random() < 0.6:
            return self.choose.choice(("{%s}", "{ %s }", "{%s,}")) % ", ".join(entries)
        last = self.choose.choice(("", ","))
        lines = [
            f"\n{indent}{entry}{',' if entry is not entries[-1] else last}{self.comment()}" for entry in entries
        ]
        return "{" + "".join(lines) + f"\n{indent}}}"


def seeded(seed: int) -> Document:
    document = read_yaml(Source("a.yaml", Writer(random.Random(seed)).file()))
    assume(document.problem is None and isinstance(document.value, dict))
    return document


DOCUMENTS = st.integers(0, 2**32).map(seeded)


def at(document: Document, path: NodePath) -> Any:
    value = document.value
    for name in path:
        value = value[name]
    return value


def paths_where(document: Document, wanted: Callable[[Any], bool]) -> list[NodePath]:
    return sorted((path for path in document.values if path and wanted(at(document, path))), key=repr)


def is_scalar(value: Any) -> bool:
    return not isinstance(value, dict | list)


def names_only(document: Document) -> list[NodePath]:
    return [path for path in paths_where(document, lambda value: True) if isinstance(path[-1], str)]


def checked(document: Document, edits: list[Edit], goal: Any) -> Document:
    """The document after edits that must say what the goal says, and can be undone."""
    after = applied(document.source, edits)
    assert applied(after, undoing(edits, document.source)).data == document.source.data
    read = read_yaml(after)
    assert read.problem is None
    assert same(read.value, goal)
    if "\t" not in after.text and len(after.data) < 250:  # PyYAML's own parser is slow, and strict about tabs
        assert same(yaml.load(after.text.removeprefix("\ufeff"), yaml.SafeLoader), goal)
    return read


def own_comments(document: Document) -> list[str]:
    """The comments on lines of their own, one behind a list's dash included."""
    return sorted(re.findall(r"^[ -]*(# note .*)", document.source.text, re.MULTILINE))


@settings(max_examples=150, deadline=None)
@given(DOCUMENTS, VALUES, st.data())
def test_setting_a_single_value_changes_its_bytes_only(
    document: Document, value: Any, data: st.DataObject
) -> None:
    path = data.draw(st.sampled_from(paths_where(document, is_scalar) or [()]))
    assume(path)
    edits = set_key(document, path, value)
    checked(document, edits, with_value(document.value, path, value))
    span = document.values[path]
    for edit in edits:
        assert span.start <= edit.span.start <= edit.span.end <= max(span.end, span.start + 1)
    assert len(edits) <= 1


@settings(max_examples=150, deadline=None)
@given(DOCUMENTS, NEW_VALUES, st.data())
def test_setting_anything_anywhere_leaves_the_rest_alone(
    document: Document, value: Any, data: st.DataObject
) -> None:
    sections = [(), *paths_where(document, lambda old: not isinstance(old, list))]
    more = data.draw(st.lists(st.sampled_from(NAMES), max_size=2))
    path = (*data.draw(st.sampled_from(sections)), *more)
    assume(
        path
        and not any(
            isinstance(document.values.get(path[:n]) and at(document, path[:n]), list) for n in range(len(path))
        )
    )
    after = checked(document, set_key(document, path, value), with_value(document.value, path, value))
    if not isinstance(document.values.get(path) and at(document, path), dict):
        assert own_comments(after) == own_comments(document)


@settings(max_examples=150, deadline=None)
@given(DOCUMENTS, st.data())
def test_taking_out_leaves_the_rest_alone(document: Document, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(paths_where(document, lambda value: True)))
    after = checked(document, delete_key(document, path), without(document.value, path))
    if is_scalar(at(document, path)) and len(at(document, path[:-1])) > 1:
        assert own_comments(after) == own_comments(document)


@settings(max_examples=150, deadline=None)
@given(DOCUMENTS, st.sampled_from(["new", "off", "a b", "x: y"]), st.data())
def test_renaming_changes_the_bytes_of_the_key_only(document: Document, name: str, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(names_only(document)))
    edits = rename_key(document, path, name)
    checked(document, edits, with_name(document.value, path, name))
    assert [edit.span for edit in edits] == [document.keys[path]]


@settings(max_examples=100, deadline=None)
@given(DOCUMENTS, st.data())
def test_moving_takes_the_value_along(document: Document, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(names_only(document)))
    sections = paths_where(document, lambda value: isinstance(value, dict))
    to = (*data.draw(st.sampled_from([(), *sections])), "moved")
    assume(to[:-1] != path[:-1])
    goal = with_value(without(document.value, path), to, at(document, path)) if to[: len(path)] != path else None
    assume(goal is not None)
    checked(document, move_key(document, path, to), goal)


@settings(max_examples=300, deadline=None)
@given(NEW_VALUES)
@example(1e-05)
@example(1e16)
@example("y")
@pytest.mark.parametrize("loader", [yaml.SafeLoader, yaml.CSafeLoader])
def test_what_is_written_is_read_back(loader: Any, value: Any) -> None:
    assert same(yaml.load(f"a: {write_inline(value)}\n", loader), {"a": value})
    assert same(yaml.load(f"a: {{b: {write_inline(value, flow=True)}}}\n", loader), {"a": {"b": value}})


def everything(document: Document) -> Iterator[Callable[[], list[Edit]]]:
    paths = [*list(document.values)[:6], ("a",), ("b", "a")]
    for path in paths:
        yield lambda path=path: set_key(document, path, "x")
        yield lambda path=path: set_key(document, (*path, "new"), {"y": 1})
        yield lambda path=path: delete_key(document, path)
        yield lambda path=path: delete_key(document, path, document.keys.get(path))
        yield lambda path=path: rename_key(document, path, "new")
        yield lambda path=path: move_key(document, path, ("b", "c"))


PIECES = st.sampled_from(
    [
        "a",
        "b",
        ": ",
        ":",
        "- ",
        "\n",
        "\n  ",
        "\n- ",
        "{",
        "}",
        "[",
        "]",
        ", ",
        "'",
        '"',
        "# c",
        "|",
        ">",
        "&a ",
        "*a",
        "<<: ",
        "? ",
        "!!str ",
        "---",
        "...",
        "\t",
        "\r\n",
        "\r",
        "\x85",
        "1",
        "~",
        "é",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=14).map("".join))
def test_whatever_the_text_edits_are_made_or_refused(text: str) -> None:
    document = read_yaml(Source("a.yaml", text.encode()))
    for change in everything(document):
        edits: list[Edit] = []
        with contextlib.suppress(CannotEditError):
            edits = change()
        after = applied(document.source, edits)
        assert applied(after, undoing(edits, document.source)).data == document.source.data

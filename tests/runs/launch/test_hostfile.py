"""Hostfiles and filters, read as DeepSpeed's launcher reads them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dslint.documents.source import Source
from dslint.runs.launch.hostfile import read_hostfile
from dslint.runs.launch.node_filter import FilterError, read_filter

LINES = [
    "a slots=4",
    "b slots=8 max_slots=8",
    "a  slots=2",
    "# c",
    "",
    "  d slots=1 ",
    "e slots = 4",
    "f",
    "g:4",
    "h slots=x",
]
PIECES = ["a", "b", ":", ",", "@", "0", "1", "3", "-", " ", "x"]


def hostfile(text: str) -> Source:
    return Source("hostfile", text.encode())


def test_hosts_and_slots_in_order() -> None:
    read = read_hostfile(hostfile("# two\nworker-1 slots=8\n\nworker-0\tslots=4 # old\n"))
    assert list(read.slots.items()) == [("worker-1", 8), ("worker-0", 4)]
    assert read.problem is None


@pytest.mark.parametrize(
    ("text", "kind", "marked"),
    [
        ("a slots=4\nb slots = 4\n", "bad entry", "b slots = 4"),
        ("a slots=4\r\n  b\r\n", "bad entry", "b"),
        ("a slots=4\na slots=2\n", "twice", "a slots=2"),
        ("# nothing\n", "empty", ""),
    ],
)
def test_the_first_problem_and_its_place(text: str, kind: str, marked: str) -> None:
    source = hostfile(text)
    problem = read_hostfile(source).problem
    assert problem is not None
    assert (problem.kind, source.slice(problem.span)) == (kind, marked)


def test_filters() -> None:
    assert read_filter("a@b:2,0@b:1") == {"a": (), "b": (0, 1, 2)}


@pytest.mark.parametrize("text", ["a:0-3", "a:", "a:0,", "a:1:2", "a:x"])
def test_filters_that_the_launcher_refuses(text: str) -> None:
    with pytest.raises(FilterError):
        read_filter(text)


@given(st.binary(max_size=60))
@settings(max_examples=100)
def test_any_bytes_are_read(data: bytes) -> None:
    read_hostfile(Source("hostfile", data))


@pytest.mark.deepspeed
@given(st.lists(st.sampled_from(LINES), max_size=4))
@settings(max_examples=100, deadline=None)
def test_hostfiles_as_deepspeed_reads_them(lines: list[str]) -> None:
    runner = pytest.importorskip("deepspeed.launcher.runner")
    read = read_hostfile(hostfile("\n".join(lines)))
    try:
        expected = dict(runner._parse_hostfile(lines))
    except ValueError:
        assert read.problem is not None
    else:
        assert (read.problem, dict(read.slots)) == (None, expected)


@pytest.mark.deepspeed
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=7).map("".join))
@settings(max_examples=200, deadline=None)
def test_filters_as_deepspeed_reads_them(text: str) -> None:
    runner = pytest.importorskip("deepspeed.launcher.runner")
    try:
        expected = runner.parse_node_config_list(text)
    except ValueError:
        with pytest.raises(FilterError):
            read_filter(text)
    else:
        assert read_filter(text) == {host: tuple(slots) for host, slots in expected.items()}

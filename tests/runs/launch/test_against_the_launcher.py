"""Hostfiles and node filters mean what DeepSpeed's own launcher makes of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dslint.documents.source import Source
from dslint.runs.launch.hostfile import read_hostfile
from dslint.runs.launch.node_filter import FilterError, selected

pytestmark = pytest.mark.deepspeed

LINES = st.sampled_from(
    [
        "a slots=2",
        "b slots=4",
        "  c\tslots=8  ",
        "# a comment",
        "",
        "a slots = 2",
        "a slots=2 x",
        "slots=2",
        "a",
        "b  slots=x",
    ]
)
HOSTS = {"a": 2, "b": 4}
PIECES = st.sampled_from(["a", "b", "c", ":", ",", "@", "0", "1", "3", "7", "-", " "])


@given(st.lists(LINES, max_size=5))
@settings(max_examples=150, deadline=None)
def test_a_hostfile_has_the_slots_that_the_launcher_reads(lines: list[str]) -> None:
    from deepspeed.launcher.runner import _parse_hostfile

    found = read_hostfile(Source("hostfile", "\n".join(lines).encode()))
    try:
        real = dict(_parse_hostfile(lines))
    except ValueError:
        assert found.problem is not None
    else:
        assert found.problem is None
        assert dict(found.slots) == real


@given(st.lists(PIECES, max_size=7).map("".join), st.booleans())
@settings(max_examples=300, deadline=None)
def test_a_filter_selects_what_the_launcher_selects(text: str, includes: bool) -> None:
    from deepspeed.launcher.runner import parse_inclusion_exclusion

    include, exclude = (text, "") if includes else ("", text)
    try:
        real = {host: tuple(slots) for host, slots in parse_inclusion_exclusion(HOSTS, include, exclude).items()}
    except ValueError:
        with pytest.raises(FilterError):
            selected(HOSTS, include, exclude)
    else:
        found = selected(HOSTS, include, exclude)
        assert {host: sorted(slots) for host, slots in found.items()} == {h: sorted(s) for h, s in real.items()}


@given(st.binary(max_size=80))
def test_no_bytes_make_the_reading_of_a_hostfile_fail(data: bytes) -> None:
    read_hostfile(Source("hostfile", data))

"""Notebooks are read as scripts, with cell and line in each place."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from dslint.documents.notebook_reader import read_notebook
from dslint.documents.python_reader import Script
from dslint.documents.source import Place, Source


def notebook(*cells: tuple[str, str | list[str]]) -> Script:
    content = {"cells": [{"cell_type": kind, "source": text} for kind, text in cells]}
    return read_notebook(Source("n.ipynb", json.dumps(content).encode()))


def place_of(script: Script, text: str) -> Place:
    return script.source.place(script.source.data.index(text.encode()))


def test_places_count_all_cells_and_the_lines_of_a_cell() -> None:
    script = notebook(("markdown", "# title"), ("code", "import a\nb = 1"), ("code", ["c = 2\n", "d = 3"]))
    assert place_of(script, "b = 1") == Place(2, 1, cell=2)
    assert str(place_of(script, "d = 3")) == "cell 3:2:1"
    assert script.source.line_at(Place(2, 1, cell=3)) == "d = 3"


def test_magics_become_statements_that_do_nothing() -> None:
    script = notebook(("code", "%matplotlib inline\nif True:\n    !pip install x\ny = 1"))
    assert script.problem is None
    assert place_of(script, "y = 1").line == 4


def test_cells_of_other_languages_and_broken_cells_hide_no_others() -> None:
    script = notebook(("code", "%%bash\nls ("), ("code", "def broken("), ("code", "z = 1"))
    assert script.problem is None
    assert place_of(script, "z = 1") == Place(1, 1, cell=3)


def test_what_is_no_notebook_is_a_problem() -> None:
    for data in (b"", b"[]", b"{}", b"{", b'{"cells": 3}', b"[" * 100_000):
        assert read_notebook(Source("n.ipynb", data)).problem is not None


@given(st.lists(st.tuples(st.sampled_from(["code", "markdown", "raw"]), st.text(max_size=60))))
def test_no_cells_make_the_reading_fail(cells: list[tuple[str, str]]) -> None:
    script = notebook(*cells)
    script.source.place(len(script.source.data))

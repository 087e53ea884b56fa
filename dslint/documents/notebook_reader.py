"""Reads the code cells of a Jupyter notebook as one script, with cell and line for each place."""

from __future__ import annotations

import ast
import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dslint.documents.document import SyntaxProblem
from dslint.documents.python_reader import Script, read_script
from dslint.documents.source import Place, Source, Span


@dataclass(frozen=True)
class NotebookSource(Source):
    """The code of a notebook; its places count cells, and lines inside of a cell.

    Attributes:
        cells: by code cell, its number in the notebook (from 1, all cells counted) and its first line in `data`.
    """

    cells: tuple[tuple[int, int], ...] = ()

    def place(self, offset: int) -> Place:
        """Cell, line in the cell, and column of a byte offset."""
        inside = super().place(offset)
        if not self.cells:
            return inside
        index = max(bisect_right([first for _, first in self.cells], inside.line) - 1, 0)
        number, first = self.cells[index]
        return Place(inside.line - first + 1, inside.column, cell=number)

    def line_at(self, place: Place) -> str:
        """The text of the line at a place."""
        first = next((first for number, first in self.cells if number == place.cell), 1)
        return self.line(first + place.line - 1)


def read_notebook(source: Source) -> Script:
    """The code cells as a script; lines of IPython's own (`%time`, `!pip`) are left out, cell by cell."""
    try:
        cells = list(_code_cells(json.loads(source.text)))
    except (ValueError, RecursionError) as error:
        message = f"it is no notebook: {error}" if isinstance(error, ValueError) else "it is nested too deeply"
        return Script(source, None, SyntaxProblem(message, Span(0, 0)))
    code: list[str] = []
    starts: list[tuple[int, int]] = []
    for number, text in cells:
        starts.append((number, len(code) + 1))
        code += _python_lines(text)
    joined = NotebookSource(source.path, ("\n".join(code) + "\n").encode(), tuple(starts))
    return read_script(joined)


def _code_cells(notebook: Any) -> Iterator[tuple[int, str]]:
    found = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(found, list):
        raise ValueError("it has no cells")
    for number, cell in enumerate(found, 1):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            text = cell.get("source", "")
            yield (
                number,
                text if isinstance(text, str) else "".join(part for part in text if isinstance(part, str)),
            )


def _python_lines(text: str) -> list[str]:
    """The lines of a cell; those that are no Python become comments, and so does a cell that isn't Python."""
    lines = text.replace("\r\n", "\n").split("\n")
    if text.lstrip().startswith("%%") and not text.lstrip().startswith(("%%time", "%%capture")):
        return [f"# {line}" for line in lines]
    lines = [_as_comment(line) if line.lstrip().startswith(("%", "!", "?")) else line for line in lines]
    try:
        ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [f"# {line}" for line in lines]  # a cell that can't be parsed must not hide the others
    return lines


def _as_comment(line: str) -> str:
    """A line that does nothing, as deep as the magic that it replaces."""
    indent = line[: len(line) - len(line.lstrip())]
    return f"{indent}pass  # {line.strip()}"

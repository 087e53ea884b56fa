"""The changes of files as a unified diff, in the form that `patch` and `git apply -p0` take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dslint.documents.source import Source
from dslint.reports.style import Style


def unified_diff(files: Iterable[tuple[Source, Source]], style: Style) -> str:
    """The difference of each file, one after the other."""
    return "".join(line for before, after in files for line in _of_file(before, after, style))


def _of_file(before: Source, after: Source, style: Style) -> Iterator[str]:
    from difflib import unified_diff as lines_of

    old, new = (_lines(source) for source in (before, after))
    for line in lines_of(old, new, before.path, after.path):
        text = line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        yield _coloured(text, style)


def _lines(source: Source) -> list[str]:
    """The lines with their own ends; only a newline ends a line for a diff."""
    text = source.data.decode("utf-8", "surrogateescape")
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop().removesuffix("\n")
    return [*lines, last] if last else lines


def _coloured(line: str, style: Style) -> str:
    if line.startswith(("---", "+++")):
        return style.bold(line)
    if line.startswith("@@"):
        return style.blue(line)
    if line.startswith("+"):
        return style.green(line)
    return style.red(line) if line.startswith("-") else line

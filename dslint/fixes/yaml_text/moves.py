"""Gives a YAML value that was moved the text that it had before."""

from __future__ import annotations

from dslint.fixes.edit import Edit
from dslint.fixes.yaml_text.layout import Entry, YamlLayout
from dslint.fixes.yaml_text.route import Route


def with_written_value(before: Route, after: Route) -> list[Edit]:
    """Puts a value's old text, comments in it included, in the place of what stands for it now.

    Args:
        before: the route to the value in the file as it was.
        after: the route to it in the edited file.
    """
    old, new = before.steps[-1].entry, after.steps[-1].entry
    if not before.is_in_flow and not after.is_in_flow:
        end = after.layout.line_end(new.end)
        indents = (_indent(before.layout, old), _indent(after.layout, new))
        return [after.layout.edit(new.value_from, end, _shifted(_written(before.layout, old), *indents))]
    if old.value.is_empty or old.value.is_block or old.value.is_block_text or new.value.is_block:
        return []
    text = before.layout.text[old.value.start : old.value.end]
    return [] if "\n" in text else [after.layout.edit(new.value.start, new.value.end, text)]


def _written(layout: YamlLayout, entry: Entry) -> str:
    """What stands behind a key's colon, with the comment behind it."""
    return layout.text[entry.value_from : layout.line_end(entry.end)]


def _indent(layout: YamlLayout, entry: Entry) -> int:
    return len(layout.indent(entry.start))


def _shifted(text: str, indent: int, new_indent: int) -> str:
    """The text with every line but the first indented as its new place asks."""
    first, *others = text.split("\n")
    return "\n".join([first, *(_shifted_line(line, new_indent - indent) for line in others)])


def _shifted_line(line: str, by: int) -> str:
    if not line.strip():
        return line
    blanks = len(line) - len(line.lstrip(" "))
    return " " * max(blanks + by, 0) + line.lstrip(" ")

"""Entries of a config put in and taken out, with the commas, lines and comments that belong to them."""

from __future__ import annotations

from typing import Any

from dslint.documents.source import Span
from dslint.fixes.edit import Edit
from dslint.fixes.json_text.layout import Container, Entry, Layout
from dslint.fixes.json_text.style import is_expanded, style_in
from dslint.fixes.json_text.values import Style, written_key, written_value


def inserted(layout: Layout, container: Container, name: object, value: Any, comment: str = "") -> list[Edit]:
    """The edits that put an entry behind the last one of an object.

    Args:
        layout: of the config.
        container: the object.
        name: the key.
        value: plain data, or a value that is written already.
        comment: what to put behind the entry if it gets a line of its own.

    Raises:
        CannotEditError: JSON has no way to say it.
    """
    style = style_in(layout, container)
    if not container.entries:
        write_first = _first_entry if container.braced else _whole_object
        return [write_first(layout, container, style, name, value)]
    last = container.entries[-1]
    if is_expanded(layout, container):
        return _on_its_own_line(layout, style, last, name, value, comment)
    return [_on_the_same_line(layout, style, last, name, value)]


def _written(style: Style, indent: str, name: object, value: Any) -> str:
    return written_key(name, style) + style.colon + written_value(value, style, indent)


def _on_its_own_line(
    layout: Layout, style: Style, last: Entry, name: object, value: Any, comment: str
) -> list[Edit]:
    indent = layout.indent(last.start)
    text = layout.newline(last.stop) + indent + _written(style, indent, name, value)
    if last.comma is not None:
        text += ","
    at = layout.after_comments(last.stop)
    if layout.ends_line(at):
        text += comment and " " + comment
    else:
        at = last.stop
    if last.comma is not None or last.runs_on or not style.commas:
        return [_insertion(at, text)]
    if at == last.end:
        return [_insertion(at, "," + text)]
    return [_insertion(last.end, ","), _insertion(at, text)]


def _on_the_same_line(layout: Layout, style: Style, last: Entry, name: object, value: Any) -> Edit:
    if last.runs_on:
        indent = layout.indent(last.start) + ("" if layout.starts_line(last.start) else style.unit)
        return _insertion(last.end, style.newline + indent + _written(style, indent, name, value))
    text = _written(style, layout.indent(last.start), name, value)
    if last.comma is not None:
        return _insertion(last.stop, style.comma.removeprefix(",") + text + ",")
    return _insertion(last.end, style.comma + text)


def _first_entry(layout: Layout, container: Container, style: Style, name: object, value: Any) -> Edit:
    outer = layout.indent(container.start)
    indent = outer + style.unit
    comment_end = layout.last_comment_end(container.start, container.end)
    if comment_end is None and not is_expanded(layout, container):
        blank = layout.text(container.start, container.end)
        padding = blank if blank.strip(" \t") == "" and blank else style.padding
        text = padding + _written(style, outer, name, value) + padding
        return Edit(Span(container.start, container.end), text.encode())
    text = style.newline + indent + _written(style, indent, name, value)
    if comment_end is None:
        return Edit(Span(container.start, container.end), (text + style.newline + outer).encode())
    if layout.has_newline(comment_end, container.end):
        return _insertion(comment_end, text)
    return Edit(Span(comment_end, container.end), (text + style.newline + outer).encode())


def _whole_object(layout: Layout, container: Container, style: Style, name: object, value: Any) -> Edit:
    """An object with one entry for a file that holds nothing but blanks and comments."""
    lines = ["{", style.unit + _written(style, style.unit, name, value), "}"]
    text = style.newline.join(lines)
    comment_end = layout.last_comment_end(0, container.end)
    if comment_end is not None:
        return _insertion(comment_end, style.newline + text)
    return _insertion(0, text if layout.data else text + style.newline)


def taken_out(layout: Layout, container: Container, entry: Entry) -> list[Edit]:
    """The edits that take an entry out with its comma, and with its line where it has it for itself."""
    if len(container.entries) == 1:
        return _emptied(layout, container, entry)
    index = container.entries.index(entry)
    before = container.entries[index - 1] if index else None
    is_last = index == len(container.entries) - 1
    edits = [_deletion(start, end) for start, end in _pieces(layout, entry, before is None, is_last)]
    if is_last and entry.comma is None and before is not None and before.comma is not None:
        edits.insert(0, _deletion(before.comma, before.comma + 1))
    return edits


def has_line_for_itself(layout: Layout, entry: Entry) -> bool:
    """Whether nothing but comments stands on the lines of an entry."""
    return layout.starts_line(entry.start) and layout.ends_line(layout.after_comments(entry.stop))


def comment_behind(layout: Layout, entry: Entry) -> str:
    """The comment at the end of an entry's own line; empty where there is none."""
    if not has_line_for_itself(layout, entry):
        return ""
    return layout.text(entry.stop, layout.after_comments(entry.stop)).strip()


def _pieces(layout: Layout, entry: Entry, is_first: bool, is_last: bool) -> list[tuple[int, int]]:
    if entry.comma is not None and layout.has_newline(entry.end, entry.comma):
        # The comma starts a later line, perhaps below comments about something else.
        return [(entry.start, entry.end), (entry.comma, layout.after_spaces(entry.stop))]
    if has_line_for_itself(layout, entry):
        return [_lines(layout, entry)]
    if not is_last and not layout.ends_line(layout.after_comments(entry.stop)):
        return [(entry.start, layout.after_spaces(entry.stop))]
    if is_first or layout.starts_line(entry.start):
        return [(entry.start, layout.after_spaces(entry.stop))]
    return [(layout.before_spaces(entry.start), entry.stop)]


def _lines(layout: Layout, entry: Entry) -> tuple[int, int]:
    """The whole lines of an entry, with one line end."""
    start = layout.line_start(entry.start)
    end = layout.after_comments(entry.stop)
    after = layout.after_line_end(end)
    if after > end:
        return start, after
    return layout.before_line_end(start), end


def _emptied(layout: Layout, container: Container, entry: Entry) -> list[Edit]:
    """The edits that take the only entry out."""
    pieces = _pieces(layout, entry, is_first=True, is_last=True)
    if not container.braced:
        # A file that is left empty may read as broken: after a byte order mark, for one.
        return [Edit(Span(entry.start, entry.end), b"{}"), *_of_the_comma(layout, entry)]
    places = [container.start, *(place for piece in pieces for place in piece), container.end]
    left = [layout.text(start, end) for start, end in zip(places[::2], places[1::2], strict=True) if start < end]
    if not "".join(left).strip():
        return [_deletion(container.start, container.end)]
    return [_deletion(start, end) for start, end in pieces]


def _of_the_comma(layout: Layout, entry: Entry) -> list[Edit]:
    return [] if entry.comma is None else [_deletion(entry.comma, entry.stop)]


def _insertion(at: int, text: str) -> Edit:
    return Edit(Span(at, at), text.encode())


def _deletion(start: int, end: int) -> Edit:
    return Edit(Span(start, end), b"")

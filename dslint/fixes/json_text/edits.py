"""Edits of JSON, JSON with comments and Hjson that leave everything else as it stands.

What an edit gives is read again and held against what was asked; where the two differ, there is no edit.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dslint.documents.document import Document, NodePath
from dslint.documents.source import Span
from dslint.fixes.composition import composed
from dslint.fixes.edit import CannotEditError, Edit
from dslint.fixes.json_text.entries import comment_behind, inserted, taken_out
from dslint.fixes.json_text.layout import NOT_SAFE, Entry, Layout, laid_out, read_after
from dslint.fixes.json_text.style import style_in
from dslint.fixes.json_text.values import Style, Verbatim, written_key, written_value
from dslint.fixes.plain_data import nested, same, with_name, with_value, without

_COMMENT_IN_TEXT = re.compile(r"(?<!\s)(?:\s*,\s*(?:(?://|#).*|/\*.*\*/)?|\s+(?://|#\s).*|\s+/\*.*\*/)$")
_LONGEST_TEXT = 1000  # characters of a text without quotes in which a comment is looked for
_ENDS_A_WORD = (b"", b",", b"}", b"]", b"#", b"\n", b"\r", b"/")


def set_key(document: Document, path: NodePath, value: Any) -> list[Edit]:
    """Gives a key a value; the key, and sections around it, are put in where they are absent.

    A section on the way that is no object gives way to one. Of a key that stands twice the last one is meant,
    as DeepSpeed's loader takes it.

    Raises:
        CannotEditError: it can't be done in this text.
    """
    layout = laid_out(document)
    edits = _set(layout, path, value)
    _verify(layout, edits, with_value(layout.document.value, path, value))
    return edits


def delete_key(document: Document, path: NodePath, key: Span | None = None) -> list[Edit]:
    """Takes a key out with its value, comma and line; of a key that stands twice, both or the one at `key`.

    Raises:
        CannotEditError: it is not there, or it can't be done in this text.
    """
    layout = laid_out(document)
    edits: list[Edit] = []
    for one in _occurrences(document, layout, path, key):
        now = Layout(read_after(layout.document.source, edits)) if edits else layout
        further = _taken_out(now, one)
        _verify(now, further, without(now.document.value, one))
        edits = composed(layout.document.source, edits, further)
    return edits


def rename_key(document: Document, path: NodePath, name: str) -> list[Edit]:
    """Gives a key another name at the same place.

    Raises:
        CannotEditError: it is not there, the name is taken, or it can't be done in this text.
    """
    layout = laid_out(document)
    entry = _only_entry(document, layout, path)
    if name == path[-1]:
        return []
    _refuse_taken(layout, (*path[:-1], name))
    style = Style(quote=layout.quote_at(entry.start))
    edits = [Edit(Span(entry.start, entry.key_end), written_key(name, style).encode())]
    _verify(layout, edits, with_name(layout.document.value, path, name))
    return edits


def move_key(document: Document, path: NodePath, to: NodePath) -> list[Edit]:
    """Takes a key out and puts it in at `to`, with the value as it is written.

    Raises:
        CannotEditError: it is not there, something is at `to`, or it can't be done in this text.
    """
    if to and to[:-1] == path[:-1] and isinstance(to[-1], str):
        return rename_key(document, path, to[-1])
    if not to:
        raise CannotEditError("it would replace the whole file")
    layout = laid_out(document)
    entry = _only_entry(document, layout, path)
    value = layout.value(path)
    if to[: len(path)] == path:
        goal = with_value(layout.document.value, path, nested(to[len(path) :], value))
    else:
        _refuse_taken(layout, to)
        goal = without(with_value(layout.document.value, to, value), path)
    return _first_that_holds(
        layout,
        goal,
        lambda: _moved(layout, entry, to, Verbatim(_moved_text(layout, entry, to))),
        lambda: _moved(layout, entry, to, value),
    )


def _set(layout: Layout, path: NodePath, value: Any, comment: str = "") -> list[Edit]:
    if not path:
        raise CannotEditError("it would replace the whole file")
    known = _known_part(layout, path)
    if known == path and same(layout.value(path), value) and not _is_restyled(layout, path, value):
        return []
    rest = path[len(known) :]
    whole = layout.value(known)
    if not rest:
        return [_replaced(layout, known, value)]
    if any(isinstance(step, int) for step in rest):
        raise CannotEditError("there is no such item in the list")
    if isinstance(whole, dict):
        return inserted(layout, layout.container(known), rest[0], nested(rest[1:], value), comment)
    if not known:
        raise CannotEditError("the config is no object")
    return [_replaced(layout, known, nested(rest, value))]


def _is_restyled(layout: Layout, path: NodePath, value: Any) -> bool:
    """Whether a whole number is wanted where the text has a point or an exponent, which Hjson reads alike."""
    text = layout.document.source.slice(layout.document.values[path])
    return type(value) is int and not text.strip().lstrip("-").isdigit()


def _known_part(layout: Layout, path: NodePath) -> NodePath:
    """The part of a path that is there."""
    known: NodePath = ()
    while len(known) < len(path) and path[: len(known) + 1] in layout.document.values:
        known = path[: len(known) + 1]
    return known


def _replaced(layout: Layout, path: NodePath, value: Any) -> Edit:
    entry = layout.entry(path)
    end = entry.end - len(_tail(layout, entry).encode())
    text = written_value(value, _style_of_value(layout, entry, value), layout.indent(entry.start))
    following = layout.after_spaces(end)
    if text[-1] not in "\"'}]" and layout.data[following : following + 1] not in _ENDS_A_WORD:
        text += ","  # otherwise what follows would be taken for a part of the value
    return Edit(Span(entry.value, end), text.encode())


def _tail(layout: Layout, entry: Entry) -> str:
    """What Hjson takes for the end of a text without quotes, but was meant as a comma or a comment."""
    if not entry.runs_on or entry.end - entry.value > _LONGEST_TEXT:
        return ""
    match = _COMMENT_IN_TEXT.search(layout.text(entry.value, entry.end))
    return match.group() if match else ""


def _style_of_value(layout: Layout, entry: Entry, value: Any) -> Style:
    style = style_in(layout, layout.container(entry.path[:-1]))
    if isinstance(value, str) and layout.quote_at(entry.value):
        return replace(style, quote=layout.quote_at(entry.value))
    if layout.value(entry.path) and isinstance(layout.value(entry.path), dict | list):
        return replace(style, expanded=layout.has_newline(entry.value, entry.end))
    return style


def _moved(layout: Layout, entry: Entry, to: NodePath, value: Any) -> list[Edit]:
    path, source = entry.path, layout.document.source
    if to[: len(path)] == path:
        return [_replaced(layout, path, nested(to[len(path) :], value))]
    edits = _set(layout, to, value, comment_behind(layout, entry))
    return composed(source, edits, _taken_out(Layout(read_after(source, edits)), path))


def _moved_text(layout: Layout, entry: Entry, to: NodePath) -> str:
    """The text of a value, its lines indented as they have to be in its new place."""
    text = layout.text(entry.value, entry.end)
    old = layout.indent(entry.value)
    first, *lines = text.split("\n")
    new = _indent_in_new_place(layout, to)
    return "\n".join([first, *(new + line.removeprefix(old) if line.startswith(old) else line for line in lines)])


def _indent_in_new_place(layout: Layout, to: NodePath) -> str:
    known = _known_part(layout, to[:-1])
    is_object = isinstance(layout.value(known), dict)
    container = layout.container(known if is_object else known[:-1])
    unit = style_in(layout, container).unit
    if is_object and container.entries:
        indent = layout.indent(container.entries[-1].start)
    else:
        indent = layout.indent(layout.document.values[known].start) + unit
    return indent + unit * (len(to) - len(known) - 1)


def _taken_out(layout: Layout, path: NodePath) -> list[Edit]:
    return taken_out(layout, layout.container(path[:-1]), layout.entry(path))


def _occurrences(document: Document, layout: Layout, path: NodePath, key: Span | None) -> list[NodePath]:
    """The paths, in a layout in which no key stands twice, of what a path of the document means."""
    firsts = [double.first for double in document.duplicates if double.path == path]
    starts = {span.start for span in ([*firsts, document.keys.get(path)] if key is None else [key]) if span}
    found = [one for one, span in layout.document.keys.items() if span.start in starts]
    if key is None:
        found = [one for one in found if one[:-1] == path[:-1]]
    if path and isinstance(path[-1], int) and path in layout.document.values:
        found = [path]
    if not found:
        raise CannotEditError("the key is not there")
    return found


def _only_entry(document: Document, layout: Layout, path: NodePath) -> Entry:
    if path not in layout.document.keys:
        raise CannotEditError("the key is not there")
    if any(double.path == path for double in document.duplicates):
        raise CannotEditError("the key stands twice")
    return layout.entry(path)


def _refuse_taken(layout: Layout, path: NodePath) -> None:
    if path in layout.document.values:
        raise CannotEditError(f'there is a key "{path[-1]}" already')


def _first_that_holds(layout: Layout, goal: Any, *ways: Callable[[], list[Edit]]) -> list[Edit]:
    for way in ways:
        try:
            edits = way()
            _verify(layout, edits, goal)
            return edits
        except CannotEditError as error:
            last = error
    raise last


def _verify(layout: Layout, edits: list[Edit], goal: Any) -> None:
    """Refuse edits that give another value, or that put what strict JSON forbids into strict JSON."""
    after = read_after(layout.document.source, edits)
    was_strict = layout.document.not_strict is None
    if not same(after.value, goal) or (was_strict and after.not_strict is not None):
        raise CannotEditError(NOT_SAFE)

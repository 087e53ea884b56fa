"""How new entries of a config are to be written, so that they look like their neighbours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dslint.fixes.json_text.layout import Container, Entry, Layout
from dslint.fixes.json_text.values import Style

_COLON = re.compile(r"[ \t]*:[ \t]*")
_SEPARATOR = re.compile(r",[ \t]*")


def style_in(layout: Layout, container: Container) -> Style:
    """How to write entries of an object, and sections in them."""
    near = list(_nearest_first(layout, container))
    objects = [entries for entries in (other.entries for other in near) if isinstance(entries[-1].path[-1], str)]
    colon = _colon(layout, objects)
    quote = _quote(layout, objects)
    return Style(
        newline=layout.newline(container.end),
        unit=_unit(layout, near),
        colon=colon,
        comma=_separator(layout, near, ", " if colon.endswith((" ", "\t")) or not objects else ","),
        quote=quote,
        commas=_uses_commas(layout, container, quote),
        padding=_padding(layout, container),
        expanded=is_expanded(layout, container) and not _keeps_sections_on_one_line(layout),
        expanded_lists=_expands_lists(layout),
    )


def is_expanded(layout: Layout, container: Container) -> bool:
    """Whether the entries of an object stand, or would stand, on lines of their own."""
    if container.entries:
        return layout.starts_line(container.entries[-1].start)
    if not container.path:
        return True
    around = layout.container(container.path[:-1])
    return is_expanded(layout, around) and not _keeps_sections_on_one_line(layout)


def _nearest_first(layout: Layout, container: Container) -> Iterator[Container]:
    path = container.path
    around = [layout.container(path[:length]) for length in range(len(path), -1, -1)]
    return (other for other in (*around, *layout.containers()) if other.entries)


def _keeps_sections_on_one_line(layout: Layout) -> bool:
    sections = [
        container
        for container in layout.containers()
        if container.path and container.entries[0].key_end > container.entries[0].start
    ]
    return bool(sections) and not any(layout.has_newline(part.start, part.end) for part in sections)


def _expands_lists(layout: Layout) -> bool:
    lists = [part for part in layout.containers() if isinstance(part.entries[0].path[-1], int)]
    return bool(lists) and all(layout.has_newline(part.start, part.end) for part in lists)


def _colon(layout: Layout, objects: Iterable[tuple[Entry, ...]]) -> str:
    for entries in objects:
        for entry in reversed(entries):
            text = layout.text(entry.key_end, entry.value)
            if _COLON.fullmatch(text):
                return text
    return ": "


def _quote(layout: Layout, objects: list[tuple[Entry, ...]]) -> str:
    return layout.quote_at(objects[0][-1].start) if objects else '"'


def _separator(layout: Layout, near: Iterable[Container], default: str) -> str:
    for container in near:
        for entry, following in zip(container.entries, container.entries[1:], strict=False):
            text = layout.text(entry.end, following.start)
            if _SEPARATOR.fullmatch(text):
                return text
    return default


def _unit(layout: Layout, near: Iterable[Container]) -> str:
    for container in near:
        inner = layout.indent(container.entries[-1].start)
        outer = layout.indent(container.start)
        if container.braced and layout.starts_line(container.entries[-1].start):
            unit = inner.removeprefix(outer)
            if inner.startswith(outer) and unit:
                return unit
    return "  "


def _uses_commas(layout: Layout, container: Container, quote: str) -> bool:
    if layout.document.not_strict is None:
        return True
    for entries in (container.entries, *(other.entries for other in layout.containers())):
        if any(_has_comma(layout, entry) for entry in entries):
            return True
        if len(entries) > 1:
            return False
    return quote != ""


def _has_comma(layout: Layout, entry: Entry) -> bool:
    return entry.comma is not None or (entry.runs_on and layout.data[entry.end - 1 : entry.end] == b",")


def _padding(layout: Layout, container: Container) -> str:
    around = [container, *(part for part in layout.containers() if not layout.has_newline(part.start, part.end))]
    for part in around:
        if part.braced and part.entries and isinstance(part.entries[0].path[-1], str):
            end = layout.after_spaces(part.start)
            if end == part.entries[0].start:
                return layout.text(part.start, end)
    return ""

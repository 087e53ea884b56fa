"""Puts entries of YAML mappings in, takes them out, and gives them other values, as edits of the text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dslint.fixes.edit import CannotEditError, Edit
from dslint.fixes.yaml_text.layout import Entry, Node, YamlLayout
from dslint.fixes.yaml_text.route import Route
from dslint.fixes.yaml_text.writing import needs_quotes, write_block, write_inline

_QUOTES = ("'", '"')
_USUAL_STEP = "  "


def replaced(route: Route, value: Any) -> list[Edit]:
    """Puts a value in the place of the one at the end of a route."""
    node = route.node
    is_section = isinstance(value, Mapping) and bool(value)
    if not route.steps:
        return [_replaced_root(route.layout, value)]
    entry = route.steps[-1].entry
    keeps_brackets = node is not None and node.flow and bool(node.entries)
    if is_section and entry.key and not route.is_in_flow and not keeps_brackets:
        return [_replaced_by_block(route, entry, value)]
    text = write_inline(
        value, flow=route.is_in_flow or keeps_brackets, quote=_quotes_for_value(route, entry.value)
    )
    return [_replaced_inline(route, entry, text)]


def inserted(route: Route, name: str | int, value: Any) -> list[Edit]:
    """Puts an entry at the end of the mapping at the end of a route."""
    mapping = route.node
    if mapping is None or not (mapping.entries or route.is_in_flow):
        return replaced(route, {name: value})
    if mapping.flow:
        return _inserted_in_flow(route.layout, mapping, name, value)
    return [_inserted_in_block(route.layout, mapping, name, value)]


def taken_out(route: Route) -> list[Edit]:
    """Takes out the entry that a route leads to, with its lines."""
    step = route.steps[-1]
    if len(step.whole.entries) == 1:
        return _emptied(route.up(), "[]" if step.whole.kind == "list" else "{}")
    if step.whole.flow:
        return _taken_out_of_flow(route.layout, step.whole, step.index)
    return [_taken_out_of_block(route.layout, step.entry)]


def renamed(route: Route, name: str) -> list[Edit]:
    """Gives the key of the entry that a route leads to another name."""
    entry = route.steps[-1].entry
    assert entry.key is not None
    needs_space = entry.has_colon and route.layout.text[entry.value_from : entry.value_from + 1].strip()
    quote = _kept_quotes(entry.key) or ('"' if needs_space else "")
    text = write_inline(name, flow=route.is_in_flow, quote=quote)
    return [route.layout.edit(entry.key.start, entry.key.end, text)]


def _replaced_root(layout: YamlLayout, value: Mapping[Any, Any]) -> Edit:
    """Puts a mapping into a file that has none."""
    lines = write_block(value, "", _USUAL_STEP)
    if layout.root is not None:
        before = layout.before_on_line(layout.root.start)
        start = layout.root.start - (len(before) - len(before.rstrip()))
        return layout.edit(start, layout.root.end, ("\n" if before.strip() else "") + lines)
    at = layout.end
    return layout.edit(at, at, ("\n" if layout.before_on_line(at) else "") + lines + "\n")


def _replaced_inline(route: Route, entry: Entry, text: str) -> Edit:
    """Puts a text of one line in the place of a value; a comment on the key's line stays."""
    layout, value = route.layout, entry.value
    if value.is_empty:
        return _filled(layout, entry, text, in_flow=route.is_in_flow)
    if value.is_block_text:
        return layout.edit(value.start, value.end, text + _comment_on_key_line(layout, entry))
    if not value.is_block:
        return layout.edit(value.start, value.end, text)
    end = layout.line_end(value.end)
    if layout.line_start(value.start) == layout.line_start(entry.value_from):
        return layout.edit(value.start, end, text)
    return layout.edit(entry.value_from, end, f" {text}{_comment_on_key_line(layout, entry)}")


def _filled(layout: YamlLayout, entry: Entry, text: str, in_flow: bool) -> Edit:
    """Puts a text of one line where nothing stood."""
    at = entry.value_from
    if entry.key and not entry.has_colon:
        return layout.edit(at, at, f": {text}" if in_flow else f"\n{layout.indent(entry.start)}: {text}")
    if layout.text.startswith(" ", at) and layout.skip_blanks(at) == layout.line_end(at):
        return layout.edit(at + 1, at + 1, text)
    return layout.edit(at, at, f" {text}")


def _replaced_by_block(route: Route, entry: Entry, value: Mapping[Any, Any]) -> Edit:
    """Puts a mapping below a key; a comment on the key's line stays."""
    layout = route.layout
    step = _step(layout, route.steps[-1].whole)
    lines = write_block(value, layout.indent(entry.start) + step, step)
    comment = _comment_on_key_line(layout, entry)
    return layout.edit(entry.value_from, layout.line_end(entry.end), f"{comment}\n{lines}")


def _comment_on_key_line(layout: YamlLayout, entry: Entry) -> str:
    """The comment behind a value that begins on the line of its key, or behind the key alone."""
    value = entry.value
    if value.is_block_text:
        header, mark, comment = layout.text[value.start : layout.line_end(value.start)].partition("#")
        return header[len(header.rstrip()) :] + mark + comment if mark else ""
    if value.is_block or layout.line_start(value.start) != layout.line_start(entry.value_from):
        return layout.comment_after(entry.value_from)
    return layout.comment_after(entry.end)


def _inserted_in_block(layout: YamlLayout, mapping: Node, name: str | int, value: Any) -> Edit:
    first, last = mapping.entries[0], mapping.entries[-1]
    lines = write_block({name: value}, layout.indent(first.start), _step(layout, mapping), _usual_quotes(mapping))
    if last.reach > last.end:
        at = layout.line_start(last.reach)
        return layout.edit(at, at, lines + "\n")
    at = layout.line_end(last.end)
    if at == len(layout.text) and _ends_in_block_text(last.value):
        raise CannotEditError("the file ends in a text behind | or > that would get a line end")
    return layout.edit(at, at, "\n" + lines)


def _ends_in_block_text(node: Node) -> bool:
    """Whether the last thing in a node is a text whose line end counts."""
    while node.is_block:
        node = node.entries[-1].value
    return node.is_block_text and not node.is_stripped


def _inserted_in_flow(layout: YamlLayout, mapping: Node, name: str | int, value: Any) -> list[Edit]:
    if not layout.text.startswith("}", mapping.end - 1):
        raise CannotEditError("the mapping has no braces")
    quote = _usual_quotes(mapping)
    text = write_inline({name: value}, flow=True, quote=quote)[1:-1]
    if not mapping.entries:
        return [layout.edit(mapping.end - 1, mapping.end - 1, text)]
    last = mapping.entries[-1]
    comma = layout.find_mark(",", last.end, mapping.end - 1)
    after = last.end if comma is None else comma + 1
    if layout.before_on_line(last.start).strip():
        return [layout.edit(after, after, f", {text}" if comma is None else f" {text},")]
    at = layout.line_end(after) if _is_rest_blank(layout, after) else after
    line = "\n" + layout.indent(last.start) + text
    if comma is not None:
        return [layout.edit(at, at, line + ",")]
    if at == after:
        return [layout.edit(at, at, "," + line)]
    return [layout.edit(after, after, ","), layout.edit(at, at, line)]


def _emptied(route: Route, brackets: str) -> list[Edit]:
    """Puts empty brackets in the place of a list or mapping."""
    if route.steps:
        return [_replaced_inline(route, route.steps[-1].entry, brackets)]
    root = route.node
    assert root is not None
    end = root.end if root.flow else route.layout.line_end(root.end)
    return [route.layout.edit(root.start, end, brackets)]


def _taken_out_of_block(layout: YamlLayout, entry: Entry) -> Edit:
    end = layout.next_line(entry.end)
    if entry.reach > entry.end:
        end = max(end, layout.line_start(entry.reach))
    if not layout.before_on_line(entry.start).strip():
        if entry.value.is_block or entry.value.is_empty:
            end = _end_of_inner_comments(layout, end, len(layout.indent(entry.start)))
        return layout.edit(layout.line_start(entry.start), end, "")
    while end < len(layout.text) and layout.text[end].isspace():  # the next entry moves up behind the dash
        end += 1
    return layout.edit(entry.start, end, "")


def _end_of_inner_comments(layout: YamlLayout, at: int, indent: int) -> int:
    """Where the comments end that follow a block and are indented as what stands in it."""
    end = at
    while at < len(layout.text):
        line = layout.text[at : layout.line_end(at)]
        at = layout.next_line(at)
        if line.lstrip().startswith("#") and len(line) - len(line.lstrip()) > indent:
            end = at
        elif line.strip():
            break
    return end


def _taken_out_of_flow(layout: YamlLayout, whole: Node, index: int) -> list[Edit]:
    entry, is_last = whole.entries[index], index == len(whole.entries) - 1
    following = whole.end - 1 if is_last else whole.entries[index + 1].start
    comma = layout.find_mark(",", entry.end, following)
    end = entry.end if comma is None else comma + 1
    alone = not layout.before_on_line(entry.start).strip() and _is_rest_blank(layout, end)
    if not is_last:
        if alone:
            return [layout.edit(layout.line_start(entry.start), layout.next_line(end), "")]
        return [layout.edit(entry.start, layout.skip_blanks(end), "")]
    before = whole.entries[index - 1]
    if not alone and "#" not in layout.text[before.end : entry.start]:
        return [layout.edit(before.end, entry.end, "")]
    edits = [layout.edit(entry.start, end, "")]
    if alone:
        edits = [layout.edit(layout.line_start(entry.start), layout.next_line(end), "")]
    comma_before = layout.find_mark(",", before.end, entry.start)
    if comma is None and comma_before is not None:
        edits.insert(0, layout.edit(comma_before, comma_before + 1, ""))
    return edits


def _is_rest_blank(layout: YamlLayout, at: int) -> bool:
    """Whether nothing but a comment follows on the line."""
    return layout.skip_blanks(at) == layout.line_end(at) or bool(layout.comment_after(at))


def _step(layout: YamlLayout, mapping: Node) -> str:
    """What indents a mapping inside of this one, as its other sections or else other ones in the file have it."""
    for node in (*mapping.within(), *(layout.root.within() if layout.root else ())):
        for entry in node.entries if node.kind == "mapping" and not node.flow else ():
            inner = entry.value
            if inner.kind == "mapping" and inner.is_block:
                width = len(layout.indent(inner.entries[0].start)) - len(layout.indent(entry.start))
                if width > 0:
                    return " " * width
    return _USUAL_STEP


def _quotes_for_value(route: Route, old: Node) -> str:
    """The quotes of a new value: those that a person gave the old one, or that all texts around it have."""
    if route.is_in_flow and route.steps[-1].whole.kind == "mapping":
        return _kept_quotes(old) or _usual_quotes(route.steps[-1].whole)
    return _kept_quotes(old)


def _kept_quotes(old: Node) -> str:
    """The quotes of a text that needs none, so that somebody chose them."""
    return old.style if old.style in _QUOTES and not needs_quotes(old.text) else ""


def _usual_quotes(mapping: Node) -> str:
    """The quotes that all keys of a mapping have."""
    styles = {entry.key.style if entry.key else "" for entry in mapping.entries}
    chosen = {_kept_quotes(entry.key) for entry in mapping.entries if entry.key} - {""}
    return chosen.pop() if len(chosen) == len(styles) == 1 else ""

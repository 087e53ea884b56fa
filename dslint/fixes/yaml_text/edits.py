"""Edits of YAML that leave everything else as it stands.

What an edit gives is read again and held against what was asked; where the two differ, there is no edit. An edit
never changes what an alias repeats or what a merge key brings in.
"""

from __future__ import annotations

from typing import Any

from dslint.documents.document import Document, NodePath
from dslint.documents.source import Source, Span
from dslint.documents.yaml_reader import read_yaml
from dslint.fixes.composition import composed
from dslint.fixes.edit import CannotEditError, Edit, applied
from dslint.fixes.plain_data import nested, same, with_name, with_value, without
from dslint.fixes.yaml_text.entries import inserted, renamed, replaced, taken_out
from dslint.fixes.yaml_text.layout import Entry, YamlLayout, lay_out
from dslint.fixes.yaml_text.moves import with_written_value
from dslint.fixes.yaml_text.route import Route, Step, places_of, route_to, shown

_NOT_SAFE = "the text is written in a way that dslint can't edit safely"


def set_key(document: Document, path: NodePath, value: Any) -> list[Edit]:
    """Gives a key a value; the key, and sections around it, are put in where they are absent.

    A section on the way that is null or a single value gives way to a mapping. Of a key that stands twice the
    last one is meant, as PyYAML takes it. A key that a merge brought in gets an own value here.

    Raises:
        CannotEditError: it can't be done in this text.
    """
    route = _route(document, path)
    if not path:
        raise CannotEditError("it would replace the whole file")
    if not route.rest and same(_value_at(document, path), value):
        return []
    edits = _set(document, route, path, value)
    _verify(document, edits, with_value(document.value, path, value))
    return edits


def delete_key(document: Document, path: NodePath, key: Span | None = None) -> list[Edit]:
    """Takes a key out with its value and lines; of a key that stands twice, both or the one at `key`.

    Comments on lines of their own stay, but for those among what stands inside of it.

    Raises:
        CannotEditError: it is not there, or it can't be done in this text.
    """
    route = _existing(document, path)
    edits: list[Edit] = []
    places = places_of(route.steps[-1].whole, path[-1])
    entries = [route.steps[-1].whole.entries[place] for place in places]
    meant = [entry for entry in entries if key is None or _key_span(route.layout, entry) == key]
    if not meant:
        raise CannotEditError(f"{shown(path)} is not there")
    for entry in reversed(meant):  # what stands before keeps its place
        now = lay_out(applied(document.source, edits))
        edits = composed(document.source, edits, _taken_out(route_to(now, path), entry.start))
    if len(meant) == len(entries):
        _verify(document, edits, without(document.value, path))
    else:
        _verify_others(document, edits, path)
    return edits


def rename_key(document: Document, path: NodePath, name: str) -> list[Edit]:
    """Gives a key another name at the same place.

    Raises:
        CannotEditError: it is not there, the name is taken, or it can't be done in this text.
    """
    route = _only(document, path)
    if name == path[-1]:
        return []
    _refuse_taken(document, (*path[:-1], name))
    key = route.steps[-1].entry.key
    assert key is not None
    if key.kind == "alias" or route.layout.is_repeated(key):
        raise CannotEditError(f"the name of {shown(path)} is shared through an alias")
    edits = renamed(route, name)
    _verify(document, edits, with_name(document.value, path, name))
    return edits


def move_key(document: Document, path: NodePath, to: NodePath) -> list[Edit]:
    """Takes a key out and puts it in at `to`, with the value as it is written.

    Raises:
        CannotEditError: it is not there, something is at `to`, or it can't be done in this text.
    """
    if not to:
        raise CannotEditError("it would replace the whole file")
    if to[:-1] == path[:-1] and isinstance(to[-1], str):
        return rename_key(document, path, to[-1])
    route = _only(document, path)
    if to[: len(path)] != path:
        _refuse_taken(document, to)
    value = _value_at(document, path)
    edits = delete_key(document, path)
    without_it = read_yaml(applied(document.source, edits))
    edits = composed(document.source, edits, set_key(without_it, to, value))
    goal = with_value(without(document.value, path), to, value)
    _verify(document, edits, goal)
    moved = route_to(lay_out(applied(document.source, edits)), to)
    as_written = composed(document.source, edits, with_written_value(route, moved))
    return as_written if _says(applied(document.source, as_written), goal) else edits


def _route(document: Document, path: NodePath) -> Route:
    """The route to a path in a file that can be edited."""
    if document.problem is not None:
        raise CannotEditError(f"the file can't be read: {document.problem.message}")
    route = route_to(lay_out(document.source), path)
    value = document.value
    for name in path[: len(route.steps)]:
        if isinstance(value, dict) and name not in value:
            raise CannotEditError("a key that is no text is not edited")
        value = value[name]
    return route


def _existing(document: Document, path: NodePath) -> Route:
    """The route to a path that is there."""
    route = _route(document, path)
    if not path:
        raise CannotEditError("it would take out the whole file")
    if route.rest:
        merged = path in document.values
        raise CannotEditError(f"{shown(path)} is " + ("brought in by a merge key (<<)" if merged else "not there"))
    return route


def _only(document: Document, path: NodePath) -> Route:
    """The route to a key that stands once."""
    route = _existing(document, path)
    if not isinstance(path[-1], str):
        raise CannotEditError("an item of a list has no name")
    if len(places_of(route.steps[-1].whole, path[-1])) > 1:
        raise CannotEditError(f"{shown(path)} stands there twice")
    return route


def _refuse_taken(document: Document, path: NodePath) -> None:
    if path in document.values:
        raise CannotEditError(f"{shown(path)} is there already")


def _refuse_shared(route: Route, path: NodePath) -> None:
    """Refuses to change a value that an alias elsewhere repeats."""
    alias = None if route.node is None else route.layout.alias_of(route.node)
    if alias is not None:
        raise CannotEditError(f"{shown(path)} is repeated by the alias *{alias}, which would change too")


def _set(document: Document, route: Route, path: NodePath, value: Any) -> list[Edit]:
    rest, known = route.rest, path[: len(path) - len(route.rest)]
    if not rest:
        _refuse_shared(route, path)
        return replaced(route, value)
    if not all(isinstance(name, str) for name in rest):
        raise CannotEditError("there is no such item in the list")
    node = route.node
    if node is not None and node.kind == "list":
        raise CannotEditError(f"{shown(known)} is a list")
    if node is None or node.kind == "mapping":
        if len(rest) > 1 and (*known, rest[0]) in document.values:
            raise CannotEditError(f"{shown((*known, rest[0]))} is brought in by a merge key (<<)")
        return inserted(route, rest[0], nested(rest[1:], value))
    if not known and document.value is not None:
        raise CannotEditError("the file holds no mapping")
    _refuse_shared(route, known)
    return replaced(route, nested(rest, value))


def _taken_out(route: Route, start: int) -> list[Edit]:
    """Takes out the entry that begins at an offset, where a route leads to it or to another one of its name."""
    whole = route.steps[-1].whole
    index = next(index for index, entry in enumerate(whole.entries) if entry.start == start)
    one = Route(route.layout, (*route.steps[:-1], Step(whole, index)), ())
    entry = whole.entries[index]
    if route.layout.alias_of(entry.value) or (entry.key and route.layout.is_repeated(entry.key)):
        raise CannotEditError("an alias elsewhere repeats what would be taken out")
    return taken_out(one)


def _key_span(layout: YamlLayout, entry: Entry) -> Span | None:
    return layout.edit(entry.key.start, entry.key.end, "").span if entry.key else None


def _value_at(document: Document, path: NodePath) -> Any:
    value = document.value
    for name in path:
        value = value[name]
    return value


def _verify(document: Document, edits: list[Edit], goal: Any) -> None:
    """Holds what the edited file says against what it has to say."""
    if not _says(applied(document.source, edits), goal):
        raise CannotEditError(_NOT_SAFE)


def _says(source: Source, goal: Any) -> bool:
    after = read_yaml(source)
    if after.problem is not None or not same(after.value, goal):
        return False
    lay_out(source)  # it must not have become several documents
    return True


def _verify_others(document: Document, edits: list[Edit], path: NodePath) -> None:
    """Holds an edited file that still has the key against the one before, this key's value left out."""
    after = read_yaml(applied(document.source, edits))
    if after.problem is not None or path not in after.values:
        raise CannotEditError(_NOT_SAFE)
    if not same(without(after.value, path), without(document.value, path)):
        raise CannotEditError(_NOT_SAFE)

"""Changes of a config that a script writes as a dict."""

from __future__ import annotations

from keyword import iskeyword
from pathlib import PurePath
from typing import Any

import libcst as cst

from dslint.documents.document import Document, NodePath
from dslint.documents.source import Span
from dslint.fixes.edit import CannotEditError, Edit, applied
from dslint.fixes.python_code.arguments import with_arguments
from dslint.fixes.python_code.entries import entry_of, text_of
from dslint.fixes.python_code.removal import removal_of
from dslint.fixes.python_code.rows import put_back, row_of
from dslint.fixes.python_code.tree import Change, Changed, Found, Tree, check, read_tree
from dslint.fixes.python_code.values import argument, in_place_of, python_code, quoted

_DATA = (".json", ".hjson", ".yaml", ".yml")


def set_key(document: Document, path: NodePath, value: Any) -> list[Edit]:
    """Gives an entry this value; it comes into the literal of the nearest section where it is absent.

    Raises:
        CannotEditError: the section isn't written out as a dict, or where the entry is set can't be told.
    """
    tree = _read(document)
    if path in document.keys:
        entry = entry_of(tree, document, path)
        new = argument(tree.module, python_code(value, _quote_near(tree, entry.name)))
        span = tree.span(entry.value.node)
        return tree.edits(Change(entry.value, in_place_of(new)), span, whole=True)
    known = next(path[:length] for length in range(len(path) - 1, -1, -1) if path[:length] in document.values)
    section = _section(tree, document, known)
    for name in reversed(path[len(known) + 1 :]):
        value = {name: value}
    return _added(tree, section, path[len(known) :][:1], value)


def delete_key(document: Document, path: NodePath, key: Span | None = None) -> list[Edit]:
    """Takes an entry out: the item of a dict, or the statement that sets it.

    With it goes what the literal of the section says about it, and the statements that set something inside of it.
    """
    tree = _read(document)
    entry = entry_of(tree, document, path, key)
    gone = [entry.whole, *_assigned_inside(tree, document, path)]
    if isinstance(entry.whole.node, cst.Assign):
        gone += _same_in_literal(tree, document, path)
    edits = [edit for found in gone for edit in tree.edits(*removal_of(tree, _without_update(found)))]
    check(applied(tree.source, edits))
    return edits


def rename_key(document: Document, path: NodePath, name: str) -> list[Edit]:
    """Gives an entry another name at the same place."""
    tree = _read(document)
    entry = entry_of(tree, document, path)
    if _assigned_inside(tree, document, path):
        raise CannotEditError(f"statements further down set something in `{path[-1]}`")
    if isinstance(entry.name.node, cst.Name):
        if not name.isidentifier() or iskeyword(name):
            raise CannotEditError(f"`{name}` can't be the name of an argument")
        new: cst.BaseExpression = cst.Name(name)
    else:
        new = cst.SimpleString(quoted(name, _quote_of(entry.name.node) or '"'))
    edits = tree.edits(Change(entry.name, in_place_of(new)), tree.span(entry.name.node), whole=True)
    if isinstance(entry.whole.node, cst.Assign):
        for old in _same_in_literal(tree, document, path):
            edits += tree.edits(*removal_of(tree, old))
    check(applied(tree.source, edits))
    return edits


def _assigned_inside(tree: Tree, document: Document, path: NodePath) -> list[Found]:
    """The statements that set something inside of an entry: `config["section"]["key"] = value`."""
    found: list[Found] = []
    for inner in document.keys:
        if len(inner) > len(path) and inner[: len(path)] == path:
            try:
                whole = entry_of(tree, document, inner).whole
            except CannotEditError:
                continue
            if isinstance(whole.node, cst.Assign) and all(one.node is not whole.node for one in found):
                found.append(whole)
    return found


def _without_update(found: Found) -> Found:
    """The whole of `config.update(key=value)` for its only argument."""
    item = found
    if isinstance(item.node, cst.DictElement) and isinstance(item.parent.node, cst.Dict):
        if len(item.parent.node.elements) > 1 or not isinstance(item.parent.parent.node, cst.Arg):
            return found
        item = item.parent.parent
    if not isinstance(item.node, cst.Arg) or not isinstance(item.parent.node, cst.Call):
        return found
    call = item.parent.node
    is_update = isinstance(call.func, cst.Attribute) and call.func.attr.value == "update" and len(call.args) == 1
    return item.parent.parent if is_update and isinstance(item.parent.parent.node, cst.Expr) else found


def _read(document: Document) -> Tree:
    if PurePath(document.source.path).suffix in _DATA:
        raise CannotEditError("the script loads the config from a file and changes it then")
    return read_tree(document.source)


# --- sections ---


def _section(tree: Tree, document: Document, path: NodePath) -> Found:
    """The literal, or the call of `dict`, that a section is written as."""
    found = entry_of(tree, document, path).value if path else _top(tree, document)
    node = found.node
    if isinstance(node, cst.Dict) or (isinstance(node, cst.Call) and _is_dict_call(node)):
        return found
    name = ".".join(map(str, path)) or "the config"
    raise CannotEditError(f"{name} is not written as a dict literal")


def _top(tree: Tree, document: Document) -> Found:
    places = tree.at(document.values[()])
    expressions = [found for found in places if isinstance(found.node, cst.BaseExpression)]
    if not expressions:
        raise CannotEditError("the config is not written as a dict literal")
    return expressions[0]


def _is_dict_call(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Name) and call.func.value == "dict"


def _added(tree: Tree, section: Found, names: NodePath, value: Any) -> list[Edit]:
    """A further entry at the end of a section."""
    name = str(names[0])
    quote = _quote_near(tree, section)
    new = argument(tree.module, python_code(value, quote))
    indent = tree.module.default_indent
    end = tree.span(section.node).end - 1
    if isinstance(section.node, cst.Call):
        return tree.edits(Change(section, lambda call: with_arguments(call, {name: new}, indent)), Span(end, end))
    key = cst.SimpleString(quoted(name, quote))

    def make(updated: cst.CSTNode) -> Changed:
        assert isinstance(updated, cst.Dict)
        row = row_of(updated)
        return put_back(updated, row.with_last(_like(updated, key, new), indent))

    return tree.edits(Change(section, make), Span(end, end))


def _like(holder: cst.Dict, key: cst.SimpleString, value: cst.BaseExpression) -> cst.DictElement:
    """A new entry with the blanks around its colon that the last one has."""
    element = cst.DictElement(key, value)
    for old in reversed(holder.elements):
        if isinstance(old, cst.DictElement):
            before, after = old.whitespace_before_colon, old.whitespace_after_colon
            if isinstance(before, cst.SimpleWhitespace) and isinstance(after, cst.SimpleWhitespace):
                short = after if len(after.value) < 2 and before.value == "" else cst.SimpleWhitespace(" ")
                return element.with_changes(whitespace_after_colon=short)
    return element


def _same_in_literal(tree: Tree, document: Document, path: NodePath) -> list[Found]:
    """The entry that a later assignment replaces, where the section's literal has it too."""
    try:
        section = _section(tree, document, path[:-1])
    except CannotEditError:
        return []
    items = section.node.elements if isinstance(section.node, cst.Dict) else ()
    named = [item for item in items if isinstance(item, cst.DictElement) and text_of(item.key) == path[-1]]
    return [Found(item, (*section.above, section.node)) for item in named]


# --- quotes ---


def _quote_near(tree: Tree, found: Found) -> str:
    """The quotes of the dict that something stands in, or else of the file's strings."""
    for outer in found.up():
        if isinstance(outer.node, cst.Dict):
            for element in outer.node.elements:
                quote = _quote_of(element.key) if isinstance(element, cst.DictElement) else None
                if quote:
                    return quote
    return _quote_of(found.node) or '"'


def _quote_of(node: cst.CSTNode) -> str | None:
    return node.quote[0] if isinstance(node, cst.SimpleString) else None

"""Where a script writes an entry of a dict: in a literal, as a keyword, or by an assignment further down."""

from __future__ import annotations

import ast
from dataclasses import dataclass

import libcst as cst

from dslint.documents.document import Document, NodePath
from dslint.documents.source import Span
from dslint.fixes.edit import CannotEditError
from dslint.fixes.python_code.tree import Found, Tree


@dataclass(frozen=True)
class Entry:
    """An entry of a dict as a script writes it.

    Attributes:
        name: the string, or the keyword, that names it.
        value: the expression behind it.
        whole: what goes when the entry goes: an item of a row, or the statement.
    """

    name: Found
    value: Found
    whole: Found


def entry_of(tree: Tree, document: Document, path: NodePath, key: Span | None = None) -> Entry:
    """The entry of a path, where the document says that it stands.

    Raises:
        CannotEditError: it is set in a way that can't be followed.
    """
    span = key or document.keys.get(path)
    name = path[-1] if path else None
    if span is None or not isinstance(name, str):
        raise CannotEditError("the script doesn't write that entry out")
    for found in reversed(tree.at(span)):
        entry = _entry_at(found, name)
        if entry is not None:
            return entry
    raise CannotEditError(f"where the script sets `{name}` can't be told")


def _entry_at(found: Found, name: str) -> Entry | None:
    """The entry whose key, assigned place, or call a node is."""
    node, parent = found.node, found.parent.node
    if isinstance(node, cst.Arg):
        return _of_argument(found, name)
    if isinstance(node, cst.Call):
        return _of_call(found, node, name)
    if isinstance(parent, cst.Arg) and parent.keyword is not None:
        return _of_argument(found.parent, name)
    if isinstance(parent, cst.DictElement) and node is parent.key:
        return _of_literal(found.parent, name)
    if isinstance(node, cst.Subscript):
        return _of_assignment(found, node, name)
    if isinstance(parent, cst.Index) and len(found.above) > 2:
        subscript = found.parent.parent.parent
        return (
            _of_assignment(subscript, subscript.node, name) if isinstance(subscript.node, cst.Subscript) else None
        )
    return None


def _of_literal(found: Found, name: str) -> Entry | None:
    node = found.node
    assert isinstance(node, cst.DictElement)
    if text_of(node.key) != name:
        return None
    return Entry(_inside(found, node.key), _inside(found, node.value), found)


def _of_argument(found: Found, name: str) -> Entry | None:
    """`dict(name=value)`, `config.update(name=value)`."""
    node = found.node
    if not isinstance(node, cst.Arg) or node.keyword is None or node.keyword.value != name:
        return None
    return Entry(_inside(found, node.keyword), _inside(found, node.value), found)


def _of_call(found: Found, call: cst.Call, name: str) -> Entry | None:
    """`config.update(name=value)`, `config.setdefault("name", value)`."""
    for arg in call.args:
        entry = _of_argument(_inside(found, arg), name)
        if entry is not None:
            return entry
    is_default = isinstance(call.func, cst.Attribute) and call.func.attr.value == "setdefault"
    if is_default and len(call.args) == 2 and text_of(call.args[0].value) == name:
        first, second = (_inside(found, arg) for arg in call.args)
        return Entry(_inside(first, call.args[0].value), _inside(second, call.args[1].value), found)
    return None


def _of_assignment(found: Found, subscript: cst.CSTNode, name: str) -> Entry | None:
    """`config["section"]["name"] = value`."""
    assert isinstance(subscript, cst.Subscript)
    target = found.parent
    statement = target.parent if target.above else target
    if not isinstance(target.node, cst.AssignTarget) or not isinstance(statement.node, cst.Assign):
        return None
    if len(subscript.slice) != 1 or not isinstance(subscript.slice[0].slice, cst.Index):
        return None
    element = subscript.slice[0]
    index = subscript.slice[0].slice
    if not isinstance(index, cst.Index) or text_of(index.value) != name:
        return None
    if len(statement.node.targets) != 1:
        raise CannotEditError("the statement assigns to something else too")
    key = Found(index.value, (*found.above, subscript, element, index))
    return Entry(key, _inside(statement, statement.node.value), statement)


def _inside(outer: Found, node: cst.CSTNode) -> Found:
    return Found(node, (*outer.above, outer.node))


def text_of(node: cst.CSTNode) -> str | None:
    """What a string literal says; None for everything else."""
    if not isinstance(node, cst.SimpleString | cst.ConcatenatedString):
        return None
    try:
        value = ast.literal_eval(cst.Module([]).code_for_node(node.with_changes(lpar=[], rpar=[])).strip())
    except (ValueError, SyntaxError):
        return None
    return value if isinstance(value, str) else None

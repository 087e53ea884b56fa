"""The names that a piece of Python code sets and uses."""

from __future__ import annotations

import ast
from dataclasses import dataclass

import libcst as cst

from dslint.fixes.python_code.tree import parsed

_LEAVING = (ast.Return, ast.Raise, ast.Break, ast.Continue)


@dataclass(frozen=True)
class Names:
    """What a piece of code does with names.

    Attributes:
        bound: the names that it sets.
        used: the names that it reads.
        leaves: whether it may end what stands around it.
    """

    bound: frozenset[str]
    used: frozenset[str]
    leaves: bool


def names_of(node: cst.CSTNode) -> Names:
    """The names that a statement or an expression sets and uses."""
    tree = parsed(cst.Module([]).code_for_node(node).lstrip())
    bound: set[str] = set()
    used: set[str] = set()
    for one in ast.walk(tree):
        if isinstance(one, ast.Name):
            (used if isinstance(one.ctx, ast.Load) else bound).add(one.id)
        elif isinstance(one, ast.alias):
            bound.add((one.asname or one.name).split(".")[0])
        elif isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(one.name)
    return Names(frozenset(bound), frozenset(used), any(isinstance(one, _LEAVING) for one in ast.walk(tree)))

"""Code from plain data and from text, as it fits into the place of other code."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

import libcst as cst

from dslint.documents.python_reader import Script
from dslint.documents.source import Source, Span
from dslint.fixes.edit import CannotEditError
from dslint.fixes.python_code.tree import Changed, parsed

_WITHOUT_BRACKETS = (cst.NamedExpr, cst.Yield, cst.Tuple)


def python_code(value: Any, quote: str = '"') -> str:
    """Plain data as Python writes it.

    Raises:
        CannotEditError: it is no plain data.
    """
    if isinstance(value, str):
        return quoted(value, quote)
    if value is None or isinstance(value, bool | int):
        return repr(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"float({quoted(repr(value), quote)})"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(python_code(part, quote) for part in value) + "]"
    if isinstance(value, dict):
        parts = (f"{python_code(key, quote)}: {python_code(part, quote)}" for key, part in value.items())
        return "{" + ", ".join(parts) + "}"
    raise CannotEditError(f"a {type(value).__name__} can't be written as Python code")


def quoted(text: str, quote: str = '"') -> str:
    """A string as Python writes it, between these quotes where that needs no escaping."""
    code = repr(text)
    other = "'" if quote == '"' else '"'
    if code[0] == other and quote not in code[1:-1] and other not in code[1:-1]:
        return quote + code[1:-1] + quote
    return code


def expression(module: cst.Module, text: str) -> cst.BaseExpression:
    """An expression from its text.

    Raises:
        CannotEditError: it is none.
    """
    try:
        return cst.parse_expression(text, config=module.config_for_parsing)
    except (cst.ParserSyntaxError, RecursionError):
        raise CannotEditError(f"`{text}` is no Python expression") from None


def is_expression(module: cst.Module, text: str) -> bool:
    """Whether a text is an expression."""
    try:
        expression(module, text)
    except CannotEditError:
        return False
    return True


def argument(module: cst.Module, text: str) -> cst.BaseExpression:
    """An expression from its text that can stand between commas."""
    value = expression(module, text)
    return in_brackets(value) if isinstance(value, _WITHOUT_BRACKETS) and not value.lpar else value


def in_brackets(value: cst.BaseExpression) -> cst.BaseExpression:
    """An expression in brackets of its own."""
    return value.with_changes(
        lpar=[cst.LeftParen(), *value.lpar],
        rpar=[*value.rpar, cst.RightParen()],
    )


def in_place_of(new: cst.BaseExpression) -> Callable[[cst.CSTNode], Changed]:
    """Puts an expression in the place of another, inside the brackets around that one."""

    def make(old: cst.CSTNode) -> Changed:
        assert isinstance(old, cst.BaseExpression)
        lpar, rpar = list(old.lpar), list(old.rpar)
        if isinstance(old, cst.Tuple | cst.GeneratorExp):  # the innermost brackets are its own
            lpar, rpar = lpar[:-1], rpar[1:]
        return new.with_changes(lpar=[*lpar, *new.lpar], rpar=[*new.rpar, *rpar])

    return make


def only_replaces(before: Source, after: Source, span: Span, text: str) -> bool:
    """Whether one file says what the other does, but for the expression at a span."""
    tree = parsed(before.text.removeprefix("\ufeff"))
    script = Script(before, tree, None)
    new = _parsed_expression(text)
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            parts = value if isinstance(value, list) else [value]
            for index, part in enumerate(parts):
                if isinstance(part, ast.expr) and script.whole_span(part) == span:
                    if hasattr(part, "ctx") and hasattr(new, "ctx"):
                        new.ctx = part.ctx
                    setattr(parent, field, new if not isinstance(value, list) else _with(value, index, new))
                    return ast.dump(tree) == ast.dump(parsed(after.text.removeprefix("\ufeff")))
    return False


def _parsed_expression(text: str) -> ast.expr:
    statement = parsed(f"(\n{text}\n)").body
    if len(statement) == 1 and isinstance(statement[0], ast.Expr):
        return statement[0].value
    raise CannotEditError(f"`{text}` is no Python expression")


def _with(values: list[Any], index: int, new: ast.expr) -> list[Any]:
    return [*values[:index], new, *values[index + 1 :]]

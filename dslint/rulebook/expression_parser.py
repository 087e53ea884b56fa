"""Turns the text of an expression into a tree; only needed when rules are loaded from their files."""

from __future__ import annotations

import ast

from dslint.rulebook.expression import FUNCTIONS, ExpressionError, Tree, Vocabulary

_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%"}
_COMPARE = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
}
_ABOUT_KEYS = ("given", "written")


def parse(text: str, vocabulary: Vocabulary, item: tuple[str, frozenset[str]] | None = None) -> Tree:
    """Checks an expression and turns it into a tree.

    Args:
        text: the expression.
        vocabulary: the facts there are.
        item: in a rule with `each`, the name of the loop's variable and the fields of its items.

    Raises:
        ExpressionError: the text is not an expression of the language.
    """
    return _Parser(text, vocabulary, item).parse()


class _Parser:
    """Translates one expression, with checks."""

    def __init__(self, text: str, vocabulary: Vocabulary, item: tuple[str, frozenset[str]] | None) -> None:
        self.text = text
        self.vocabulary = vocabulary
        self.item_name, self.item_fields = item or ("", frozenset())

    def parse(self) -> Tree:
        """The tree of the whole text."""
        try:
            body = ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            column = getattr(error, "offset", None) or 1
            raise ExpressionError(f"not an expression: {getattr(error, 'msg', error)}", column) from None
        return self.tree(body)

    def tree(self, node: ast.expr) -> Tree:
        """The tree of one node."""
        if isinstance(node, ast.Constant):
            return self.constant(node)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self.name(node)
        if isinstance(node, ast.BoolOp):
            kind = "and" if isinstance(node.op, ast.And) else "or"
            return [kind, [self.tree(value) for value in node.values]]
        if isinstance(node, ast.UnaryOp):
            return self.unary(node)
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            return ["operation", _BINARY[type(node.op)], [self.tree(node.left), self.tree(node.right)]]
        if isinstance(node, ast.Compare):
            return self.compare(node)
        if isinstance(node, (ast.List, ast.Tuple)):
            return ["list", "", [self.tree(element) for element in node.elts]]
        if isinstance(node, ast.Call):
            return self.call(node)
        raise self.error(node, "this is not part of the rule language")

    def constant(self, node: ast.Constant) -> Tree:
        """A literal: text, number, True, False or None."""
        if node.value is None or isinstance(node.value, (str, int, float)):
            return ["constant", node.value]
        raise self.error(node, "only texts, numbers, True, False and None can stand for themselves")

    def unary(self, node: ast.UnaryOp) -> Tree:
        """`not x` and `-x`."""
        operand = self.tree(node.operand)
        if isinstance(node.op, ast.Not):
            return ["not", operand]
        if isinstance(node.op, ast.USub):
            return ["operation", "-", [["constant", 0], operand]]
        raise self.error(node, "this is not part of the rule language")

    def compare(self, node: ast.Compare) -> Tree:
        """`a < b`, and chains such as `a < b <= c`."""
        operands = [self.tree(operand) for operand in [node.left, *node.comparators]]
        pairs: list[Tree] = [
            ["operation", _COMPARE[type(op)], [operands[index], operands[index + 1]]]
            for index, op in enumerate(node.ops)
        ]
        return pairs[0] if len(pairs) == 1 else ["and", pairs]

    def call(self, node: ast.Call) -> Tree:
        """`given(fact)`, `written(fact)` or one of the functions."""
        if not isinstance(node.func, ast.Name) or node.keywords:
            raise self.error(node, "only plain functions can be called")
        name = node.func.id
        if name in _ABOUT_KEYS:
            if len(node.args) != 1:
                raise self.error(node, f"{name}() takes one fact")
            tree = self.tree(node.args[0])
            if tree[0] != "fact":
                raise self.error(node, f"{name}() takes the name of a fact")
            return [name, tree[1]]
        if name not in FUNCTIONS:
            known = ", ".join([*_ABOUT_KEYS, *FUNCTIONS])
            raise self.error(node, f"there is no function `{name}`; there are {known}")
        return ["call", name, [self.tree(argument) for argument in node.args]]

    def name(self, node: ast.Name | ast.Attribute) -> Tree:
        """A fact, or a field of the loop's item."""
        name = self.dotted(node)
        first, _, rest = name.partition(".")
        if self.item_name and first == self.item_name:
            if rest not in self.item_fields:
                fields = ", ".join(sorted(self.item_fields))
                raise self.error(node, f"`{first}` has no field `{rest}`; it has {fields}")
            return ["field", rest]
        if not self.vocabulary.is_fact(name):
            near = self.vocabulary.near(name)
            hint = f": did you mean `{near}`?" if near else ""
            raise self.error(node, f"there is no fact `{name}`{hint}")
        return ["fact", name]

    def dotted(self, node: ast.expr) -> str:
        """`a.b.c` as text."""
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Attribute):
            return f"{self.dotted(node.value)}.{node.attr}"
        raise self.error(node, "a fact is a plain dotted name")

    def error(self, node: ast.AST, message: str) -> ExpressionError:
        """An error at a node."""
        return ExpressionError(message, getattr(node, "col_offset", 0) + 1)

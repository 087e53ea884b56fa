"""Random Python scripts, and what a change of one should do to its syntax tree."""

from __future__ import annotations

import ast
import copy
from random import Random
from typing import Any

from dslint.documents.python_reader import Script, read_script
from dslint.documents.source import Source, Span

NAMES = ("model", "engine", "args", "loss", "größe", "step")
COMMENTS = ("", "", "", "  # why", "\t# ünd", "  #")


class RandomScript:
    """Writes a script with odd blanks, comments and brackets."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.indent = random.choice(("    ", "  ", "\t"))
        self.end = random.choice(("\n", "\n", "\r\n"))
        self.lines: list[str] = []

    def text(self) -> str:
        """A whole script."""
        random = self.random
        if random.random() < 0.3:
            self.lines += ["#!/usr/bin/env python", "# -*- coding: utf-8 -*-"]
        if random.random() < 0.2:
            self.lines += ["\f"]
        for _ in range(random.randint(1, 4)):
            self.statement("", 2)
        text = "\n".join(self.lines) + random.choice(("\n", "\n", "", "\n\n# end\n"))
        return random.choice(("", "", "", "\ufeff")) + text.replace("\n", self.end)

    def statement(self, indent: str, depth: int) -> None:
        """A statement with what stands above it."""
        random = self.random
        for _ in range(random.choice((0, 0, 0, 1, 2))):
            self.lines.append(random.choice(("", f"{indent}# about it", f"{indent}#", "  ")))
        if random.random() < 0.05:
            self.lines.append("\f")
        kind = random.random()
        if depth and kind < 0.3:
            self.compound(indent, depth)
        elif kind < 0.4:
            self.lines.append(
                f"{indent}{self.simple(indent)}{random.choice((';', '; ', ' ;'))}{self.simple(indent)}"
            )
        else:
            self.lines.append(f"{indent}{self.simple(indent)}{random.choice(COMMENTS)}")

    def compound(self, indent: str, depth: int) -> None:
        """A statement with a body."""
        random = self.random
        head = random.choice(
            (
                f"if {self.value(1, indent)}:",
                f"for {random.choice(NAMES)} in {self.value(1, indent)} :",
                f"with {self.call(1, indent)} as x, {self.call(0, indent)}:",
                "def f(a, *b):",
                "while True:",
            )
        )
        if head.startswith("def") and random.random() < 0.5:
            self.lines += [f"{indent}@first(1)", f"{indent}# above", f"{indent}@second"]
        if random.random() < 0.15:
            self.lines.append(f"{indent}{head} {self.simple(indent)}{random.choice(COMMENTS)}")
            return
        self.lines.append(f"{indent}{head}{random.choice(COMMENTS)}")
        for _ in range(random.randint(1, 3)):
            self.statement(indent + self.indent, depth - 1)
        if random.random() < 0.2:
            self.lines.append(f"{indent}{self.indent}# at its end")
        if head.startswith("if") and random.random() < 0.25:
            self.lines.append(f"{indent}else:")
            self.statement(indent + self.indent, depth - 1)

    def simple(self, indent: str) -> str:
        """A simple statement."""
        random = self.random
        kind = random.random()
        if kind < 0.4:
            return self.call(2, indent)
        if kind < 0.8:
            equals = random.choice((" = ", "=", " += "))
            return f"{random.choice(NAMES)}{equals}{self.value(2, indent)}"
        return random.choice(("pass", "import os", 'x["key"] = 1', '"""text\n# inside"""'))

    def value(self, depth: int, indent: str) -> str:
        """An expression."""
        random = self.random
        kind = random.random()
        if depth and kind < 0.4:
            return self.call(depth - 1, indent)
        if depth and kind < 0.5:
            return f"{{{self.row([self.entry(depth - 1, indent) for _ in range(random.randint(0, 3))], indent)}}}"
        if depth and kind < 0.6:
            return f"[{self.row([self.value(depth - 1, indent) for _ in range(random.randint(0, 3))], indent)}]"
        if depth and kind < 0.7:
            sign = random.choice((" + ", "*", " and ", " == ", " ** "))
            return f"({self.value(depth - 1, indent)}{sign}{self.value(depth - 1, indent)})"
        if depth and kind < 0.75:
            return f"{random.choice(NAMES)}.{random.choice(NAMES)} if {self.value(0, indent)} else -1"
        return random.choice((*NAMES, "1", "'é'", '"a"', "(1)", "(1, 2)", "None", "f'{model}'", "not x"))

    def entry(self, depth: int, indent: str) -> str:
        """An entry of a dict."""
        key = self.random.choice(('"a"', "'b'", '"é"'))
        return f"{key}{self.random.choice((': ', ':', ' : '))}{self.value(depth, indent)}"

    def call(self, depth: int, indent: str) -> str:
        """A call with any arguments."""
        random = self.random
        arguments = [self.value(depth, indent) for _ in range(random.randint(0, 2))]
        equals = random.choice(("=", "=", " = "))
        names = random.sample(("lr", "config", "path", "tag"), random.randint(0, 3))
        arguments += [f"{name}{equals}{self.value(depth, indent)}" for name in names]
        if random.random() < 0.1:
            arguments.append("**more")
        function = random.choice((*NAMES, "engine.save_checkpoint", "deepspeed.initialize"))
        return f"{function}{random.choice(('', '', '', ' '))}({self.row(arguments, indent)})"

    def row(self, items: list[str], indent: str) -> str:
        """Items between brackets: in one line, or one a line with comments."""
        random = self.random
        style = random.random()
        if not items:
            return random.choice(("", "", " "))
        if style < 0.5:
            return random.choice((", ", ",", " , ")).join(items) + random.choice(("", "", ",", " "))
        deeper = indent + self.indent
        if style < 0.6:
            return (",\n" + deeper).join(items)
        lines = [random.choice(("\n", "  # begin\n"))]
        for index, item in enumerate(items):
            if random.random() < 0.2:
                lines.append(random.choice((f"{deeper}# next\n", "\n")))
            comma = "," if index < len(items) - 1 else random.choice((",", ""))
            lines.append(f"{deeper}{item}{comma}{random.choice(COMMENTS)}\n")
        return "".join([*lines, random.choice((f"{indent}# last\n", "")), indent])


class Mirror:
    """The syntax tree of a script, for making the change on it that an edit should have made."""

    def __init__(self, source: Source) -> None:
        self.script = read(source)
        assert self.script.tree is not None
        self.tree = copy.deepcopy(self.script.tree)
        self.parents: dict[ast.AST, tuple[ast.AST, str, int | None]] = {}
        for parent in ast.walk(self.tree):
            for field, value in ast.iter_fields(parent):
                for index, part in enumerate(value if isinstance(value, list) else [value]):
                    if isinstance(part, ast.AST):
                        self.parents[part] = parent, field, index if isinstance(value, list) else None

    def nodes(self, *kinds: type[Any]) -> list[Any]:
        """The nodes of some kinds that have a place, outside of f-strings."""
        return [node for node in self.parents if isinstance(node, kinds) and not self._in_text(node)]

    def _in_text(self, node: ast.AST) -> bool:
        parent = self.parents.get(node)
        while parent is not None:
            if isinstance(parent[0], ast.JoinedStr):
                return True
            parent = self.parents.get(parent[0])
        return False

    def span(self, node: ast.AST) -> Span:
        """Where a node stands, all of it."""
        return self.script.whole_span(node)

    def replace(self, node: ast.AST, *new: ast.AST) -> None:
        """Puts other nodes in the place of one; none takes it out of its list."""
        parent, field, index = self.parents[node]
        if index is None:
            setattr(parent, field, new[0])
            return
        values = getattr(parent, field)
        at = next(number for number, one in enumerate(values) if one is node)
        values[at : at + 1] = new
        if isinstance(node, ast.stmt) and not values and not isinstance(parent, ast.Module):
            values.append(ast.Pass())

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement around a node."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node][0]
        return node

    @property
    def dump(self) -> str:
        """What the script says."""
        return ast.dump(self.tree)


def read(source: Source) -> Script:
    """A script, parsed."""
    return read_script(source)


def dump(source: Source) -> str:
    """What a script says."""
    tree = read(source).tree
    assert tree is not None, source.data
    return ast.dump(tree)

"""Reads a script: from its syntax tree to what it does."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dslint.documents.python_reader import Script
from dslint.runs.script.events import Call, Import, Jump, Read, Store
from dslint.runs.script.scope import Scope
from dslint.runs.script.statements import Statements
from dslint.runs.script.values import NOTHING, Entry, Function, Table, Thing, Value

DEEPEST = 3_000
"""Python frames that reading may take: expressions of thousands of operators are real, in generated code."""


@dataclass(frozen=True)
class Deeds:
    """What a script does, in order.

    Attributes:
        script: the file.
        calls: every call, those of the file's own functions left out.
        stores: assignments to attributes and elements of things.
        reads: looks at watched attributes.
        jumps: returns, raises, breaks and continues.
        imports: the modules that it and its modules import, with the first statement that does.
        modules: the user's own modules that were read along.
        is_complete: whether all of it was read.
        taker: who takes the config of the run at hand, where the script has several runs in it ("initialize",
            "trainer", …); None where it has one.
    """

    script: Script
    calls: tuple[Call, ...]
    stores: tuple[Store, ...]
    reads: tuple[Read, ...]
    jumps: tuple[Jump, ...]
    imports: Mapping[str, Import]
    modules: tuple[Script, ...]
    is_complete: bool
    taker: str | None = None

    @cached_property
    def parents(self) -> Mapping[ast.AST, ast.AST]:
        """What each node of its files stands in."""
        trees = [one.tree for one in (self.script, *self.modules) if one.tree is not None]
        return {child: node for tree in trees for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


MOST_MODULES = 15
"""Modules of the user's own that are read along with a script."""

INSTALLED = frozenset(
    [
        "accelerate",
        "datasets",
        "deepspeed",
        "lightning",
        "numpy",
        "peft",
        "pytorch_lightning",
        "torch",
        "transformers",
        "trl",
    ]
)
"""Packages that are never looked for beside a script."""


@dataclass(frozen=True)
class Surroundings:
    """The files around a script.

    Attributes:
        data: gives what a JSON file that the script loads holds, or NOTHING.
        module: gives the user's own module of a dotted name, level of relative import and importing file.
    """

    data: Callable[[str], Any] = lambda path: NOTHING
    module: Callable[[str, int, str], Script | None] = lambda name, level, path: None


@dataclass(eq=False)
class _Reading(Statements):
    """Knows how to look into other files."""

    main: Script | None = None
    around: Surroundings = field(default_factory=Surroundings)
    modules: dict[str, Thing] = field(default_factory=dict)
    module_scripts: list[Script] = field(default_factory=list)

    def module(self, name: str, level: int, scope: Scope) -> Thing | None:
        """A module of the user's own, read along; None for one that is installed, or can't be found."""
        if name.partition(".")[0] in INSTALLED or self.main is None or self.has_enough:
            return None
        script = self.around.module(name, level, scope.file)
        if script is None or script.tree is None or script.source.path == self.main.source.path:
            return None
        path = script.source.path
        if path not in self.modules:
            if len(self.modules) >= MOST_MODULES:
                return None
            self.modules[path] = Thing("module", name)
            self._read_module(script, name, self.modules[path])
        return self.modules[path]

    def _read_module(self, script: Script, name: str, module: Thing) -> None:
        """Go through a module; nothing of what surrounds the import surrounds its statements."""
        assert self.main is not None
        assert script.tree is not None
        self.main.adopt(script)
        self.module_scripts.append(script)
        scope = Scope(path=script.source.path)
        scope.values.update(__name__=name, __file__=script.source.path)
        module.attributes = scope.values
        before = (self.guards, self.loops, self.contexts, self.stack, self.returned)
        self.guards, self.loops, self.contexts, self.stack, self.returned = (), (), (), (), []
        self.execute_block(script.tree.body, scope)
        module.attributes = scope.values
        self.guards, self.loops, self.contexts, self.stack, self.returned = before

    def load_table(self, path: Value, call: Call) -> Value:
        """The table in a JSON file: its own, so that the script may change it; Thing where it can't be told."""
        path = path.attributes.get("default", path) if isinstance(path, Thing) else path
        data = self.around.data(path) if isinstance(path, str) else NOTHING
        if not isinstance(data, dict):
            return Thing("json", "json.load", call.node, (path,))
        table = _table(data, call.node, len(self.guards))
        table.file = path
        return table


def _table(data: dict[str, Any], node: ast.AST, depth: int) -> Table:
    entries = {
        key: Entry(_table(value, node, depth) if isinstance(value, dict) else value, None, None)
        for key, value in data.items()
    }
    return Table(node, entries, depth=depth)


@dataclass(frozen=True)
class OneOfSeveral:
    """One of several runs that a script has in it, each with a config of its own.

    Attributes:
        taker: who takes its config ("initialize", "trainer", …).
        engines: the calls of deepspeed.initialize that belong to it.
    """

    taker: str
    engines: frozenset[ast.AST]


def read_deeds(
    script: Script,
    arguments: Sequence[str | None] | None,
    around: Surroundings | None = None,
    one: OneOfSeveral | None = None,
) -> Deeds:
    """What a script does.

    Args:
        script: the file, parsed.
        arguments: the words after the script in the launch command (None: one that can't be told); None as a
            whole where no command is known.
        around: the files around it; None for a script by itself.
        one: which of the script's runs; None where it has only one.
    """
    chosen = None if one is None else one.engines
    reading = _Reading(script.source.path, arguments, chosen, main=script, around=around or Surroundings())
    is_complete = script.tree is not None
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(max(limit, DEEPEST))
        if script.tree is not None:
            _read_module(reading, script.tree)
    except RecursionError:
        is_complete = False
    finally:
        sys.setrecursionlimit(limit)
    return Deeds(
        script,
        tuple(reading.calls),
        tuple(reading.stores),
        tuple(reading.reads),
        tuple(reading.jumps),
        reading.imports,
        tuple(reading.module_scripts),
        is_complete and not reading.has_enough,
        None if one is None else one.taker,
    )


def _read_module(reading: _Reading, tree: ast.Module) -> None:
    scope = Scope(path=reading.path)
    scope.values.update(__name__="__main__", __file__=reading.path)
    reading.execute_block(tree.body, scope)
    _read_what_nobody_calls(reading)


def _read_what_nobody_calls(reading: _Reading) -> None:
    """Functions and methods that other files, or a framework, call."""
    reading.is_called = False
    reading.run_by_script = frozenset(reading.entered)  # known already, with the values that the script gives them
    for made in reading.classes_seen:
        if reading.main is not None and made.node in reading.main.owners and made.instance.call is None:
            continue  # a class of another file of which nothing is made here
        for member in list(made.members.values()):
            if isinstance(member, Function) and member.node not in reading.entered:
                reading.enter(Function(member.node, member.scope, made.instance), (), {}, member.node)
    for node, function in list(reading.functions_seen.items()):
        is_own = reading.main is None or node not in reading.main.owners
        if is_own and node not in reading.entered:
            reading.enter(function, (), {}, node)

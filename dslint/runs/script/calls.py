"""The calls of a script: of its own functions, which are gone through, and of everything else, which is noted."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dslint.runs.script import known_calls
from dslint.runs.script.events import Call
from dslint.runs.script.expressions import Expressions
from dslint.runs.script.known_apis import PARAMETER_KINDS, kind_of, kind_of_instance
from dslint.runs.script.scope import Scope, either
from dslint.runs.script.state import DEEPEST_CALL
from dslint.runs.script.values import NOTHING, Class, Entry, Function, Named, Table, Thing, Value

MOST_CALLS = 12
"""How often one function of the file is gone through."""

STARTERS = frozenset(
    [
        "accelerate.notebook_launcher",
        "fire.Fire",
        "torch.multiprocessing.spawn",
        "typer.run",
        "absl.app.run",
        "ray.remote",
    ]
)
"""Functions that call the function they are given."""


@dataclass(eq=False)
class Calls(Expressions):
    """Goes through calls."""

    by_node: dict[ast.AST, Call] = field(default_factory=dict)
    returned: list[list[Value]] = field(default_factory=list)
    times: dict[ast.AST, int] = field(default_factory=dict)
    active: set[ast.AST] = field(default_factory=set)
    run_by_script: frozenset[ast.AST] = frozenset()
    _spread: dict[str, ast.AST] = field(default_factory=dict)

    def execute_block(self, body: Sequence[ast.stmt], scope: Scope) -> bool:
        """Go through statements; whether they surely leave the block."""
        raise NotImplementedError

    def load_table(self, path: Value, call: Call) -> Value:
        """The table in a JSON file."""
        raise NotImplementedError

    def call(self, node: ast.Call, scope: Scope) -> Value:
        """What a call gives; it becomes a step of the trace unless it is one of the file's own functions."""
        receiver, callee, name = self._callee(node.func, scope)
        positional, keywords, is_complete = self._arguments(node, scope)
        if isinstance(callee, Function):
            return self.enter(callee, positional, keywords, node)
        if isinstance(callee, Class):
            return self._instantiate(callee, positional, keywords, is_complete, node)
        call = Call(name, receiver, positional, keywords, is_complete, node, self.spot)
        call.spread = self._spread
        self.calls.append(call)
        self.by_node[node] = call
        call.result = self._result(call)
        if isinstance(call.result, Thing) and call.result.call is None:
            call.result.call = call
            known_calls.give_settings(call.result, call)
        return call.result

    def _callee(self, func: ast.expr, scope: Scope) -> tuple[Value, Value, str]:
        """The receiver of a method (or None), the function if it is of this file, and the name."""
        if isinstance(func, ast.Attribute):
            owner = self.evaluate(func.value, scope)
            if isinstance(owner, Named):
                return None, None, f"{owner.name}.{func.attr}"
            if isinstance(owner, Class):
                return owner, owner.members.get(func.attr), func.attr
            if isinstance(owner, Thing):
                found = owner.attributes.get(func.attr) or self.member(owner, func.attr)
                if isinstance(found, (Function, Class)):
                    return owner, found, func.attr
                if isinstance(found, Thing) and found.kind != "attribute":
                    return found, None, "__call__"
            return owner if owner is not None else Thing("constant", "None"), None, func.attr
        value = self.evaluate(func, scope)
        if isinstance(value, Named):
            return None, None, value.name
        if isinstance(value, (Function, Class)):
            return None, value, ""
        if isinstance(value, (Thing, tuple)):
            return value, None, "__call__"
        return Thing("constant", "", func), None, "__call__"

    def _arguments(self, node: ast.Call, scope: Scope) -> tuple[tuple[Value, ...], dict[str, Value], bool]:
        positional: list[Value] = []
        is_complete = True
        for part in node.args:
            value = self.evaluate(part.value if isinstance(part, ast.Starred) else part, scope)
            if not isinstance(part, ast.Starred):
                positional.append(value)
            elif isinstance(value, (tuple, list)):
                positional += value
            else:
                is_complete = False
        keywords: dict[str, Value] = {}
        spread: dict[str, ast.AST] = {}
        for keyword in node.keywords:
            value = self.evaluate(keyword.value, scope)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif isinstance(value, Table):
                entries = {key: entry for key, entry in value.entries.items() if isinstance(key, str)}
                keywords.update({key: entry.value for key, entry in entries.items()})
                spread |= {key: entry.value_node for key, entry in entries.items() if entry.value_node is not None}
                is_complete = is_complete and not value.open
            else:
                is_complete = False
        self._spread = spread
        return tuple(positional), keywords, is_complete

    def _result(self, call: Call) -> Value:
        known = known_calls.result(self, call)
        if known is not known_calls.NOT_KNOWN:
            return known
        if call.dotted in STARTERS and call.receiver is None:
            self._start(call)
        inputs = (*call.positional, *call.keywords.values())
        if call.receiver is None:
            return Thing(kind_of(call.dotted), call.dotted, call.node, inputs)
        kind = known_calls.method_kind(call)
        return Thing(kind, call.name, call.node, (call.receiver, *inputs))

    def _start(self, call: Call) -> None:
        for value in (*call.positional, *call.keywords.values()):
            if isinstance(value, Function):
                self.enter(value, (), {}, call.node)

    # --- functions and classes of the file ---

    def enter(
        self, function: Function, positional: Sequence[Value], keywords: Mapping[str, Value], node: ast.AST
    ) -> Value:
        """Go through a function of the file; what it returns."""
        definition = function.node
        count = self.times.get(definition, 0)
        too_deep = len(self.stack) >= DEEPEST_CALL or definition in self.active
        was_run = not self.is_called and definition in self.run_by_script
        if self.has_enough or count >= MOST_CALLS or too_deep or was_run:
            return Thing("result", _name_of(definition), node, (*positional, *keywords.values()))
        self.times[definition] = count + 1
        self.entered.add(definition)
        given = (function.bound, *positional) if function.bound is not None else tuple(positional)
        scope = Scope(function.scope)
        self._bind_parameters(definition.args, given, keywords, scope, definition, node)
        if node is definition:  # nobody calls it here: what it is given is anybody's guess
            self._forget_rest(definition.args, scope)
        return self._run(definition, scope)

    def _forget_rest(self, parameters: ast.arguments, scope: Scope) -> None:
        """`*args` and `**kwargs` of a function that other files call may hold anything."""
        if parameters.vararg:
            scope.values[parameters.vararg.arg] = Thing("parameter", parameters.vararg.arg, parameters.vararg)
        if parameters.kwarg:
            scope.values[parameters.kwarg.arg].open = True

    def _run(self, definition: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: Scope) -> Value:
        before = self.stack
        self.stack = (*before, _name_of(definition))
        self.active.add(definition)
        try:
            if isinstance(definition, ast.Lambda):
                return self.evaluate(definition.body, scope)
            self.returned.append([])
            self.execute_block(definition.body, scope)
            return _combined(self.returned.pop())
        finally:
            self.active.discard(definition)
            self.stack = before

    def _bind_parameters(
        self,
        parameters: ast.arguments,
        positional: Sequence[Value],
        keywords: Mapping[str, Value],
        scope: Scope,
        definition: ast.AST,
        caller: ast.AST,
    ) -> None:
        plain = [*parameters.posonlyargs, *parameters.args]
        defaults = dict(zip([one.arg for one in plain][::-1], parameters.defaults[::-1], strict=False))
        defaults |= {
            one.arg: default
            for one, default in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
            if default is not None
        }
        for index, parameter in enumerate([*plain, *parameters.kwonlyargs]):
            name = parameter.arg
            if index < len(plain) and index < len(positional):
                value = positional[index]
            elif name in keywords:
                value = keywords[name]
            elif name in defaults:
                value = self._default(defaults[name], parameter, scope)
            else:
                value = self._parameter(parameter, scope)
            scope.values[name] = value
        if parameters.vararg:
            scope.values[parameters.vararg.arg] = tuple(positional[len(plain) :])
        if parameters.kwarg:
            known = {one.arg for one in (*plain, *parameters.kwonlyargs)}
            nodes = {one.arg: one.value for one in getattr(caller, "keywords", ())}
            table = Table(definition, {}, depth=len(self.guards))
            for key, value in keywords.items():
                if key not in known:
                    node = nodes.get(key)
                    table.entries[key] = Entry(value, node, node)
            scope.values[parameters.kwarg.arg] = table

    def _default(self, node: ast.expr, parameter: ast.arg, scope: Scope) -> Value:
        """The default of a parameter; in a function that only other files call, they may give something else."""
        value = self.evaluate(node, scope.above or scope)
        if self.is_called or self.stack:
            return value
        return Thing("parameter", parameter.arg, parameter, (value,), {"default": value})

    def _parameter(self, parameter: ast.arg, scope: Scope) -> Thing:
        """A parameter that nobody gave: what its annotation says."""
        annotated = None if parameter.annotation is None else self.evaluate(parameter.annotation, scope)
        kind = "parameter"
        if isinstance(annotated, Named):
            kind = PARAMETER_KINDS.get(annotated.name, "parameter")
            if kind == "parameter" and kind_of(annotated.name) in ("training_args", "trainer"):
                kind = kind_of(annotated.name)
        elif isinstance(annotated, Class):
            kind = kind_of_instance(annotated.bases)
        return Thing(kind, parameter.arg, parameter)

    def read_property(self, bound: Function) -> Value:
        """What a property gives."""
        return self.enter(bound, (), {}, bound.node.body[0] if isinstance(bound.node.body, list) else bound.node)

    def _instantiate(
        self,
        made_of: Class,
        positional: tuple[Value, ...],
        keywords: Mapping[str, Value],
        is_complete: bool,
        node: ast.Call,
    ) -> Value:
        kind = kind_of_instance(made_of.bases)
        base = next((name for name in made_of.bases if kind_of(name) == kind), made_of.node.name)
        call = Call(base, None, positional, keywords, is_complete, node, self.spot)
        self.calls.append(call)
        self.by_node[node] = call
        made = known_calls.result(self, call) if kind != "instance" else known_calls.NOT_KNOWN
        if not isinstance(made, Thing):
            made = Thing(kind, made_of.node.name, node, (*positional, *keywords.values()))
        made.attributes["__class__"] = made_of
        made.call = call
        known_calls.fill_fields(made, made_of, positional, keywords)
        known_calls.give_settings(made, call)
        init = made_of.members.get("__init__")
        if isinstance(init, Function):
            self.enter(Function(init.node, init.scope, made), positional, keywords, node)
        made_of.instance = made
        call.result = made
        return made

    # --- tables ---

    def put(self, table: Table, key: Value, entry: Entry) -> None:
        """Set an entry; under a condition that the table's making did not have, its value is unknown."""
        if not isinstance(key, (str, int, float, bool)):
            table.open = True
            return
        if len(self.guards) > table.depth:
            before = table.entries[key].value if key in table.entries else NOTHING
            missing = Thing("either", "maybe", entry.value_node, (entry.value,))
            value = missing if before is NOTHING else either(before, entry.value)
            entry = Entry(value, entry.key_node, entry.value_node)
        table.entries[key] = entry

    def remove(self, table: Table, key: Value) -> None:
        """Delete an entry; under a condition its value is unknown."""
        if len(self.guards) <= table.depth:
            table.entries.pop(key, None)
        elif key in table.entries:
            entry = table.entries[key]
            unknown = Thing("either", "maybe", entry.value_node, (entry.value,))
            table.entries[key] = Entry(unknown, entry.key_node, entry.value_node)


def _name_of(definition: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> str:
    return "<lambda>" if isinstance(definition, ast.Lambda) else definition.name


def _combined(values: list[Value]) -> Value:
    if not values:
        return None
    result = values[0]
    for value in values[1:]:
        result = either(result, value)
    return result

"""What the statements of a script do: they bind names, branch, repeat, define."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from dslint.runs.script.calls import Calls
from dslint.runs.script.events import Jump, Store
from dslint.runs.script.expressions import item_of, merge, truth
from dslint.runs.script.known_apis import kind_of_instance
from dslint.runs.script.scope import Scope, either, merged
from dslint.runs.script.values import NOTHING, Class, Entry, Function, Named, Table, Thing, Value, is_known


class Statements(Calls):
    """Executes statements abstractly."""

    def execute_block(self, body: Sequence[ast.stmt], scope: Scope) -> bool:
        """Go through statements; whether they surely leave the block (return, raise, continue, break)."""
        before = self.guards
        try:
            for statement in body:
                if self.has_enough:
                    return False
                self.steps += 1
                if self._execute(statement, scope):
                    return True
            return False
        finally:
            self.guards = before

    def _execute(self, node: ast.stmt, scope: Scope) -> bool:
        method = getattr(self, f"_do_{type(node).__name__.lower()}", None)
        return bool(method(node, scope)) if method is not None else False

    # --- values ---

    def _do_expr(self, node: ast.Expr, scope: Scope) -> bool:
        self.evaluate(node.value, scope)
        call = self.by_node.get(node.value)
        if call is not None:
            call.is_dropped = True
            return call.name in ("sys.exit", "exit", "quit", "os._exit")
        return False

    def _do_assign(self, node: ast.Assign, scope: Scope) -> None:
        value = self.evaluate(node.value, scope)
        call = self.by_node.get(node.value)
        for target in node.targets:
            if call is not None and isinstance(target, (ast.Tuple, ast.List)):
                has_star = any(isinstance(part, ast.Starred) for part in target.elts)
                call.unpacked = None if has_star else len(target.elts)
            self.bind(target, value, scope)

    def _do_annassign(self, node: ast.AnnAssign, scope: Scope) -> None:
        if node.value is not None:
            self.bind(node.target, self.evaluate(node.value, scope), scope)

    def _do_augassign(self, node: ast.AugAssign, scope: Scope) -> None:
        before = self.evaluate(node.target, scope)
        value = self.evaluate(node.value, scope)
        if isinstance(before, Table):
            merge(before, value)
        elif self.loops and isinstance(before, (int, float)):
            self.bind(node.target, Thing("operation", "counted", node, (before, value)), scope)
        else:
            self.bind(node.target, self.operation(node.op, before, value, node), scope)

    def _do_delete(self, node: ast.Delete, scope: Scope) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.stores.append(Store(scope.find(target.id), "del", None, target, self.spot))
            elif isinstance(target, ast.Subscript):
                owner, key = self.evaluate(target.value, scope), self.evaluate(target.slice, scope)
                if isinstance(owner, Table) and is_known(key) and not isinstance(key, list):
                    self.remove(owner, key)

    def bind(self, target: ast.expr, value: Value, scope: Scope) -> None:
        """Assign a value to a name, an attribute, an element, or to several of them."""
        if isinstance(target, ast.Name):
            scope.bind(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target.elts, value, scope)
        elif isinstance(target, ast.Attribute):
            self._store(self.evaluate(target.value, scope), target.attr, value, target)
        elif isinstance(target, ast.Subscript):
            owner = self.evaluate(target.value, scope)
            index = None if isinstance(target.slice, ast.Slice) else self.evaluate(target.slice, scope)
            self._store_element(owner, index, value, target)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, value, scope)

    def _unpack(self, targets: Sequence[ast.expr], value: Value, scope: Scope) -> None:
        stars = [index for index, part in enumerate(targets) if isinstance(part, ast.Starred)]
        if isinstance(value, (tuple, list)) and stars and len(value) >= len(targets) - 1:
            before, after = stars[0], len(targets) - stars[0] - 1
            middle = list(value[before : len(value) - after])
            value = [*value[:before], middle, *value[len(value) - after :]]
        if isinstance(value, (tuple, list)) and len(value) == len(targets):
            parts = list(value)
        else:
            parts = [Thing("element", str(index), part, (value,)) for index, part in enumerate(targets)]
        for target, part in zip(targets, parts, strict=True):
            self.bind(target, part, scope)

    def _store(self, owner: Value, name: str, value: Value, node: ast.AST) -> None:
        self.stores.append(Store(owner, name, value, node, self.spot))
        if isinstance(owner, Thing):
            before = owner.attributes.get(name)
            is_sure = before is None or not self.guards
            owner.attributes[name] = value if is_sure else either(before, value)
        elif isinstance(owner, Class):
            owner.members[name] = value

    def _store_element(self, owner: Value, index: Value, value: Value, node: ast.Subscript) -> None:
        if isinstance(owner, Table):
            self.put(owner, index, Entry(value, node, node))
        elif isinstance(owner, list) and isinstance(index, int) and -len(owner) <= index < len(owner):
            owner[index] = value
        else:
            self.stores.append(Store(owner, "[]", value, node, self.spot))

    # --- branches ---

    def _do_if(self, node: ast.If, scope: Scope) -> bool:
        test = self.evaluate(node.test, scope)
        known = truth(test)
        if known is not None:
            return self.execute_block(node.body if known else node.orelse, scope)
        start = dict(scope.values)
        with self.guarded(test, True, node):
            body_leaves = self.execute_block(node.body, scope)
        after_body, scope.values = scope.values, start
        if node.orelse:
            scope.values = dict(start)
            with self.guarded(test, False, node):
                else_leaves = self.execute_block(node.orelse, scope)
        else:
            else_leaves = False
        after_else = scope.values
        scope.values = after_else if body_leaves else after_body if else_leaves else merged(after_body, after_else)
        if body_leaves != else_leaves:
            self._guard_the_rest(test, else_leaves, node)
        return body_leaves and else_leaves

    def _guard_the_rest(self, test: Value, holds: bool, node: ast.AST) -> None:
        """After `if …: return`, the rest of the block is reached only where the condition is false."""
        from dslint.runs.script.events import Guard

        self.guards = (*self.guards, Guard(test, holds, node))

    def _do_match(self, node: ast.Match, scope: Scope) -> None:
        subject = self.evaluate(node.subject, scope)
        after: dict[str, Value] | None = None
        start = scope.values
        for case in node.cases:
            scope.values = dict(start)
            with self.guarded(Thing("case", "match", case.pattern, (subject,)), True, node):
                self.execute_block(case.body, scope)
            after = scope.values if after is None else merged(after, scope.values)
        scope.values = start if after is None else merged(start, after)

    def _do_try(self, node: ast.Try, scope: Scope) -> bool:
        self.tries += bool(node.handlers)
        leaves = self.execute_block([*node.body, *node.orelse], scope)
        self.tries -= bool(node.handlers)
        after = scope.values
        for handler in node.handlers:
            scope.values = dict(after)
            caught = Thing("exception", "except", handler)
            if handler.name:
                scope.values[handler.name] = caught
            with self.guarded(caught, True, handler):
                self.execute_block(handler.body, scope)
            after = {**scope.values, **after}
        scope.values = after
        self.execute_block(node.finalbody, scope)
        return leaves and not node.handlers

    _do_trystar = _do_try

    # --- loops and contexts ---

    def _do_for(self, node: ast.For | ast.AsyncFor, scope: Scope) -> None:
        over = self.evaluate(node.iter, scope)
        self._forget_counters(node, scope)
        start = dict(scope.values)
        self.bind(node.target, item_of(over, node), scope)
        with self.repeated(node, over):
            self.execute_block(node.body, scope)
        scope.values = merged(scope.values, start)
        self.execute_block(node.orelse, scope)

    _do_asyncfor = _do_for

    def _do_while(self, node: ast.While, scope: Scope) -> None:
        self._forget_counters(node, scope)
        test = self.evaluate(node.test, scope)
        if truth(test) is False:
            return
        with self.repeated(node, test):
            self.execute_block(node.body, scope)
        self.execute_block(node.orelse, scope)

    def _forget_counters(self, node: ast.For | ast.AsyncFor | ast.While, scope: Scope) -> None:
        """A constant that the loop changes is no constant inside of it."""
        for name in _assigned(node.body):
            value = scope.values.get(name)
            if value is not None and is_known(value) and not isinstance(value, (tuple, list)):
                scope.values[name] = Thing("operation", "counted", node, (value,))
            elif name in scope.values and value is None:
                scope.values[name] = Thing("either", "counted", node, (None,))

    def _do_with(self, node: ast.With | ast.AsyncWith, scope: Scope) -> bool:
        before = self.contexts
        for item in node.items:
            value = self.evaluate(item.context_expr, scope)
            self.contexts = (*self.contexts, value)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, value, scope)
        leaves = self.execute_block(node.body, scope)
        self.contexts = before
        return leaves

    _do_asyncwith = _do_with

    # --- jumps ---

    def _do_return(self, node: ast.Return, scope: Scope) -> bool:
        value = self.evaluate(node.value, scope)
        if self.returned:
            self.returned[-1].append(value)
        self.jumps.append(Jump("return", node, self.spot))
        return True

    def _do_raise(self, node: ast.Raise, scope: Scope) -> bool:
        self.evaluate(node.exc, scope)
        self.jumps.append(Jump("raise", node, self.spot))
        return True

    def _do_continue(self, node: ast.Continue, scope: Scope) -> bool:
        self.jumps.append(Jump("continue", node, self.spot))
        return True

    def _do_break(self, node: ast.Break, scope: Scope) -> bool:
        self.jumps.append(Jump("break", node, self.spot))
        return True

    def _do_assert(self, node: ast.Assert, scope: Scope) -> None:
        self.evaluate(node.test, scope)

    # --- definitions ---

    def _do_global(self, node: ast.Global | ast.Nonlocal, scope: Scope) -> None:
        scope.outer_names.update(node.names)

    _do_nonlocal = _do_global

    def _do_import(self, node: ast.Import, scope: Scope) -> None:
        for alias in node.names:
            self.note_import(alias.name, node)
            module = self.module(alias.name, 0, scope)
            top = alias.name.partition(".")[0]
            if module is not None and (alias.asname or top == alias.name):
                scope.bind(alias.asname or top, module)
            elif alias.asname:
                scope.bind(alias.asname, Named(alias.name))
            else:
                scope.bind(top, Named(top))

    def _do_importfrom(self, node: ast.ImportFrom, scope: Scope) -> None:
        name = node.module or ""
        dotted = "." * node.level + name
        self.note_import(dotted, node)
        module = self.module(name, node.level, scope) if name or node.level else None
        for alias in node.names:
            if module is not None and alias.name == "*":
                scope.values.update({key: value for key, value in module.attributes.items() if key[:1] != "_"})
                continue
            found = NOTHING if module is None else module.attributes.get(alias.name, NOTHING)
            if found is NOTHING:
                inner = f"{name}.{alias.name}" if name else alias.name
                found = self.module(inner, node.level, scope) or NOTHING
            if found is NOTHING:
                found = Named(f"{dotted}{'' if dotted.endswith('.') else '.'}{alias.name}")
            scope.bind(alias.asname or alias.name, found)

    def module(self, name: str, level: int, scope: Scope) -> Thing | None:
        """A module of the user's own, read along; None for one that is installed, or can't be found."""
        raise NotImplementedError

    def _do_functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        function = Function(node, scope)
        self.functions_seen[node] = function
        scope.bind(node.name, function)

    _do_asyncfunctiondef = _do_functiondef

    def _do_classdef(self, node: ast.ClassDef, scope: Scope) -> None:
        bases = [self.evaluate(base, scope) for base in node.bases if not isinstance(base, ast.Starred)]
        names: list[str] = []
        members: dict[str, Value] = {}
        fields: dict[str, Value] = {}
        for base in reversed(bases):
            if isinstance(base, Class):
                members.update(base.members)
                fields.update(base.fields)
        for base in bases:
            names += base.bases if isinstance(base, Class) else [base.name] if isinstance(base, Named) else []
        instance = Thing(kind_of_instance(tuple(names)), node.name, node)
        made = Class(node, tuple(names), members, fields, instance)
        instance.attributes["__class__"] = made
        self.classes_seen.append(made)
        inner = Scope(scope)
        for statement in node.body:
            self._define(statement, made, inner)
        scope.bind(node.name, made)

    def _define(self, node: ast.stmt, made: Class, scope: Scope) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            # A method sees the names around the class, not those inside of it.
            made.members[node.name] = Function(node, scope.above)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            value = Thing("nothing", "") if node.value is None else self.evaluate(node.value, scope)
            made.fields[node.target.id] = value
            made.members[node.target.id] = value
            scope.bind(node.target.id, value)
        else:
            self._execute(node, scope)
            made.members.update(scope.values)


def _assigned(body: Sequence[ast.stmt]) -> set[str]:
    """The names that statements bind, those of nested blocks included."""
    names: set[str] = set()
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Assign):
            waiting += node.targets
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            waiting.append(node.target)
        elif isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, (ast.Tuple, ast.List)):
            waiting += node.elts
        elif isinstance(node, (ast.For, ast.While, ast.If, ast.With, ast.Try)):
            for block in ("body", "orelse", "finalbody"):
                waiting += getattr(node, block, [])
            for handler in getattr(node, "handlers", []):
                waiting += handler.body
    return names

"""Names and their values: of the module, of a function, of the functions around it."""

from __future__ import annotations

from dataclasses import dataclass, field

from dslint.runs.script.values import NOTHING, Thing, Value, same


@dataclass(eq=False)
class Scope:
    """The names of one function or of the module.

    Attributes:
        above: the scope around it.
        values: by name.
        outer_names: names that `global` or `nonlocal` hand to the scopes above.
        path: of a module's scope, the module's file.
    """

    above: Scope | None = None
    values: dict[str, Value] = field(default_factory=dict)
    outer_names: set[str] = field(default_factory=set)
    path: str = ""

    @property
    def file(self) -> str:
        """The file that the names belong to."""
        scope = self
        while scope.above is not None:
            scope = scope.above
        return scope.path

    def find(self, name: str) -> Value:
        """The value of a name; NOTHING where this file doesn't bind it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.above
        return NOTHING

    def bind(self, name: str, value: Value) -> None:
        """Give a name a value."""
        if name in self.outer_names and self.above is not None:
            self.above.bind_where_found(name, value)
        else:
            self.values[name] = value

    def bind_where_found(self, name: str, value: Value) -> None:
        """Give a name of this scope, or of one above it, a value."""
        scope: Scope = self
        while name not in scope.values and scope.above is not None:
            scope = scope.above
        scope.values[name] = value


def merged(left: dict[str, Value], right: dict[str, Value]) -> dict[str, Value]:
    """The names after two branches, of which nobody knows which one is taken."""
    result = dict(left)
    for name, value in right.items():
        result[name] = either(left[name], value) if name in left else value
    return result


def either(left: Value, right: Value) -> Value:
    """One of two values; a thing that both of them flow into."""
    if same(left, right) or right is NOTHING:
        return left
    if left is NOTHING:
        return right
    kinds = [value.kind for value in (left, right) if isinstance(value, Thing)]
    kind = kinds[0] if kinds and kinds.count(kinds[0]) == 2 else "either"
    return Thing(kind, "either", None, (left, right))

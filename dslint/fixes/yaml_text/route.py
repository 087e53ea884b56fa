"""The way from the top of a YAML file to one of its values."""

from __future__ import annotations

from dataclasses import dataclass

from dslint.documents.document import NodePath
from dslint.fixes.edit import CannotEditError
from dslint.fixes.yaml_text.layout import Entry, Node, YamlLayout


@dataclass(frozen=True)
class Step:
    """One step down: a list or mapping, and which of its entries is taken."""

    whole: Node
    index: int

    @property
    def entry(self) -> Entry:
        """The entry that the step leads to."""
        return self.whole.entries[self.index]


@dataclass(frozen=True)
class Route:
    """The steps to a value, as far as the file has them.

    Attributes:
        layout: the file.
        steps: the steps that there are.
        rest: the part of the path that isn't there.
    """

    layout: YamlLayout
    steps: tuple[Step, ...]
    rest: NodePath

    @property
    def node(self) -> Node | None:
        """What stands at the end of the steps; None in an empty file."""
        return self.steps[-1].entry.value if self.steps else self.layout.root

    @property
    def is_in_flow(self) -> bool:
        """Whether the value stands inside brackets."""
        return any(step.whole.flow for step in self.steps)

    def up(self) -> Route:
        """The route to the list or mapping around the value."""
        return Route(self.layout, self.steps[:-1], ())


def route_to(layout: YamlLayout, path: NodePath) -> Route:
    """Follows a path as far as it goes; of a key that stands twice, to the last one.

    Raises:
        CannotEditError: an alias stands on the way, or repeats what is on the way.
    """
    steps: list[Step] = []
    node = layout.root
    for depth, name in enumerate(path):
        if node is None:
            break
        if isinstance(name, int) and node.kind == "mapping":
            raise CannotEditError("a key that is no text is not edited")
        _refuse_shared(layout, node, path[:depth])
        found = places_of(node, name)
        if not found:
            break
        steps.append(Step(node, found[-1]))
        node = steps[-1].entry.value
    return Route(layout, tuple(steps), path[len(steps) :])


def places_of(node: Node, name: str | int) -> list[int]:
    """The indices of the entries that a step of a path can mean."""
    if node.kind == "list":
        return [name] if type(name) is int and 0 <= name < len(node.entries) else []
    names = [None if entry.key is None else entry.key.name for entry in node.entries]
    return [index for index, own in enumerate(names) if own == name and type(own) is type(name)]


def shown(path: NodePath) -> str:
    """A path as people write it."""
    return ".".join(map(str, path)) or "the file"


def _refuse_shared(layout: YamlLayout, node: Node, path: NodePath) -> None:
    if node.kind == "alias":
        raise CannotEditError(f"{shown(path)} is an alias (*{node.anchor}): what it repeats stands elsewhere")
    if layout.is_repeated(node):
        raise CannotEditError(f"{shown(path)} is repeated by the alias *{node.anchor}, which would change too")

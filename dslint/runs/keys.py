"""Finds one's way in the schema of the config: which keys there are, what they take, their defaults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

Schema = Mapping[str, Any]
NamePath = tuple[str, ...]


class KeyTable:
    """The keys of a DeepSpeed config in one release."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def node(self, path: NamePath) -> Schema | None:
        """The schema of the value at a path; None where there is no such key."""
        node: Schema = self.schema
        for name in path:
            properties = self.section(node).get("properties", {})
            if name not in properties:
                return None
            node = properties[name]
        return node

    def section(self, node: Schema) -> Schema:
        """The alternative of a node that is an object; empty where none is."""
        for alternative in self.alternatives(node):
            if "properties" in alternative or alternative.get("type") == "object":
                return alternative
        return {}

    def alternatives(self, node: Schema) -> Iterator[Schema]:
        """The node itself, and what it refers to or offers as a choice."""
        yield node
        for keyword in ("anyOf", "oneOf", "allOf"):
            for choice in node.get(keyword, ()):
                yield from self.alternatives(choice)
        if "$ref" in node:
            yield from self.alternatives(self.schema["$defs"][node["$ref"].rpartition("/")[2]])

    @cached_property
    def sections_by_key(self) -> Mapping[str, tuple[NamePath, ...]]:
        """For each name of a key, the sections that have it."""
        found: dict[str, tuple[NamePath, ...]] = {}
        for path in self.paths():
            found[path[-1]] = (*found.get(path[-1], ()), path[:-1])
        return found

    def paths(self, node: Schema | None = None, above: NamePath = ()) -> Iterator[NamePath]:
        """The paths of all keys."""
        section = self.section(self.schema if node is None else node)
        for name, child in section.get("properties", {}).items():
            yield (*above, name)
            yield from self.paths(child, (*above, name))

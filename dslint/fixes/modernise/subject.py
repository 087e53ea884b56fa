"""A config on its way to a release, and what a step would do to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal

from dslint.documents.document import Document, NodePath
from dslint.rulebook.change import DeleteKey, MoveKey, RenameKey, SetKey
from dslint.runs.keys import KeyTable
from dslint.runs.releases import Release, parse_release

Kind = Literal["carried over", "dropped", "left"]
"""What became of an entry: said in the words of the target; taken out, since what it meant is gone or never was;
left as it is, since a person must decide."""

KeyChange = SetKey | DeleteKey | RenameKey | MoveKey

ZERO = "zero_optimization"


@dataclass(frozen=True)
class Plan:
    """One step that would bring a config nearer to a release.

    Attributes:
        kind: what becomes of the entry.
        path: the entry, by the names that the config has at this moment.
        text: what happens and why, as a sentence without its full stop.
        changes: what is done, one after the other; nothing for what is left.
    """

    kind: Kind
    path: NodePath
    text: str
    changes: tuple[KeyChange, ...] = ()


@dataclass(frozen=True)
class Subject:
    """A config and where it shall go.

    Attributes:
        document: the config as it stands at this moment; its value is an object.
        target: the release whose words it shall have.
        written_for: the release that it was written for, if somebody said so.
    """

    document: Document
    target: Release
    written_for: Release | None = None

    def is_from(self, release: str) -> bool:
        """Whether the target is this release or a later one."""
        return self.target >= _release(release)

    @property
    def value(self) -> Mapping[str, Any]:
        """The whole config."""
        whole: Mapping[str, Any] = self.document.value
        return whole

    def at(self, *path: str) -> Any:
        """The value at a path; None where there is none."""
        value: Any = self.document.value
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def has(self, *path: str) -> bool:
        """Whether a key is there, whatever its value."""
        section = self.at(*path[:-1])
        return isinstance(section, dict) and path[-1] in section

    def section(self, *path: str) -> Mapping[str, Any]:
        """The object at a path; empty where something else is, or nothing."""
        value = self.at(*path)
        return value if isinstance(value, dict) else {}

    @cached_property
    def keys(self) -> KeyTable:
        """The keys that the target has."""
        return _keys_of(self.target.key)

    def set(self, *path: str, to: Any) -> SetKey:
        """Give a key this value."""
        return SetKey(self.document, path, to)

    def delete(self, *path: str) -> DeleteKey:
        """Take a key out."""
        return DeleteKey(self.document, path)

    def rename(self, *path: str, to: str) -> RenameKey:
        """Give a key another name."""
        return RenameKey(self.document, path, to)

    def move(self, path: NodePath, to: NodePath) -> MoveKey:
        """Move a key into another section."""
        return MoveKey(self.document, path, to)


Rule = Callable[[Subject], Iterator[Plan]]
"""Gives the steps that a config needs on one matter. It is asked again after each step that changed something."""


def truth(value: Any) -> bool | None:
    """Whether DeepSpeed takes a value for true; None for what is neither true nor false."""
    if isinstance(value, str):
        words = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False}
        return words.get(value.lower())
    return bool(value) if value is None or isinstance(value, bool | int) else None


def dotted(path: NodePath) -> str:
    """A path as people write it."""
    return ".".join(map(str, path))


@cache
def _release(text: str) -> Release:
    return parse_release(text)


@cache
def _keys_of(release: tuple[int, ...]) -> KeyTable:
    from dslint.runs.schema import schema_for

    return KeyTable(schema_for(release))

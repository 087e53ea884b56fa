"""The effective values of a config: what DeepSpeed makes of the text, defaults and old names included."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dslint.documents.document import Document, NodePath
from dslint.documents.source import Source, Span
from dslint.runs.coercion import coerce
from dslint.runs.keys import KeyTable, NamePath
from dslint.runs.old_names import with_new_names
from dslint.runs.unknown import UNDECIDABLE, Unknown, needs

TRAINER_ARGUMENTS = 'the Trainer arguments that fill "auto"'


class EffectiveConfig:
    """A config as DeepSpeed understands it.

    A value is Unknown where a template's placeholder stands, and where Hugging Face fills an "auto".
    """

    def __init__(
        self,
        document: Document,
        keys: KeyTable,
        *,
        filled_by_trainer: bool | Unknown,
        fill: Callable[[NamePath], Any] | None = None,
    ) -> None:
        self.document = document
        self.keys = keys
        self.filled_by_trainer = filled_by_trainer
        self.fill = fill
        self._tree, self._written_at = with_new_names(document.value if is_config(document, keys) else None)
        self._placeholders = {placeholder.path for placeholder in document.placeholders}

    @property
    def written_names(self) -> Mapping[NamePath, NodePath]:
        """Where keys stand in the file that it gives under an old name, by their new one."""
        return self._written_at

    def value(self, path: NamePath) -> Any:
        """The effective value at a path: converted as DeepSpeed converts it, or its default."""
        if not isinstance(self._tree, dict):
            return UNDECIDABLE
        found, written = _find(self._tree, path)
        if self._is_placeholder(path):
            return UNDECIDABLE
        node = self.keys.node(path)
        if not found:
            return UNDECIDABLE if self._may_be_there(path) else self._default(path, node)
        if written == "auto" and node is not None and isinstance(written, str):
            return self._filled(node, path)
        return written if node is None else coerce(written, node)

    def given(self, path: NamePath) -> bool | Unknown:
        """Whether the key stands in the file, under this or an older name."""
        if not isinstance(self._tree, dict):
            return UNDECIDABLE
        return _find(self._tree, path)[0] or (UNDECIDABLE if self._may_be_there(path) else False)

    def written(self, path: NamePath) -> Any:
        """What the file has under exactly this name, unconverted; None where it has nothing."""
        if not isinstance(self._tree, dict) or self._is_placeholder(path):
            return UNDECIDABLE
        found, written = _find(self.document.value, path)
        if not found and self._may_be_there(path):
            return UNDECIDABLE
        return self._without_placeholders(written, path) if self._placeholders else written

    def _without_placeholders(self, written: Any, path: NamePath) -> Any:
        """A section with Unknown for each value that something else fills in."""
        if path in self._placeholders:
            return UNDECIDABLE
        if isinstance(written, dict):
            return {name: self._without_placeholders(value, (*path, name)) for name, value in written.items()}
        return written

    def _may_be_there(self, path: NamePath) -> bool:
        """Whether an absent key may be given in a way that nobody can follow."""
        return bool(self.document.open) and any(path[:length] in self.document.open for length in range(len(path)))

    def place(self, path: NamePath) -> tuple[Source, Span]:
        """Where a key stands with its value; for an absent one, the closest thing in the file."""
        return self.document.source, span_of_entry(self.document, self._closest_entry(path))

    def _closest_entry(self, path: NamePath) -> NodePath:
        """The entry itself, or the first of those inside it, or the section around it."""
        while path:
            written = self._written_at.get(path, path)
            if written in self.document.keys:
                return written
            inside = [key for key in self.document.keys if key[: len(written)] == written]
            if inside:
                return min(inside, key=lambda key: self.document.keys[key].start)
            path = path[:-1]
        return ()

    def _is_placeholder(self, path: NamePath) -> bool:
        written = self._written_at.get(path, path)
        return any(written[:length] in self._placeholders for length in range(1, len(written) + 1))

    def _default(self, path: NamePath, node: Mapping[str, Any] | None) -> Any:
        """A section that isn't one (`"fp16": true`) has no values inside, so nothing can be said."""
        for length in range(1, len(path)):
            found, section = _find(self._tree, path[:length])
            if found and not isinstance(section, Mapping) and section is not None and section != "auto":
                return UNDECIDABLE
        return None if node is None else node.get("default")

    def _filled(self, node: Mapping[str, Any], path: NamePath) -> Any:
        if node.get("x-auto") == "filled" and self.filled_by_trainer is not False:
            return needs(TRAINER_ARGUMENTS) if self.fill is None else self.fill(path)
        is_setting_of_accelerate = node.get("x-auto") == "accelerate" and node.get("default") is not False
        if is_setting_of_accelerate and self.filled_by_trainer is True:
            return UNDECIDABLE  # its launcher may say anything; gather-on-save alone is surely off
        is_dropped = "x-type" in node or node.get("x-auto") in ("default", "accelerate")
        return node.get("default") if is_dropped else "auto"


def _find(tree: Any, path: NamePath) -> tuple[bool, Any]:
    """Whether a tree of plain values has something at a path, and what."""
    for name in path:
        if not isinstance(tree, Mapping) or name not in tree:
            return False, None
        tree = tree[name]
    return True, tree


def is_config(document: Document, keys: KeyTable) -> bool:
    """Whether a document is a DeepSpeed config at all: an object with a key that DeepSpeed knows, or empty."""
    value = document.value
    return isinstance(value, dict) and (not value or any(keys.node((name,)) is not None for name in value))


def span_of_entry(document: Document, path: NodePath) -> Span:
    """The span of `"key": value` on one line; of the key alone where the value runs over several."""
    if not path:
        top = document.values.get((), Span(0, 0))
        return Span(top.start, min(top.start + 1, top.end))
    key = document.keys.get(path)
    value = document.values.get(path)
    if key is None or value is None:
        return key or value or Span(0, 0)
    if b"\n" in document.source.data[key.start : value.end]:
        return key
    return Span(key.start, value.end)

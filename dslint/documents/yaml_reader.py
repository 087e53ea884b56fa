"""Reads YAML the way PyYAML's safe loader does, and remembers where every key and value stands.

PyYAML's own composer forgets where an alias stands, and follows aliases and nesting without an end. So the
nodes are put together here from its events, within limits; what tags and plain words mean stays PyYAML's
affair. Merge keys follow the YAML specification, as PyYAML does up to 6.0.3: of several merged mappings that
have one key, the first counts. (PyYAML 6.0.4 takes the last, but the first for keys of one character.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dslint.documents.document import Document, DuplicateKey, NodePath, SyntaxProblem
from dslint.documents.source import Source, Span

if TYPE_CHECKING:
    import yaml

MOST_NODES = 100_000
"""The most keys and values that a file may have, each counted as often as aliases repeat it."""

DEEPEST_NESTING = 200
"""The most lists and mappings that may stand inside each other, aliases followed."""

_TAG = "tag:yaml.org,2002:"
_MERGE = _TAG + "merge"
_EQUALS = _TAG + "value"
_BYTE_ORDER_MARK = "\ufeff"


class _RefusedError(Exception):
    """A place that can't be read, as offsets into the text that PyYAML is given."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = end


@dataclass(frozen=True)
class _Part:
    """A node of the file at one of the places where it is used.

    Attributes:
        node: PyYAML's node, which knows the tag and the written text.
        kind: what it is called: "single value", "list" or "mapping".
        start: the offset of its first character, an anchor and a tag included.
        end: the offset after its last character, without line ends and comments.
        items: the members of a list.
        pairs: the keys and values of a mapping, merge keys among them.
        size: the number of nodes in it, aliases followed.
        depth: the number of lists and mappings inside each other, aliases followed.
    """

    node: yaml.Node
    kind: str
    start: int
    end: int
    items: tuple[_Part, ...] = ()
    pairs: tuple[tuple[_Part, _Part], ...] = ()
    size: int = 1
    depth: int = 0


@dataclass(frozen=True)
class _Entry:
    """A key of a mapping with its value; `merged` where a merge key (`<<`) brought it in."""

    key: _Part
    value: _Part
    merged: bool


def read_yaml(source: Source) -> Document:
    """Parses YAML; of several documents in one file, the first.

    Values are those of `yaml.safe_load`. The path of a value under a key that is neither text nor a whole
    number has the key's written text. What stands behind an alias has the spans of the anchor's text, the
    alias itself that of `*name`. The span of a block ends with its last character that isn't white space.

    A file that can't be read has a `problem`: a syntax error, a tag that asks for more than plain data, a
    key that can't be one, an alias without its anchor, or a size or nesting beyond the limits.
    """
    shift = 1 if source.text.startswith(_BYTE_ORDER_MARK) else 0
    text = source.text[shift:]
    try:
        loader, top = _compose(text)
        if top is None:
            return Document(source, None, {}, {(): source.span(0, 0)}, language="yaml")
        tables = _Tables(source, shift, loader)
        value = tables.value(top, ())
    except _RefusedError as refused:
        span = source.span(refused.start + shift, refused.end + shift)
        return Document(source, None, {}, {}, problem=SyntaxProblem(refused.message, span), language="yaml")
    return Document(
        source, value, tables.keys, tables.values, duplicates=tuple(tables.duplicates), language="yaml"
    )


def _compose(text: str) -> tuple[Any, _Part | None]:
    """The loader of a text, and the top node of its first document; None where it has no document.

    Raises:
        _RefusedError: the text can't be read.
    """
    import yaml

    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
        return loader, _Composer(text, loader).first_document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        start = 0 if mark is None else min(mark.index, len(text))
        raise _RefusedError(_syntax_message(error), start, min(start + 1, len(text))) from None
    except yaml.reader.ReaderError as error:
        start = max(0, text.find(chr(error.character)))
        message = f"not valid YAML: the character U+{error.character:04X} is not allowed"
        raise _RefusedError(message, start, start + 1) from None


def _syntax_message(error: yaml.MarkedYAMLError) -> str:
    """The parser's two half sentences as one: what is wrong, while parsing what."""
    problem = error.problem or "syntax error"
    return f"not valid YAML: {problem}" + (f" {error.context}" if error.context else "")


class _Composer:
    """Puts nodes together from the parser's events, within limits."""

    def __init__(self, text: str, loader: Any) -> None:
        self._text = text
        self._loader = loader
        self._anchors: dict[str, _Part | None] = {}  # None while the anchor's own node is still open
        self._size = 0

    def first_document(self) -> _Part | None:
        """The top node of the first document; None for a file that is empty but for comments."""
        import yaml

        self._loader.get_event()
        if self._loader.check_event(yaml.StreamEndEvent):
            return None
        self._loader.get_event()
        top = self._part(self._loader.get_event(), depth=0)
        self._loader.get_event()
        self._loader.peek_event()  # what follows must be another document or the end
        return top

    def _part(self, event: Any, depth: int) -> _Part:
        """The node that begins with an event."""
        import yaml

        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        self._count(1, event)
        if event.anchor in self._anchors:
            raise self._refused(f"the anchor &{event.anchor} is set twice", event)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        part = self._scalar(event) if isinstance(event, yaml.ScalarEvent) else self._collection(event, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = part
        return part

    def _alias(self, event: Any, depth: int) -> _Part:
        """The anchored node, at the place of the alias."""
        name = event.anchor
        if name not in self._anchors:
            raise self._refused(f"the alias *{name} has no anchor &{name} before it", event)
        anchored = self._anchors[name]
        if anchored is None:
            raise self._refused(f"the alias *{name} stands inside its own anchor, so it has no end", event)
        self._count(anchored.size, event)
        self._check_depth(depth + anchored.depth, event)
        return replace(anchored, start=event.start_mark.index, end=event.end_mark.index)

    def _scalar(self, event: Any) -> _Part:
        import yaml

        node = yaml.ScalarNode(self._tag(event, yaml.ScalarNode, event.value), event.value)
        start, end = event.start_mark.index, event.end_mark.index
        if event.style in ("|", ">"):
            end = start + len(self._text[start:end].rstrip())
        return _Part(node, "single value", start, end)

    def _collection(self, event: Any, depth: int) -> _Part:
        """A list or mapping with everything in it."""
        import yaml

        self._check_depth(depth + 1, event)
        is_list = isinstance(event, yaml.SequenceStartEvent)
        last = yaml.SequenceEndEvent if is_list else yaml.MappingEndEvent
        parts = []
        while not self._loader.check_event(last):
            parts.append(self._part(self._loader.get_event(), depth + 1))
        closing = self._loader.get_event()
        end = closing.end_mark.index if event.flow_style or not parts else parts[-1].end
        whole = self._list(event, parts) if is_list else self._mapping(event, parts)
        return replace(
            whole,
            end=end,
            size=1 + sum(part.size for part in parts),
            depth=1 + max((part.depth for part in parts), default=0),
        )

    def _list(self, event: Any, parts: list[_Part]) -> _Part:
        import yaml

        tag = self._tag(event, yaml.SequenceNode, None)
        node = yaml.SequenceNode(tag, [part.node for part in parts])
        return _Part(node, "list", event.start_mark.index, 0, items=tuple(parts))

    def _mapping(self, event: Any, parts: list[_Part]) -> _Part:
        import yaml

        tag = self._tag(event, yaml.MappingNode, None)
        pairs = tuple(zip(parts[::2], parts[1::2], strict=True))
        node = yaml.MappingNode(tag, [(key.node, value.node) for key, value in pairs])
        return _Part(node, "mapping", event.start_mark.index, 0, pairs=pairs)

    def _tag(self, event: Any, kind: type[yaml.Node], text: str | None) -> str:
        """The tag that is written, or else the one that PyYAML sees in a plain word."""
        if event.tag is None or event.tag == "!":
            return str(self._loader.resolve(kind, text, event.implicit))
        return str(event.tag)

    def _count(self, nodes: int, event: Any) -> None:
        self._size += nodes
        if self._size > MOST_NODES:
            through = "" if nodes == 1 else ", with what its aliases repeat"
            raise self._refused(f"more than {MOST_NODES:,} keys and values{through}: no config", event)

    def _check_depth(self, depth: int, event: Any) -> None:
        if depth > DEEPEST_NESTING:
            raise self._refused(f"lists and mappings nested more than {DEEPEST_NESTING} deep", event)

    def _refused(self, message: str, event: Any) -> _RefusedError:
        return _RefusedError(message, event.start_mark.index, event.end_mark.index)


class _Tables:
    """Turns nodes into plain values, and fills the tables of spans on the way."""

    def __init__(self, source: Source, shift: int, loader: Any) -> None:
        self._source = source
        self._shift = shift
        self._loader = loader
        self.keys: dict[NodePath, Span] = {}
        self.values: dict[NodePath, Span] = {}
        self.duplicates: list[DuplicateKey] = []

    def value(self, part: _Part, path: NodePath) -> Any:
        """The value of a node."""
        self.values[path] = self._span(part)
        tag = part.node.tag
        if tag == _TAG + "map" and part.kind == "mapping":
            return self._mapping(part, path)
        if tag == _TAG + "seq" and part.kind == "list":
            return [self.value(item, (*path, index)) for index, item in enumerate(part.items)]
        return self._constructed(part)

    def _mapping(self, part: _Part, path: NodePath) -> dict[Any, Any]:
        """The value of a mapping: the last of equal keys counts, and any key before a merged one."""
        entries: dict[Any, _Entry] = {}
        for entry in _entries(part):
            key = self._key(entry.key)
            earlier = entries.get(key)
            if earlier is not None and not earlier.merged and not entry.merged:
                where = (*path, _path_element(key, entry.key))
                self.duplicates.append(DuplicateKey(where, self._span(earlier.key), self._span(entry.key)))
            entries[key] = entry
        return {key: self._entry(key, entry, path) for key, entry in entries.items()}

    def _entry(self, key: object, entry: _Entry, path: NodePath) -> Any:
        """The value under a key."""
        below = (*path, _path_element(key, entry.key))
        self.keys[below] = self._span(entry.key)
        return self.value(entry.value, below)

    def _key(self, part: _Part) -> Any:
        """The value of a key.

        Raises:
            _RefusedError: a list or mapping stands there.
        """
        if part.node.tag == _EQUALS:
            return part.node.value
        if part.kind in ("list", "mapping"):
            hint = " (a template's {{ … }} needs quotes)" if part.kind == "mapping" else ""
            raise _RefusedError(f"a {part.kind} can't be a key{hint}", part.start, part.end)
        return self._constructed(part)

    def _constructed(self, part: _Part) -> Any:
        """What PyYAML makes of a scalar, or of a list or mapping with a tag such as `!!set`.

        Raises:
            _RefusedError: the tag is not one of plain data, or the text does not fit it.
        """
        import yaml

        # A wrong text under a tag shows as whatever the constructor happens to stumble over.
        stumbles = (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, ArithmeticError)
        try:
            return self._loader.construct_object(part.node, deep=True)
        except (*stumbles, RecursionError):
            raise _RefusedError(_tag_message(part, self._loader), part.start, part.end) from None

    def _span(self, part: _Part) -> Span:
        return self._source.span(part.start + self._shift, part.end + self._shift)


def _entries(part: _Part) -> Iterator[_Entry]:
    """The keys and values of a mapping, merged ones first, in the order in which later ones count more."""
    for key, value in part.pairs:
        if key.node.tag == _MERGE:
            for mapping in _merged_mappings(value):
                yield from (replace(entry, merged=True) for entry in _entries(mapping))
    for key, value in part.pairs:
        if key.node.tag != _MERGE:
            yield _Entry(key, value, merged=False)


def _merged_mappings(value: _Part) -> tuple[_Part, ...]:
    """The mappings that a merge key names; the first of a list counts most, so it comes last.

    Raises:
        _RefusedError: it names something else.
    """
    mappings = tuple(reversed(value.items)) if value.kind == "list" else (value,)
    for mapping in mappings:
        if mapping.kind != "mapping":
            message = f"<< merges a mapping or a list of mappings, not a {mapping.kind}"
            raise _RefusedError(message, mapping.start, mapping.end)
    return mappings


def _path_element(key: object, part: _Part) -> str | int:
    """A key as an element of a path."""
    return key if isinstance(key, str | int) else str(part.node.value)


def _tag_message(part: _Part, loader: Any) -> str:
    """Why a node can't become a value."""
    tag = str(part.node.tag)
    shown = "!!" + tag.removeprefix(_TAG) if tag.startswith(_TAG) else tag
    if tag.startswith(_TAG + "python/"):
        return f"the tag {shown} asks for a Python object: only plain data is read, nothing is run"
    if tag not in loader.yaml_constructors:
        return f"the tag {shown} is not one of plain data"
    return f"this is not a value that the tag {shown} allows"

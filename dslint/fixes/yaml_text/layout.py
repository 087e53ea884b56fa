"""How a YAML file is laid out: its nodes as they are written, aliases not followed, and the marks between them.

Offsets are characters of the text without its byte order mark, every line end one newline; `YamlLayout.edit`
turns them into bytes of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from dslint.documents.source import Source
from dslint.fixes.edit import CannotEditError, Edit

NodeKind = Literal["scalar", "alias", "list", "mapping"]

_BYTE_ORDER_MARK = "\ufeff"
_NOT_SAFELY = "the text is written in a way that dslint can't edit safely"


@dataclass(frozen=True)
class Node:
    """A node as it is written.

    Attributes:
        kind: what it is.
        start: its first character, an anchor and a tag included.
        end: the offset after its last character; for a block without the line ends behind it.
        reach: as `end`, but with the blank lines that belong to a `|+` or `>+` at its end.
        name: a scalar's value as a step of a path; None for others and for a merge key.
        text: a scalar's value as text.
        style: how a scalar is written: plain (""), ' or " or | or >.
        is_stripped: whether a text behind | or > has a - that drops its last line end.
        flow: whether a list or mapping is written with brackets.
        anchor: the name behind & or *.
        entries: the members of a list or mapping.
    """

    kind: NodeKind
    start: int
    end: int
    reach: int
    name: Any = None
    text: str = ""
    style: str = ""
    is_stripped: bool = False
    flow: bool = False
    anchor: str | None = None
    entries: tuple[Entry, ...] = ()

    @property
    def is_block(self) -> bool:
        """Whether this is a list or mapping without brackets."""
        return self.kind in ("list", "mapping") and not self.flow

    @property
    def is_block_text(self) -> bool:
        """Whether this is a text of several lines behind a | or >."""
        return self.style in ("|", ">")

    @property
    def is_empty(self) -> bool:
        """Whether nothing stands there, which YAML reads as null."""
        return self.start == self.end

    def within(self) -> Iterator[Node]:
        """This node and all in it."""
        yield self
        for entry in self.entries:
            if entry.key:
                yield entry.key
            yield from entry.value.within()


@dataclass(frozen=True)
class Entry:
    """A key of a mapping with its value, or an item of a list.

    Attributes:
        start: where the key or the item begins, with the mark (? or -) before it.
        key: the key; None in a list.
        value_from: where the value may begin: behind the colon or the dash; behind the key in `{key}`.
        has_colon: whether there is a colon.
        value: the value.
    """

    start: int
    key: Node | None
    value_from: int
    has_colon: bool
    value: Node

    @property
    def end(self) -> int:
        """The offset after its last character."""
        return self.value_from if self.value.is_empty else self.value.end

    @property
    def reach(self) -> int:
        """As `end`, with blank lines that belong to the value."""
        return max(self.end, self.value.reach)


@dataclass(frozen=True)
class YamlLayout:
    """The one document of a YAML file.

    Attributes:
        source: the file.
        text: its text without the byte order mark.
        root: the top node; None where nothing stands in the file.
        end: where the document ends: at its `...`, or at the end of the text.
    """

    source: Source
    text: str
    root: Node | None
    end: int

    @cached_property
    def _aliases(self) -> tuple[Node, ...]:
        nodes = self.root.within() if self.root else ()
        return tuple(node for node in nodes if node.kind == "alias")

    def alias_of(self, node: Node) -> str | None:
        """The name of an alias elsewhere that repeats this node or something in it."""
        outside = {alias.anchor for alias in self._aliases if not node.start <= alias.start < node.end}
        anchors = (inner.anchor for inner in node.within() if inner.kind != "alias" and inner.anchor in outside)
        return next(anchors, None) if outside else None

    def is_repeated(self, node: Node) -> bool:
        """Whether an alias repeats this very node."""
        return node.kind != "alias" and any(alias.anchor == node.anchor for alias in self._aliases)

    def line_start(self, at: int) -> int:
        """Where the line of a character begins."""
        return self.text.rfind("\n", 0, at) + 1

    def line_end(self, at: int) -> int:
        """Where the line of a character ends, before its newline."""
        end = self.text.find("\n", at)
        return len(self.text) if end < 0 else end

    def next_line(self, at: int) -> int:
        """Where the line after that of a character begins."""
        return min(self.line_end(at) + 1, len(self.text))

    def before_on_line(self, at: int) -> str:
        """What stands before a character on its line."""
        return self.text[self.line_start(at) : at]

    def indent(self, at: int) -> str:
        """White space as wide as what stands before a character on its line; the same if it is blank."""
        before = self.before_on_line(at)
        return before if not before.strip() else " " * len(before)

    def skip_blanks(self, at: int) -> int:
        """The first character from `at` on that is neither a space nor a tab."""
        while at < len(self.text) and self.text[at] in " \t":
            at += 1
        return at

    def comment_after(self, at: int) -> str:
        """The comment that follows a character on its line, with the white space before it."""
        return (
            self.text[at : self.line_end(at)].rstrip() if self.text.startswith("#", self.skip_blanks(at)) else ""
        )

    def find_mark(self, mark: str, start: int, stop: int) -> int | None:
        """The first `mark` between two nodes, where only white space, comments and marks stand."""
        return find_mark(self.text, mark, start, stop)

    def edit(self, start: int, end: int, text: str) -> Edit:
        """The edit that puts `text` in the place of some characters, with the file's own line ends."""
        shift = 1 if self.source.text.startswith(_BYTE_ORDER_MARK) else 0
        span = self.source.span(start + shift, end + shift)
        return Edit(span, text.replace("\n", self._newline(start, shift)).encode("utf-8", "surrogatepass"))

    def _newline(self, at: int, shift: int) -> str:
        """How the line before a character ends; else the first line of the file."""
        found = self.text.rfind("\n", 0, at)
        if found < 0:
            found = self.text.find("\n")
        return "\n" if found < 0 else self.source.slice(self.source.span(found + shift, found + 1 + shift))


def find_mark(text: str, mark: str, start: int, stop: int) -> int | None:
    """The first `mark` in a piece of text that has no values, only white space, comments and marks."""
    at = start
    while at < stop:
        if text[at] == mark:
            return at
        if text[at] == "#":
            at = text.find("\n", at)
            if at < 0:
                return None
        at += 1
    return None


def lay_out(source: Source) -> YamlLayout:
    """Reads the layout of a file that `read_yaml` can read.

    Raises:
        CannotEditError: it holds several documents.
    """
    import yaml

    text = source.text.removeprefix(_BYTE_ORDER_MARK)
    reader = _LayoutReader(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text))
    try:
        root, end = reader.document()
    except yaml.YAMLError:
        raise CannotEditError(_NOT_SAFELY) from None
    return YamlLayout(source, text, root, end)


class _LayoutReader:
    """Puts nodes together from the parser's events."""

    def __init__(self, text: str, loader: Any) -> None:
        self._text = text
        self._loader = loader
        self._names: dict[str | None, Any] = {}

    def document(self) -> tuple[Node | None, int]:
        """The top node and where the document ends."""
        import yaml

        self._loader.get_event()
        if self._loader.check_event(yaml.StreamEndEvent):
            return None, len(self._text)
        self._loader.get_event()
        root = self._node(self._loader.get_event())
        closing = self._loader.get_event()
        if not self._loader.check_event(yaml.StreamEndEvent):
            raise CannotEditError("the file holds several YAML documents")
        end = closing.start_mark.index if closing.explicit else len(self._text)
        return (None if root.is_empty else root), end

    def _node(self, event: Any) -> Node:
        import yaml

        start, end = event.start_mark.index, event.end_mark.index
        if isinstance(event, yaml.AliasEvent):
            return Node("alias", start, end, end, name=self._names.get(event.anchor), anchor=event.anchor)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, start, end)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._list(event)
        return self._mapping(event)

    def _scalar(self, event: Any, start: int, end: int) -> Node:
        reach, is_stripped = end, False
        if event.style in ("|", ">"):
            written = self._text[start:end]
            end = start + len(written.rstrip())
            header = written.partition("\n")[0].partition("#")[0].rpartition(event.style)[2]
            reach = reach if "+" in header else end
            is_stripped = "-" in header
        name = self._name(event)
        if event.anchor is not None:
            self._names[event.anchor] = name
        style = event.style or ""
        return Node("scalar", start, end, reach, name, event.value, style, is_stripped, anchor=event.anchor)

    def _name(self, event: Any) -> Any:
        """The value that a scalar has as a key."""
        import yaml

        tag = event.tag
        if tag is None or tag == "!":
            tag = self._loader.resolve(yaml.ScalarNode, event.value, event.implicit)
        if tag == "tag:yaml.org,2002:merge":
            return None
        try:
            value = self._loader.construct_object(yaml.ScalarNode(tag, event.value), deep=True)
        except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, ArithmeticError):
            return event.value
        return value if isinstance(value, str | int) else event.value

    def _list(self, event: Any) -> Node:
        import yaml

        entries: list[Entry] = []
        after = event.start_mark.index
        while not self._loader.check_event(yaml.SequenceEndEvent):
            value = self._node(self._loader.get_event())
            dash = None if event.flow_style else find_mark(self._text, "-", after, max(value.start, after + 1))
            start = value.start if dash is None else dash
            entries.append(Entry(start, None, start + (dash is not None), False, value))
            after = entries[-1].end
        return self._whole("list", event, entries)

    def _mapping(self, event: Any) -> Node:
        import yaml

        entries: list[Entry] = []
        after = event.start_mark.index
        while not self._loader.check_event(yaml.MappingEndEvent):
            key = self._node(self._loader.get_event())
            entries.append(self._entry(after, key, self._node(self._loader.get_event())))
            after = entries[-1].end
        return self._whole("mapping", event, entries)

    def _entry(self, after: int, key: Node, value: Node) -> Entry:
        """A pair that stands somewhere after the one before it."""
        question = find_mark(self._text, "?", after, key.start)
        colon = find_mark(self._text, ":", key.end, value.start)
        value_from = key.end if colon is None else colon + 1
        return Entry(key.start if question is None else question, key, value_from, colon is not None, value)

    def _whole(self, kind: NodeKind, event: Any, entries: list[Entry]) -> Node:
        """A list or mapping that is closed now."""
        end = reach = self._loader.get_event().end_mark.index
        if entries and not event.flow_style:
            end, reach = entries[-1].end, entries[-1].reach
        start, flow = event.start_mark.index, bool(event.flow_style)
        return Node(kind, start, end, reach, flow=flow, anchor=event.anchor, entries=tuple(entries))

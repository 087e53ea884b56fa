"""Configs that dslint mends in memory, and what came of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile

from dslint.documents.config_reader import read_config
from dslint.documents.document import Document, NodePath
from dslint.documents.source import Source, Span
from dslint.fixes.mending import Applied, Mended, mend
from dslint.fixes.policy import Policy
from dslint.fixing import AllRules
from dslint.inputs import Reading
from dslint.rulebook.cache import shipped_rules
from dslint.rulebook.change import Change, DeleteKey, MoveKey, RenameKey, SetKey, WritePlainly
from dslint.rulebook.finding import Finding
from dslint.runs.releases import NEWEST
from dslint.runs.run import Options
from tests.realworld.differential import RANKS, Subject, loader_of

EVERYTHING = Policy(unsafe=True, takes_first=True)
"""All fixes; of several ways the first."""


@dataclass(frozen=True)
class MendedSubject:
    """A config before and after its fixes.

    Attributes:
        subject: the config as it was.
        before: the findings on it.
        after: the findings on the mended one.
        mended: what was done.
    """

    subject: Subject
    before: tuple[Finding, ...]
    after: tuple[Finding, ...]
    mended: Mended

    @property
    def now(self) -> Subject:
        """The mended config."""
        data = self.mended.reading.configs[0].data
        return Subject(self.subject.name, data.decode("utf-8", "surrogateescape"), self.subject.mistakes)

    @property
    def changed(self) -> bool:
        """Whether any fix was kept."""
        return bool(self.mended.applied)

    def bytes_outside(self) -> int:
        """The bytes that fixes changed in lines that hold nothing of what they are about."""
        return sum(map(bytes_outside, self.mended.applied))


@cache
def rules_for(loader: str) -> AllRules:
    """Judges on eight ranks of the newest release."""
    return AllRules(Options(gpus=RANKS, loader=loader, deepspeed=NEWEST), None, tuple(shipped_rules()))


def mend_subject(subject: Subject, policy: Policy = EVERYTHING) -> MendedSubject:
    """Mends one config, as `dslint check --gpus 8 --fix` would."""
    source = Source(subject.name, subject.text.encode("utf-8", errors="surrogateescape"))
    reading = Reading((source,), (), (), (), (), frozenset(), 1)
    all_rules = rules_for(loader_of(subject))
    mended = mend(reading, all_rules.findings, policy)
    return MendedSubject(
        subject, tuple(all_rules.findings(reading)), tuple(all_rules.findings(mended.reading)), mended
    )


def bytes_outside(applied: Applied) -> int:
    """The bytes that a fix changed outside of the entries that it is about.

    Commas and white space between entries belong to them, and so does a comment behind one on its line.
    """
    return sum(_bytes_outside(before, after, applied.fix.changes) for before, after in applied.files)


def _bytes_outside(before: Source, after: Source, changes: tuple[Change, ...]) -> int:
    if any(isinstance(change, WritePlainly) for change in changes):
        return 0  # it is about the whole file
    there_before, there_after = read_config(before), read_config(after)
    old = [path for change in changes for path in _old_paths(change, there_before)]
    new = [path for change in changes for path in _new_paths(change)]
    come = [path for path in new if path in old or path not in there_before.keys]
    twins = [change.key for change in changes if isinstance(change, DeleteKey) and change.key is not None]
    left, right = _without(there_before, old, twins), _without(there_after, come)
    if left == right:
        return 0
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right)))  # noqa: B905 - to the shorter's end
    return max(len(left), len(right)) - same


def _old_paths(change: Change, document: Document) -> Iterator[NodePath]:
    """The entry that changes or goes, or what stood where its section is due."""
    if isinstance(change, DeleteKey) and change.key is not None:
        return
    if isinstance(change, SetKey | DeleteKey | RenameKey | MoveKey):
        length = len(change.path)
        while length and change.path[:length] not in document.keys:
            length -= 1
        is_section = isinstance(document.keys and _value_at(document, change.path[:length]), dict)
        if length == len(change.path) or not is_section:
            yield change.path[:length]


def _value_at(document: Document, path: NodePath) -> object:
    value = document.value
    for name in path:
        value = value[name]
    return value


def _new_paths(change: Change) -> Iterator[NodePath]:
    """The entry that comes, and sections that may come with it."""
    if isinstance(change, SetKey):
        yield from (change.path[:length] for length in range(1, len(change.path) + 1))
    elif isinstance(change, RenameKey):
        yield (*change.path[:-1], change.name)
    elif isinstance(change, MoveKey):
        yield from (change.to[:length] for length in range(1, len(change.to) + 1))


def _without(document: Document, paths: list[NodePath], twins: Sequence[Span] = ()) -> bytes:
    """The text without some entries, and without commas and white space."""
    data = document.source.data
    spans = [(key.start, document.values[path].end) for path, key in document.keys.items() if path in paths]
    of_twins = [key for twin in document.duplicates if twin.path in paths for key in (twin.first, twin.second)]
    spans += [(key.start, _end_of_entry(data, key.end)) for key in {*twins, *of_twins}]
    pieces, at = [], 0
    for start, end in sorted(spans):
        if start >= at:
            pieces.append(data[at:start])
            at = end + len(COMMENT_BEHIND.match(data, end).group())  # type: ignore[union-attr]
    return re.sub(rb"[\s,]+", b"", b"".join([*pieces, data[at:]]))


def _end_of_entry(data: bytes, at: int) -> int:
    """The end of the value behind a key, in strict JSON: the document knows only the last of several."""
    depth = 0
    for match in re.finditer(rb'"(?:[^"\\\\]|\\\\.)*"|[][{},]', data[at:]):
        depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(match.group(), 0)
        if depth < 0 or (depth == 0 and match.group() == b","):
            return at + match.start()
        if depth == 0 and match.group() in (b"}", b"]"):
            return at + match.end()
    return len(data)


COMMENT_BEHIND = re.compile(rb"(?:[ \t]*,?[ \t]*(?:#|//)[^\n]*)?")

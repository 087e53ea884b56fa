"""Brings a DeepSpeed config of any age to the keys of one release, and tells what came of each entry.

The steps stand in `modernise/`, one subject a file. They are made one after the other; after each the text is read
again, so that comments and layout survive and every step sees what the ones before it left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dslint.documents.config_reader import read_config
from dslint.documents.discover import YAML_ENDINGS
from dslint.documents.document import Document, NodePath
from dslint.documents.source import Place, Source, Span
from dslint.fixes.carrying_out import changed_files
from dslint.fixes.edit import CannotEditError
from dslint.fixes.modernise.catalogue import RULES
from dslint.fixes.modernise.subject import Kind, Plan, Rule, Subject, dotted
from dslint.rulebook.change import MoveKey, RenameKey
from dslint.runs.effective import is_config, span_of_entry
from dslint.runs.keys import KeyTable
from dslint.runs.releases import NEWEST, Release
from dslint.runs.schema import load_schema

MOST_STEPS = 2_000
"""Steps on one file; a config has a hundred keys."""


@dataclass(frozen=True)
class Step:
    """What became of one entry.

    Attributes:
        kind: "carried over", "dropped" or "left".
        key: its dotted name in the old file; empty for the file as a whole.
        span: where it stands in the old file.
        text: what happened and why, as a sentence without its full stop.
    """

    kind: Kind
    key: str
    span: Span
    text: str


@dataclass(frozen=True)
class Modernised:
    """A config before and after.

    Attributes:
        before: the old file.
        source: the new one; the same where nothing had to change.
        target: the release whose words it has.
        steps: what became of the entries that needed something, in the order of the old file.
    """

    before: Source
    source: Source
    target: Release
    steps: tuple[Step, ...]

    @property
    def is_changed(self) -> bool:
        """Whether the new file differs from the old one."""
        return self.before.data != self.source.data

    def place(self, step: Step) -> Place:
        """Line and column of a step in the old file."""
        return self.before.place(step.span.start)


def modernised(source: Source, target: Release = NEWEST, written_for: Release | None = None) -> Modernised:
    """A config with the keys of a release.

    Args:
        source: the config: JSON, JSON with comments or Hjson.
        target: the release.
        written_for: the release that it was written for, if known: what it left out then keeps its old default.
    """
    document = read_config(source)
    obstacle = _obstacle(document)
    if obstacle is not None:
        return Modernised(source, source, target, (Step("left", "", _beginning(document), obstacle),))
    work = _Work(document, Subject(document, target, written_for))
    for rule in RULES:
        work.follow(rule)
    steps = tuple(sorted(work.steps, key=lambda step: step.span.start))
    return Modernised(source, work.subject.document.source, target, steps)


def _obstacle(document: Document) -> str | None:
    """Why a file can't be brought anywhere, as a sentence without its full stop."""
    if document.source.path.lower().endswith(YAML_ENDINGS):
        return "a YAML file: only DeepSpeed's own configs are rewritten, not the keys of Accelerate"
    if document.placeholders and document.value is None:
        return "a template that is no config before it is filled in"
    if document.problem is not None:
        return f"can't be read: {document.problem.message}"
    if not is_config(document, KeyTable(load_schema())):
        return "no DeepSpeed config: none of its keys is known"
    return None


def _beginning(document: Document) -> Span:
    return document.problem.span if document.problem is not None else Span(0, 0)


@dataclass
class _Work:
    """A config in work: how it stands, and what was done to it."""

    original: Document
    subject: Subject

    def __post_init__(self) -> None:
        self.steps: list[Step] = []
        self.moves: list[tuple[NodePath, NodePath]] = []
        self.tried: set[tuple[NodePath, str]] = set()

    def follow(self, rule: Rule) -> None:
        """Does what a rule asks for until it asks for nothing new."""
        while len(self.tried) < MOST_STEPS and (plan := self.next_plan(rule)) is not None:
            self.tried.add((plan.path, plan.text))
            self.carry_out(plan)

    def next_plan(self, rule: Rule) -> Plan | None:
        """The first step of a rule that was not tried."""
        return next((plan for plan in rule(self.subject) if (plan.path, plan.text) not in self.tried), None)

    def carry_out(self, plan: Plan) -> None:
        """Makes a step, or leaves the entry where the text allows no such edit."""
        old = self.old_path(plan.path)
        try:
            document = self.changed(plan)
        except CannotEditError as error:
            self.note("left", old, f"{plan.text}; this could not be done, since {error}: do it by hand")
            return
        self.subject = replace(self.subject, document=document)
        for change in plan.changes:
            if isinstance(change, RenameKey):
                self.moves.append((change.path, (*change.path[:-1], change.name)))
            elif isinstance(change, MoveKey):
                self.moves.append((change.path, change.to))
        self.note(plan.kind, old, plan.text)

    def changed(self, plan: Plan) -> Document:
        """The config after a step.

        Raises:
            CannotEditError: if one of its changes can't be made.
        """
        document = self.subject.document
        for change in plan.changes:
            for _, source in changed_files([replace(change, document=document)]):
                document = read_config(source)
        return document

    def note(self, kind: Kind, path: NodePath, text: str) -> None:
        """Keeps what became of an entry; one that is left is left once."""
        key = dotted(path)
        if kind != "left" or not any(step.key == key for step in self.steps):
            self.steps.append(Step(kind, key, self.span_of(path), text))

    def span_of(self, path: NodePath) -> Span:
        """Where an entry stands in the old file; the section around one that didn't."""
        while path and path not in self.original.keys:
            path = path[:-1]
        return span_of_entry(self.original, path)

    def old_path(self, path: NodePath) -> NodePath:
        """The path that an entry had in the old file."""
        for old, new in reversed(self.moves):
            if path[: len(new)] == new:
                path = (*old, *path[len(new) :])
        return path

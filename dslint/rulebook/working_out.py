"""Works out what a fix changes, for one finding: where its targets stand, and what comes there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dslint.documents.document import Document, NodePath
from dslint.documents.source import Source, Span
from dslint.rulebook.change import (
    Change,
    DeleteCode,
    DeleteKey,
    InsertCode,
    MoveKey,
    RenameKey,
    ReplaceCode,
    SetArguments,
    SetKey,
    Unguard,
    WritePlainly,
)
from dslint.rulebook.expression import evaluate
from dslint.rulebook.finding import CannotChangeError
from dslint.rulebook.judge import fill
from dslint.rulebook.rule import Rule, RuleFix
from dslint.runs import argument_places
from dslint.runs.facts import ARGUMENTS, Facts
from dslint.runs.item import Item
from dslint.runs.unknown import Unknown
from dslint.runs.written import NotWritableError, written_entry

CONFIG = "config."


def changes_of(fix: RuleFix, rule: Rule, facts: Facts, item: Item | None) -> tuple[Change, ...]:
    """The changes that a fix makes in the files of a run.

    Raises:
        CannotChangeError: if one of them can't be made here.
    """
    try:
        changes = tuple(_Worker(fix, rule, facts, item).changes())
    except (NotWritableError, argument_places.NoArgumentError) as error:
        raise CannotChangeError(str(error)) from None
    if not changes:
        raise CannotChangeError("what it would take out is not there")
    return changes


class _Worker:
    """Resolves the targets of one fix for one finding."""

    def __init__(self, fix: RuleFix, rule: Rule, facts: Facts, item: Item | None) -> None:
        self.fix = fix
        self.facts = facts
        self.item = item
        self.variable = rule.each[1] if rule.each is not None else None

    def changes(self) -> Iterator[Change]:
        """All changes, in the order in which they are made."""
        fix = self.fix
        for target, parts in fix.rename.items():
            yield RenameKey(*self.entry(target), self.text(parts))
        for target, parts in fix.move.items():
            document, path = self.entry(target)
            yield MoveKey(document, path, tuple(self.text(parts).split(".")))
        for target, tree in fix.set.items():
            yield from self.set(target, self.value(tree))
        for target in filter(self.is_there, fix.delete):
            yield self.delete(target)
        if fix.plain:
            if self.facts.document.language != "json":
                raise CannotChangeError("the config stands in no file of its own")
            yield WritePlainly(self.facts.document)
        yield from self.code_changes()

    def code_changes(self) -> Iterator[Change]:
        """Changes of a script or a command."""
        fix = self.fix
        for target, parts in fix.replace.items():
            if self.is_absent(target):
                continue
            yield ReplaceCode(*self.code(target), self.text(parts))
        if fix.keywords:
            texts = {name: None if parts is None else self.text(parts) for name, parts in fix.keywords.items()}
            yield SetArguments(*self.item_place(), texts)
        if fix.before is not None:
            yield InsertCode(*self.item_place(), self.text(fix.before))
        if fix.after is not None:
            yield InsertCode(*self.item_place(), self.text(fix.after), after=True)
        if fix.unguard:
            yield Unguard(*self.item_place())

    def set(self, target: str, value: Any) -> Iterator[Change]:
        if target.startswith(ARGUMENTS):
            yield argument_setting(self.facts, target[len(ARGUMENTS) :], value)
        else:
            yield SetKey(*self.entry(target), value)

    def is_there(self, target: str) -> bool:
        """Whether there is anything to take out; a fix may name several keys of which only some are given."""
        if target.startswith((CONFIG, ARGUMENTS)):
            return self.facts.given(target) is not False
        return not self.is_absent(target)

    def is_absent(self, target: str) -> bool:
        """Whether a target is a place of the item that there is not, so that nothing has to be done there."""
        name, _, field = target.partition(".")
        return name == self.variable and bool(field) and self.item is not None and self.item.fields[field] is None

    def delete(self, target: str) -> Change:
        if target.startswith(ARGUMENTS):
            return argument_removal(self.facts, target[len(ARGUMENTS) :])
        if target.startswith(CONFIG):
            return DeleteKey(*written_entry(self.facts, tuple(target.split(".")[1:])))
        source, span = self.code(target)
        found = self.entry_at(source, span)
        if found is None:
            return DeleteCode(source, span)
        document, path, key = found
        return DeleteKey(document, path, key)

    def entry(self, target: str) -> tuple[Document, NodePath]:
        """The file and the path there of a config key, or of the entry that the item is about."""
        if target.startswith(CONFIG):
            return written_entry(self.facts, tuple(target.split(".")[1:]))
        found = self.entry_at(*self.code(target))
        if found is None:
            raise CannotChangeError("what it is about is no entry of a config")
        return found[:2]

    def entry_at(self, source: Source, span: Span) -> tuple[Document, NodePath, Span | None] | None:
        """The entry whose key stands at a span; its span too where the key stands twice."""
        for document in self.documents(source):
            for twin in document.duplicates:
                if span.start in (twin.first.start, twin.second.start):
                    return document, twin.path, twin.first if span.start == twin.first.start else twin.second
            for path, key in document.keys.items():
                if key.start == span.start:
                    return document, path, None
        return None

    def documents(self, source: Source) -> Iterable[Document]:
        """The files with keys that the run is made of; an Accelerate file before what is made of it."""
        run = self.facts.run
        return [one for one in (run.accelerate, run.config) if one is not None and one.source is source]

    def code(self, target: str) -> tuple[Source, Span]:
        """The file and the span of the item, or of a place that it knows."""
        if self.item is None or target.partition(".")[0] != self.variable:
            source, span = self.facts.place(target)
            return source, span
        field = target.partition(".")[2]
        span = self.item.fields[field] if field else whole_span(self.item)
        if not isinstance(span, Span):
            raise CannotChangeError("where the code would have to change can't be told")
        return self.item.source, span

    def item_place(self) -> tuple[Source, Span]:
        if self.item is None:
            raise CannotChangeError("it is about no place in a script")
        return self.item.source, whole_span(self.item)

    def value(self, tree: Any) -> Any:
        value = evaluate(tree, self.facts, self.fields)
        if isinstance(value, Unknown):
            raise CannotChangeError("the new value can't be told from the files")
        return value

    def text(self, parts: Any) -> str:
        for part in parts:
            if not isinstance(part, str) and isinstance(evaluate(part, self.facts, self.fields), Unknown):
                raise CannotChangeError("the new text can't be told from the files")
        return fill(parts, self.facts, self.item)

    @property
    def fields(self) -> Any:
        return self.item.fields if self.item is not None else None


def whole_span(item: Item) -> Span:
    """Where an item stands, all of its lines included, where a script's facts tell it."""
    span = item.fields.get("span")
    return span if isinstance(span, Span) and span.start == item.span.start else item.span


def argument_setting(facts: Facts, name: str, value: Any) -> Change:
    """Give an argument of the Trainer a value, where constructor or command have it."""
    place = argument_places.place_of(facts, name)
    if place.call is not None:
        return SetArguments(place.source, place.call, {name: repr(value)})
    if place.value is not None:
        return ReplaceCode(place.source, place.value, str(value))
    if place.option is not None:
        if value is False:
            return DeleteCode(place.source, place.option)
        raise CannotChangeError(f"--{name} stands without a value")
    assert place.last_word is not None  # a command without words has no place at all
    return InsertCode(place.source, place.last_word, f"--{name} {value}", after=True)


def argument_removal(facts: Facts, name: str) -> Change:
    """Take an argument of the Trainer out."""
    place = argument_places.place_of(facts, name)
    if place.call is not None:
        return SetArguments(place.source, place.call, {name: None})
    if place.option is None:
        raise CannotChangeError(f"neither constructor nor command gives {name}")
    return DeleteCode(place.source, place.option)

"""Reads rule files and checks them: every mistake of a rule's author comes out here, with its place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dslint.data import read_data
from dslint.documents.document import Document, NodePath
from dslint.documents.source import Source, Span, UnreadableFileError, read_source
from dslint.documents.yaml_reader import read_yaml
from dslint.rulebook.expression import ExpressionError, Tree
from dslint.rulebook.expression_parser import parse
from dslint.rulebook.rule import Part, Rule, RuleFix
from dslint.rulebook.rule_text import RuleText
from dslint.runs.releases import check_spec
from dslint.runs.vocabulary import Vocabulary


@dataclass(frozen=True)
class RuleFile:
    """One rule file, checked: the rule itself, and its texts."""

    rule: Rule
    text: RuleText


class RuleError(Exception):
    """A rule file that can't be used; the text begins with its path, line and column."""


def load_rules(folder: Path) -> list[RuleFile]:
    """All rules of a folder, by code.

    Raises:
        RuleError: a file is not a rule, or two rules share a code or a name.
    """
    vocabulary = Vocabulary()
    rules = [_load(path, folder, vocabulary) for path in sorted(folder.glob("*/*.yaml"))]
    seen: dict[str, str] = {}
    for loaded in rules:
        for label in (loaded.rule.code, loaded.rule.name):
            if label in seen:
                raise RuleError(f"{folder / loaded.text.file}:1:1: {label} is taken by {seen[label]}")
            seen[label] = loaded.text.file
    return sorted(rules, key=lambda loaded: loaded.rule.code)


def rule_from_text(text: str, shown_as: str = "rule.yaml") -> RuleFile:
    """A rule from the text of its file; for rules that lie in no folder.

    Raises:
        RuleError: the text is not a rule.
    """
    return _rule(Source(shown_as, text.encode()), shown_as, Vocabulary())


def _load(path: Path, folder: Path, vocabulary: Vocabulary) -> RuleFile:
    try:
        source = read_source(path)
    except UnreadableFileError as error:
        raise RuleError(f"{path}:1:1: {error}") from None
    loaded = _rule(source, path.relative_to(folder).as_posix(), vocabulary)
    expected = f"{loaded.rule.code}-{loaded.rule.name}.yaml"
    if path.name != expected:
        raise RuleError(f"{path}:1:1: the file must be called {expected}")
    return loaded


def _rule(source: Source, file: str, vocabulary: Vocabulary) -> RuleFile:
    document = read_yaml(source)
    if document.problem is not None:
        raise _error(source, document.problem.span, document.problem.message)
    if document.duplicates:
        duplicate = document.duplicates[0]
        raise _error(source, duplicate.second, f"the key `{duplicate.path[-1]}` stands twice")
    _check_shape(document)
    return RuleFile(_Builder(document, vocabulary).rule(), RuleText(file, document.value))


def _check_shape(document: Document) -> None:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    schema = json.loads(read_data("schemas", "rule.schema.json"))
    fault = best_match(Draft202012Validator(schema).iter_errors(document.value))
    if fault is not None:
        path: NodePath = tuple(fault.absolute_path)
        place = f"{'.'.join(map(str, path))}: " if path else ""
        raise _error(document.source, _nearest_span(document, path), place + fault.message)


def _nearest_span(document: Document, path: NodePath) -> Span:
    while path and path not in document.values:
        path = path[:-1]
    return document.keys.get(path) or document.values.get(path) or Span(0, 0)


def _error(source: Source, span: Span, message: str, further: int = 0) -> RuleError:
    place = source.place(span.start)
    return RuleError(f"{source.path}:{place.line}:{place.column + further}: {message}")


class _Builder:
    """Builds one rule from its document."""

    def __init__(self, document: Document, vocabulary: Vocabulary) -> None:
        self.document = document
        self.data: Mapping[str, Any] = document.value
        self.vocabulary = vocabulary
        self.each = self.read_each()
        self.item: tuple[str, frozenset[str]] | None = None
        if self.each is not None:
            self.item = (self.each[1], vocabulary.fields(self.each[0]))

    def rule(self) -> Rule:
        data = self.data
        self.check_releases()
        return Rule(
            code=data["code"],
            name=data["name"],
            severity=data["severity"],
            each=self.each,
            when=self.expression(str(data["when"]), ("when",)),
            at=self.place(data["at"], ("at",)),
            also={self.place(name, ("also", name)): text for name, text in data.get("also", {}).items()},
            message=self.message(data["message"], ("message",)),
            ways=tuple(fix.as_data() for fix in self.fixes()),
            deepspeed=data.get("deepspeed", ""),
        )

    def read_each(self) -> tuple[str, str] | None:
        text = self.data.get("each")
        if text is None:
            return None
        name, _, variable = (part.strip() for part in text.partition(" as "))
        if not self.vocabulary.is_list(name):
            from difflib import get_close_matches

            near = get_close_matches(name, self.vocabulary.lists(), n=3, cutoff=0.4)
            advice = f": did you mean {' or '.join(near)}?" if near else ""
            raise self.error(("each",), f"`{name}` is not a list that rules can go through{advice}")
        return name, variable

    def check_releases(self) -> None:
        try:
            check_spec(self.data.get("deepspeed", ""))
        except ValueError as error:
            raise self.error(("deepspeed",), str(error)) from None

    def expression(self, text: str, path: NodePath, offset: int = 0) -> Tree:
        try:
            return parse(text, self.vocabulary, self.item)
        except ExpressionError as error:
            raise self.error(path, error.message, offset + error.column - 1) from None

    def place(self, name: str, path: NodePath) -> str:
        if (self.item and name == self.item[0]) or name == "file" or self.vocabulary.is_fact(name):
            return name
        near = self.vocabulary.near(name)
        raise self.error(path, f"there is no fact `{name}`" + (f": did you mean `{near}`?" if near else ""))

    def message(self, text: str, path: NodePath) -> tuple[Part, ...]:
        return tuple(self.parts(" ".join(text.split()), path))

    def parts(self, text: str, path: NodePath) -> Iterator[Part]:
        """Splits `text {expression} text`; doubled braces stand for themselves."""
        for match in re.finditer(r"\{\{|\}\}|\{([^{}]*)\}|[^{}]+|[{}]", text):
            piece = match.group()
            if piece in ("{{", "}}"):
                yield piece[0]
            elif match.group(1) is not None:
                yield self.expression(match.group(1), path, match.start(1))
            elif piece in "{}":
                raise self.error(path, "a brace without its partner; write it twice to have it as text")
            else:
                yield piece

    def fixes(self) -> Iterator[RuleFix]:
        """The ways to mend it: one stands by itself, several in a list."""
        data = self.data.get("fix")
        if isinstance(data, list):
            for number, one in enumerate(data):
                yield self.fix(one, ("fix", number))
        elif data is not None:
            yield self.fix(data, ("fix",))

    def fix(self, data: Mapping[str, Any], path: NodePath) -> RuleFix:
        when = data.get("when")
        return RuleFix(
            tier=data["tier"],
            title=self.message(data["title"], (*path, "title")),
            when=None if when is None else self.expression(str(when), (*path, "when")),
            set={
                self.target(name, (*path, "set", name)): self.expression(str(text), (*path, "set", name))
                for name, text in data.get("set", {}).items()
            },
            delete=tuple(self.target(name, (*path, "delete")) for name in data.get("delete", ())),
            rename=self.texts_by_target(data, "rename", path),
            move=self.texts_by_target(data, "move", path),
            replace=self.texts_by_target(data, "replace", path),
            keywords={
                name: None if text is None else self.message(text, (*path, "keywords", name))
                for name, text in data.get("keywords", {}).items()
            },
            before=self.message(data["before"], (*path, "before")) if "before" in data else None,
            after=self.message(data["after"], (*path, "after")) if "after" in data else None,
            unguard=data.get("unguard", False),
            plain=data.get("plain", False),
        )

    def texts_by_target(self, data: Mapping[str, Any], kind: str, path: NodePath) -> dict[str, tuple[Part, ...]]:
        return {
            self.target(name, (*path, kind, name)): self.message(text, (*path, kind, name))
            for name, text in data.get(kind, {}).items()
        }

    def target(self, name: str, path: NodePath) -> str:
        """What a fix changes: a config key, an argument, the item, or a place that the item knows."""
        if self.item is not None:
            variable, _, field = name.partition(".")
            if variable == self.item[0] and (not field or field in self.item[1]):
                return name
        return self.place(name, path)

    def error(self, path: NodePath, message: str, further: int = 0) -> RuleError:
        span = self.document.values.get(path) or _nearest_span(self.document, path)
        source = self.document.source
        is_one_line = b"\n" not in source.data[span.start : span.end]
        is_quoted = source.slice(span)[:1] in ("'", '"')
        return _error(source, span, message, (further + is_quoted) if is_one_line else 0)

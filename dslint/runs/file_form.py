"""Facts about the form of a config's text."""

from __future__ import annotations

from collections.abc import Mapping

from dslint.documents.document import Document, NodePath
from dslint.runs.facts import Fact
from dslint.runs.item import Item
from dslint.runs.keys import KeyTable

Items = tuple[Item, ...]
PYTHON_WORDS = {"True": True, "False": False, "None": None}
"""Python's words for what JSON writes as true, false and null."""


def _syntax_problems(document: Document) -> Items:
    problem = document.problem
    return () if problem is None else (Item({"message": problem.message}, document.source, problem.span),)


def _not_strict(document: Document) -> Items:
    """The first thing that strict JSON forbids; a template is no JSON in any case."""
    place = document.not_strict
    if place is None or document.placeholders:
        return ()
    return (Item({"what": place.message}, document.source, place.span),)


def _duplicates(document: Document) -> Items:
    return tuple(
        Item(
            {
                "key": str(duplicate.path[-1]),
                "path": ".".join(map(str, duplicate.path)),
                "first": duplicate.first,
            },
            document.source,
            duplicate.second,
            ((duplicate.first, "first given here"),),
        )
        for duplicate in document.duplicates
    )


def _placeholders(document: Document) -> Items:
    """All of a template's placeholders as one item, since they are one fact."""
    if not document.placeholders or document.language == "python":
        return ()
    first = document.placeholders[0]
    names = list(dict.fromkeys(found.text.rstrip(", ") for found in document.placeholders))
    return (Item({"names": names, "count": len(names), "first": names[0]}, document.source, first.span),)


def is_python_word(document: Document, path: NodePath) -> bool:
    """Whether True, False or None stands somewhere without quotes, where Hjson reads it as a text."""
    span = document.values.get(path)
    if document.language == "python":
        return False
    return span is not None and document.source.slice(span).rstrip(", ") in PYTHON_WORDS


def _python_words(document: Document, keys: KeyTable) -> Items:
    """True, False and None as in Python; at the end of a line, a comma becomes part of the text."""
    return tuple(
        Item(
            {
                "word": text.rstrip(", "),
                "text": text,
                "key": str(path[-1]),
                "takes_comma": text.endswith(","),
                "place": document.keys[path],
                "meant": PYTHON_WORDS[text.rstrip(", ")],
                "is_typed": _is_typed(path, keys),
            },
            document.source,
            span,
        )
        for path, span in document.values.items()
        if path in document.keys and is_python_word(document, path)
        for text in [document.source.slice(span)]
    )


def _is_typed(path: NodePath, keys: KeyTable) -> bool:
    """Whether a typed section converts the value, or refuses it."""
    node = keys.node(tuple(step for step in path if isinstance(step, str))) or {}
    return "x-type" in node or keys.section(node).get("x-unknown-keys") == "raises"


FACTS: Mapping[str, Fact] = {
    "file.syntax_problems": Fact(
        "the place where the text can't be parsed (one item or none)",
        lambda facts: _syntax_problems(facts.document),
        frozenset({"message"}),
    ),
    "file.not_strict": Fact(
        "the first place that strict JSON refuses (one item or none)",
        lambda facts: _not_strict(facts.document),
        frozenset({"what"}),
    ),
    "file.duplicates": Fact(
        "keys that stand twice in one object",
        lambda facts: _duplicates(facts.document),
        frozenset({"key", "path", "first"}),
    ),
    "file.placeholders": Fact(
        "the unfilled placeholders of a template (one item or none)",
        lambda facts: _placeholders(facts.document),
        frozenset({"names", "count", "first"}),
    ),
    "file.python_words": Fact(
        "True, False and None written as in Python",
        lambda facts: _python_words(facts.document, facts.keys),
        frozenset({"word", "text", "key", "takes_comma", "place", "meant", "is_typed"}),
    ),
}

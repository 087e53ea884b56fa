"""Facts about the form of a config's text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dslint.documents.document import Document, NodePath
from dslint.runs.item import Item

Items = tuple[Item, ...]


@dataclass(frozen=True)
class FormFact:
    """A list fact about the text of a config."""

    meaning: str
    fields: frozenset[str]
    work_out: Callable[[Document], Items]


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
            {"key": str(duplicate.path[-1]), "path": ".".join(map(str, duplicate.path))},
            document.source,
            duplicate.second,
            ((duplicate.first, "first given here"),),
        )
        for duplicate in document.duplicates
    )


def _placeholders(document: Document) -> Items:
    """All of a template's placeholders as one item, since they are one fact."""
    if not document.placeholders:
        return ()
    first = document.placeholders[0]
    names = list(dict.fromkeys(found.text.rstrip(", ") for found in document.placeholders))
    return (Item({"names": names, "count": len(names), "first": names[0]}, document.source, first.span),)


def is_python_word(document: Document, path: NodePath) -> bool:
    """Whether True, False or None stands somewhere without quotes, where Hjson reads it as a text."""
    span = document.values.get(path)
    return span is not None and document.source.slice(span).rstrip(", ") in ("True", "False", "None")


def _python_words(document: Document) -> Items:
    """True, False and None as in Python; at the end of a line, a comma becomes part of the text."""
    return tuple(
        Item(
            {"word": text.rstrip(", "), "text": text, "key": str(path[-1]), "takes_comma": text.endswith(",")},
            document.source,
            span,
        )
        for path, span in document.values.items()
        if path in document.keys and is_python_word(document, path)
        for text in [document.source.slice(span)]
    )


LISTS: Mapping[str, FormFact] = {
    "syntax_problems": FormFact(
        "the place where the text can't be parsed (one item or none)", frozenset({"message"}), _syntax_problems
    ),
    "not_strict": FormFact(
        "the first place that strict JSON refuses (one item or none)", frozenset({"what"}), _not_strict
    ),
    "duplicates": FormFact(
        "keys that stand twice in one object", frozenset({"key", "path"}), _duplicates
    ),
    "placeholders": FormFact(
        "the unfilled placeholders of a template (one item or none)",
        frozenset({"names", "count", "first"}),
        _placeholders,
    ),
    "python_words": FormFact(
        "True, False and None written as in Python", frozenset({"word", "text", "key", "takes_comma"}), _python_words
    ),
}

"""Configs that are templates: another program fills in `"stage": ZERO_STAGE,` before DeepSpeed reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from typing import Any

from dslint.documents.document import NodePath, Placeholder
from dslint.documents.source import Source, Span

_MARKED = r"\$\{[^{}\n]+\}|\$\w+|\{\{[^{}\n]*\}\}|\{%[^\n]*?%\}|<%[^\n]*?%>|%\(\w+\)s|@\w+@"
_MARKED_ANYWHERE = re.compile(_MARKED)
_MARKED_WHOLE = re.compile(rf"(?:{_MARKED})")
_NAME = re.compile(r"<\w[\w -]*>|__\w+__|[A-Z][A-Z0-9]+|[A-Z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+")
_OTHER_LANGUAGES = {"NaN", "Infinity", "NULL", "TRUE", "FALSE"}


def placeholders_in_values(
    source: Source, value: Any, spans: Mapping[NodePath, Span], quoteless: Set[NodePath]
) -> tuple[Placeholder, ...]:
    """The values that stand for something to be filled in.

    A name in capitals counts only without quotes, where no config would have text of its own; a marked one
    (`${stage}`, `{{ stage }}`) counts in quotes as well.
    """
    return tuple(
        Placeholder(text, spans[path], path)
        for path, text in _texts(value, ())
        if path in spans and _is_placeholder(text.rstrip().removesuffix(",").rstrip(), path in quoteless)
    )


def placeholders_in_broken_text(source: Source) -> tuple[Placeholder, ...]:
    """The marked placeholders of a text that can't be parsed, which is what they tend to cause."""
    return tuple(
        Placeholder(match.group(), source.span(match.start(), match.end()), None)
        for match in _MARKED_ANYWHERE.finditer(source.text)
    )


def _is_placeholder(text: str, is_quoteless: bool) -> bool:
    if _MARKED_WHOLE.fullmatch(text):
        return True
    return is_quoteless and text not in _OTHER_LANGUAGES and _NAME.fullmatch(text) is not None


def _texts(value: Any, path: NodePath) -> Iterator[tuple[NodePath, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, child in value.items():
            yield from _texts(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _texts(child, (*path, index))

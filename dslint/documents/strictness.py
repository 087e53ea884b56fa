"""Whether a text is strict JSON, which Transformers and Accelerate ask for (both read with `json.load`)."""

from __future__ import annotations

from dslint.documents.document import SyntaxProblem
from dslint.documents.source import Source


def first_place_that_strict_json_refuses(source: Source) -> SyntaxProblem | None:
    """Where Python's `json.load` stops; None where it reads the whole text.

    A key that stands twice is no problem for it: the last one is taken.
    """
    import json

    text = source.text
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        end = _end_of_piece(text, error.pos)
        return SyntaxProblem(_describe(text, error.pos), source.span(error.pos, end))
    except (RecursionError, ValueError):
        return SyntaxProblem("a value that Python's json module can't read", source.span(0, 1))
    return None


def _describe(text: str, at: int) -> str:
    rest = text[at : at + 2]
    if text.startswith("\ufeff"):
        return "a byte order mark at the start"
    if rest in ("//", "/*") or rest.startswith("#"):
        return "a comment"
    if rest.startswith((",", "}", "]")) and _before(text, at).endswith(","):
        return "a trailing comma"
    # From Python 3.13 on the place is that of the comma itself.
    if rest.startswith(",") and text[at + 1 :].lstrip()[:1] in ("}", "]"):
        return "a trailing comma"
    if rest.startswith("'"):
        return "single quotes"
    if not text.strip():
        return "an empty text"
    return "text that is not plain JSON"


def _before(text: str, at: int) -> str:
    return text[:at].rstrip()


def _end_of_piece(text: str, at: int) -> int:
    """The end of what stands at `at`: a comment to its line's end, otherwise one character."""
    if text.startswith(("//", "#", "/*"), at):
        newline = text.find("\n", at)
        return len(text) if newline < 0 else newline
    return at + 1

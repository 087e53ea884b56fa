"""DeepSpeed releases and version specifiers: their order, and which releases a specifier allows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache

PARTS = 3
"""How many numbers a release has: 0.19 means 0.19.0."""

_SUFFIX = r"(?:[-_.]?(?:dev|post|alpha|beta|pre|rc|a|b|c)(?:[-_.]?\d+)?){0,3}(?:\+[\w.]+)?"
_RELEASE = r"v?(\d{1,6}(?:\.\d{1,6}){1,5})" + _SUFFIX
_CLAUSE = r"(===|==|~=|!=|<=|>=|<|>)\s*v?(\d{1,6}(?:\.\d{1,6}){0,5})(\.\*)?" + _SUFFIX

_LAST_PATCHES = {7: 7, 8: 3, 9: 5, 10: 3, 11: 2, 12: 6, 13: 5, 14: 5, 15: 4, 16: 9, 17: 6, 18: 9, 19: 8}


@dataclass(frozen=True, order=True)
class Release:
    """A release of DeepSpeed.

    Attributes:
        text: how it was written.
        key: its numbers, by which releases are ordered and compared; suffixes such as `.dev1` don't count.
    """

    text: str = field(compare=False)
    key: tuple[int, ...]


def parse_release(text: str) -> Release:
    """The release that a text names: "0.19.8", "v0.19.8", "0.19.8+cu121", "0.16.4.dev1".

    Raises:
        ValueError: it names none.
    """
    written = text.strip()
    match = re.fullmatch(_RELEASE, written, re.IGNORECASE)
    if match is None:
        raise ValueError(f"{written[:40]!r} is not a DeepSpeed release: write it like 0.19.8")
    return Release(written, _padded(numbers_in(match[1])))


NEWEST = Release("0.19.8", (0, 19, 8))
KNOWN_RELEASES: tuple[Release, ...] = tuple(
    Release(f"0.{minor}.{patch}", (0, minor, patch))
    for minor, last in _LAST_PATCHES.items()
    for patch in range(last + 1)
)
"""The releases on the Python package index from 0.7.0 to `NEWEST`, oldest first."""


def matches(spec: str, release: Release) -> bool:
    """Whether a release satisfies every clause of a specifier such as ">=0.18,<0.19.3".

    Raises:
        ValueError: the specifier is malformed; see `check_spec`.
    """
    return all(_clause_holds(clause, release.key) for clause in _clauses(spec))


def check_spec(spec: str) -> None:
    """Makes sure that a version specifier can be read.

    Raises:
        ValueError: it can't, with the clause at fault.
    """
    _clauses(spec)


def newest_allowed(spec: str) -> tuple[Release, bool] | None:
    """The newest release that a specifier allows, and whether it names that one.

    None where the specifier is malformed, or allows only releases older than those known here.
    """
    try:
        clauses = _clauses(spec)
    except ValueError:
        return None
    for clause in clauses:
        if clause.operator in ("==", "===") and not clause.wildcard:
            written = re.sub(r"^=+\s*", "", clause.text)
            return Release(written, _padded(clause.numbers)), True
    for release in reversed(KNOWN_RELEASES):
        if all(_clause_holds(clause, release.key) for clause in clauses):
            return release, False
    return _beyond_known(clauses)


def numbers_in(text: str) -> tuple[int, ...]:
    """The numbers of a release as written, such as "0.14"."""
    return tuple(int(part) for part in text.split("."))


def _beyond_known(clauses: Iterable[_Clause]) -> tuple[Release, bool] | None:
    """The lowest release of a range that begins after `NEWEST`."""
    lower = [clause.numbers for clause in clauses if clause.operator in (">=", ">", "~=", "==")]
    key = _padded(max(lower, default=()))
    return (Release(".".join(map(str, key)), key), False) if key > NEWEST.key else None


@dataclass(frozen=True)
class _Clause:
    """One condition of a specifier; `numbers` as written, not padded."""

    operator: str
    numbers: tuple[int, ...]
    wildcard: bool
    text: str


@cache
def _clauses(spec: str) -> tuple[_Clause, ...]:
    """The conditions of a specifier, none for an empty one.

    Raises:
        ValueError: one of them is malformed.
    """
    if not spec.strip():
        return ()
    return tuple(_clause(part.strip(), spec) for part in spec.strip().rstrip(",").split(","))


def _clause(text: str, spec: str) -> _Clause:
    match = re.fullmatch(_CLAUSE, text)
    if match is None:
        within = "" if text == spec.strip() else f" in {spec.strip()[:60]!r}"
        raise ValueError(f"{text[:40]!r}{within} is not a version condition: write it like >=0.19.7 or ==0.14.*")
    clause = _Clause(match[1], numbers_in(match[2]), match[3] is not None, text)
    if clause.wildcard and clause.operator not in ("==", "!="):
        raise ValueError(f"{text[:40]!r}: .* goes with == and != only")
    if clause.operator == "~=" and len(clause.numbers) == 1:
        raise ValueError(f"{text[:40]!r}: ~= needs two numbers or more, like ~=0.16.0")
    return clause


def _clause_holds(clause: _Clause, key: tuple[int, ...]) -> bool:
    """Whether a release with this key satisfies one condition."""
    wanted, found = clause.numbers, key
    if clause.wildcard:
        return (_same_prefix(wanted, found)) is (clause.operator == "==")
    length = max(len(wanted), len(found))
    return _compare(clause, _padded(found, length), _padded(wanted, length))


def _compare(clause: _Clause, found: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether numbers of equal length stand in the relation that the operator says."""
    match clause.operator:
        case "==" | "===":
            return found == wanted
        case "!=":
            return found != wanted
        case "<":
            return found < wanted
        case "<=":
            return found <= wanted
        case ">":
            return found > wanted
        case ">=":
            return found >= wanted
        case _:  # ~=
            return found >= wanted and _same_prefix(clause.numbers[:-1], found)


def _same_prefix(prefix: tuple[int, ...], key: tuple[int, ...]) -> bool:
    """Whether a release belongs to the series that `0.14.*` names."""
    return _padded(key, len(prefix))[: len(prefix)] == prefix


def _padded(numbers: tuple[int, ...], length: int = PARTS) -> tuple[int, ...]:
    return numbers + (0,) * (length - len(numbers))

"""`--include` and `--exclude` of DeepSpeed's launcher: `HOST[:SLOT,SLOT]@HOST` (deepspeed/launcher/runner.py)."""

from __future__ import annotations

import re
from collections.abc import Mapping

Slots = Mapping[str, tuple[int, ...]]
"""Slots by host."""

_RANGE = re.compile(r"\s*\d+\s*-\s*\d+\s*")
_LARGEST = 65_536


class FilterError(ValueError):
    """A filter that the launcher refuses; the message says why.

    Attributes:
        kind: "syntax", "host" (there is none of this name) or "slot" (the host has none of this number).
    """

    def __init__(self, message: str, kind: str = "syntax") -> None:
        super().__init__(message)
        self.kind = kind


def read_filter(text: str) -> Slots:
    """The hosts that a filter names, with their slots in order; an empty tuple stands for all of a host.

    Raises:
        FilterError: where the launcher raises a ValueError.
    """
    chosen: dict[str, set[int]] = {}
    for part in text.split("@"):
        host, colon, slots = part.partition(":")
        numbers = chosen.setdefault(host, set())
        if colon:
            numbers.update(_slots(slots))
    return {host: tuple(sorted(numbers)) for host, numbers in chosen.items()}


def _slots(text: str) -> list[int]:
    numbers = []
    for word in text.split(","):
        try:
            numbers.append(int(word))
        except ValueError:
            raise FilterError(_reason(word)) from None
    return numbers


def mended(text: str) -> str | None:
    """A refused filter with its ranges written out and `@` between its hosts; None where that doesn't mend it."""
    parts: list[str] = []
    for part in text.split("@"):
        host, colon, slots = part.strip().partition(":")
        parts += [_with_slots(host, slots)] if colon else re.split(r"\s*,\s*", host)
    new = "@".join(parts)
    try:
        read_filter(new)
    except FilterError:
        return None
    return new if new != text else None


def _with_slots(host: str, slots: str) -> str:
    """A host with its slots, in which a range is written out and a further host begins behind a `@`."""
    found = f"{host}:"
    for word in re.split(r"\s*,\s*", slots):
        before = "" if found.endswith(":") else ","
        if _RANGE.fullmatch(word):
            first, last = map(int, word.split("-"))
            word = ",".join(map(str, range(first, min(last, first + _LONGEST) + 1)))
        next_host, colon, slot = word.partition(":")
        if _HOST.fullmatch(next_host):
            before, word = "@", _with_slots(next_host, slot) if colon else next_host
        found += before + word
    return found


_HOST = re.compile(r"[A-Za-z][\w.-]*")
_LONGEST = 63
"""Slots of a range; no machine has more."""


def _reason(word: str) -> str:
    if _RANGE.fullmatch(word):
        return f"`{word}` is no slot, and ranges aren't known: list each slot"
    if ":" in word or re.match(r"\s*[A-Za-z]", word):
        return f"`{word}` is no slot: hosts are separated by `@`, slots by `,`"
    return f"`{word}` is no slot" if word.strip() else "a slot is missing beside `:` or `,`"


def selected(slots: Mapping[str, int], include: str, exclude: str) -> Slots:
    """The slots that a run uses, in the hosts' order; hosts of which none is left are left out.

    Args:
        slots: how many each host has.
        include: the value of --include, or empty.
        exclude: the value of --exclude, or empty.

    Raises:
        FilterError: where the launcher raises a ValueError.
    """
    every = {host: tuple(range(min(count, _LARGEST))) for host, count in slots.items()}
    if include and exclude:
        raise FilterError("both are given")
    if not include and not exclude:
        return every
    chosen = read_filter(include or exclude)
    _check(chosen, every)
    if include:
        left = {host: chosen[host] or all_of for host, all_of in every.items() if host in chosen}
    else:
        left = {host: _without(all_of, chosen.get(host)) for host, all_of in every.items()}
    return {host: numbers for host, numbers in left.items() if numbers}


def _check(chosen: Slots, every: Slots) -> None:
    for host, numbers in chosen.items():
        if host not in every:
            hint = "hosts are separated by `@`" if "," in host else f"there is {', '.join(list(every)[:4])}"
            raise FilterError(f"there is no host `{host}` ({hint})", "host")
        missing = [number for number in numbers if number not in every[host]]
        if missing:
            raise FilterError(f"`{host}` has {len(every[host])} slots, and no slot {missing[0]}", "slot")


def _without(slots: tuple[int, ...], dropped: tuple[int, ...] | None) -> tuple[int, ...]:
    if dropped is None:
        return slots
    return tuple(slot for slot in slots if slot not in dropped) if dropped else ()

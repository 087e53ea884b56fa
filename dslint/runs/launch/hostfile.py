"""Hostfiles, as DeepSpeed's launcher reads them (deepspeed/launcher/runner.py, _parse_hostfile)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dslint.documents.source import Source, Span

_ENTRY = re.compile(r"(\S+)\s+slots=(\d+)")


@dataclass(frozen=True)
class HostfileProblem:
    """What stops the launcher.

    Attributes:
        kind: "bad entry" (not `HOST slots=N`), "twice" (a host stands there again) or "empty" (no host at all).
        span: the line; nothing at the file's start for "empty".
    """

    kind: str
    span: Span


@dataclass(frozen=True)
class Hostfile:
    """The hosts of a hostfile with their slots, in order, up to the first problem."""

    slots: Mapping[str, int]
    problem: HostfileProblem | None = None


def read_hostfile(source: Source) -> Hostfile:
    """Reads a hostfile; no text raises."""
    slots: dict[str, int] = {}
    start = 0
    for raw in source.data.splitlines(keepends=True):
        line = raw.decode("utf-8", "replace").strip()
        begin = start + len(raw) - len(raw.lstrip())
        span = Span(begin, max(start + len(raw.rstrip()), begin))
        start += len(raw)
        if not line or line.startswith("#"):
            continue
        match = _ENTRY.match(line)
        if match is None:
            return Hostfile(slots, HostfileProblem("bad entry", span))
        host, count = match.groups()
        if host in slots:
            return Hostfile(slots, HostfileProblem("twice", span))
        slots[host] = int(count[:18])
    return Hostfile(slots, None if slots else HostfileProblem("empty", Span(0, 0)))

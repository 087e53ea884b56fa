"""What was seen of a predicted effect."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dslint.smoke.script_outcome import Outcome
from dslint.smoke.verdict import Verdict

CONFIRMED, SEEN, NOT_REPRODUCED, NOT_RUN = "confirmed", "seen", "not reproduced", "not run"
"""What a question comes to: the effect came and went with the fix; it came; it ran and the effect didn't come;
nothing can be said, and why."""

LONGEST = 300
"""Characters of a message that a sentence quotes."""

OWN_FOLDERS = re.compile(r"\S*dslint-smoke-[^\s'\"]*|0x[0-9a-f]+")
"""What differs in the messages of one failure from trial to trial."""


MIRROR = re.compile(r"[^\s'\"]*dslint-smoke-[^\s/]*/[^\s/]*/work(?=/)")
"""What stands in messages before the user's own path (see places.TOP)."""


@dataclass(frozen=True)
class Sight:
    """What the run before the fix shows.

    Attributes:
        verdict: SEEN, NOT_REPRODUCED or NOT_RUN.
        told: what happened, in a sentence without its end.
    """

    verdict: str
    told: str


@dataclass(frozen=True)
class Answer:
    """What one way to try a question came to.

    Attributes:
        sight: what the run before the fix shows.
        before: what it came to; None where it was not tried.
        after: what the run with the fix came to; None where it was not tried.
        trouble: why that isn't as it should be; None if it is, or was not tried.
        well: what it does, where it is.
    """

    sight: Sight
    before: Verdict | Outcome | None = None
    after: Verdict | Outcome | None = None
    trouble: str | None = None
    well: str = ""


def first_line(message: str) -> str:
    """The beginning of a message, for a sentence."""
    lines = MIRROR.sub("", message).strip().splitlines() or [""]
    return lines[0] if len(lines[0]) <= LONGEST else f"{lines[0][:LONGEST]}…"


def without_own_folders(message: str) -> str:
    """A message as it can be compared with that of another trial."""
    return OWN_FOLDERS.sub("", message)

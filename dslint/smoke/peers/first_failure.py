"""Which rank of several failed by itself, and which only lost its peers; where each of them was left."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dslint.smoke.listening import Heard
from dslint.smoke.peers.standing import DIED, ENDED, RAISED, RUNS, UNKNOWN, WAITS, Standing, standing_of

LEFT_ALONE = re.compile(r"connection (closed|reset) by peer|broken pipe|timed ?out|wait timeout", re.IGNORECASE)
"""What gloo says where a peer is gone, or doesn't come; with NCCL such a rank waits until it is ended."""

TERMINATED, KILLED = -15, -9
"""Exit codes of ranks that the launcher ended since another had failed; the second also where memory was short."""


def standings(ranks: Sequence[Heard]) -> tuple[Standing, ...]:
    """Where each rank stands, or was left."""
    by_itself = any(how_well(one)[0] <= 1 and one.exit_code != KILLED for one in ranks)
    return tuple(_standing(rank, one, (TERMINATED, *[KILLED] * by_itself)) for rank, one in enumerate(ranks))


def _standing(rank: int, one: Heard, ended_by_launcher: Sequence[int]) -> Standing:
    if "exception" in one.seen:
        state = WAITS if is_left_alone(one) else RAISED
        return standing_of(rank, str(one.seen.get("trace", "")), state=state)
    if one.finished:
        return standing_of(rank, str(one.seen.get("ended_at", "")), state=ENDED)
    if not one.in_time:
        return standing_of(rank, one.stack)
    return Standing(rank, UNKNOWN if one.exit_code in ended_by_launcher else DIED)


def is_left_alone(one: Heard) -> bool:
    """Whether what a rank raised comes of the end of its peers."""
    message = str(one.seen.get("message", ""))
    if "exception" not in one.seen or LEFT_ALONE.search(message) is None:
        return False
    return "gloo" in message or standing_of(0, str(one.seen.get("trace", ""))).state != RUNS


def how_well(one: Heard) -> tuple[int, float]:
    """Orders ranks by what tells most of a failure.

    First comes one that raised by itself, then one that died, one that lost its peers, one that was ended since
    another had failed, one that had to be ended, one that ended well; among equals, the one that came to it first.
    Of those that ended well none is before rank 0, which alone tells of the saved weights.
    """
    if one.seen.get("exception") is not None:
        return (2 if is_left_alone(one) else 0), float(one.seen.get("failed_at", one.last_at))
    if one.finished:
        return 5, 0.0
    if not one.in_time:
        return 4, one.last_at
    return (3 if one.exit_code == TERMINATED else 1), one.last_at + (1e9 if one.exit_code == KILLED else 0.0)

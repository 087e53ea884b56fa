"""Whether real ranks wait for each other for good: they do nothing, and all of them are in collectives."""

from __future__ import annotations

import os
from pathlib import Path

from dslint.smoke.children import ask_for_stacks
from dslint.smoke.listening import Listener
from dslint.smoke.peers.activity import Activity
from dslint.smoke.peers.standing import WAITS, standing_of

PLAIN_DEVICES = ("console", "fd/", "full", "null", "ptmx", "pts/", "random", "shm/", "tty", "urandom", "zero")
"""What is in /dev and is no device that computes."""


class Standstill:
    """Looks after the ranks of a run, which may be a user's script.

    That nothing uses a processor doesn't tell enough: a script may sleep, or download something. So the ranks are
    asked where they stand then, which they answer without being disturbed. Only if each of them that goes on is
    in a collective is nobody left for whom the others wait. A rank that uses a GPU is never judged so: it may
    compute there while its process does nothing.
    """

    def __init__(self, listener: Listener, silence: float) -> None:
        self._listener = listener
        self._silence = silence
        self._activity: Activity | None = None

    def is_certain(self) -> bool:
        """Whether nothing can go on any more; the listener is told so."""
        heard = self._listener.heard
        pids = [one.seen.get("pid") for one in heard]
        told = [pid for pid in pids if isinstance(pid, int)]
        if len(told) < len(heard):
            return False
        if self._activity is None:
            self._activity = Activity(told, self._silence, with_children=True)
        if not self._activity.is_over(paused=any(one.building for one in heard)):
            return False
        self._activity.begin_anew()
        if any(_computes_elsewhere(pid) for pid in told) or not self._all_wait():
            return False
        self._listener.idle, self._listener.idle_for = True, self._silence
        return True

    def _all_wait(self) -> bool:
        """Whether all ranks that go on are in a collective."""
        going_on = {rank: one.seen["pid"] for rank, one in enumerate(self._listener.heard) if not one.finished}
        before = {rank: self._listener.told_of_stacks(rank) for rank in going_on}
        ask_for_stacks(list(going_on.values()))
        if any(self._listener.told_of_stacks(rank) == size for rank, size in before.items()):
            return False  # one did not answer
        places = [standing_of(rank, self._listener.stack(rank)) for rank in going_on]
        return bool(places) and all(one.state == WAITS for one in places)


def _computes_elsewhere(pid: int) -> bool:
    """Whether a process holds a device of which its processor time tells nothing, or won't say."""
    try:
        held = [os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()]
    except FileNotFoundError:  # it has ended
        return False
    except OSError:
        return True
    devices = [path.removeprefix("/dev/") for path in held if path.startswith("/dev/")]
    return any(not device.startswith(PLAIN_DEVICES) for device in devices)

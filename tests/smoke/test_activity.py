"""Processes that do nothing are told from those that work, or whose children do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from dslint.smoke.peers.activity import Activity

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the time of processors is read from /proc")

SLEEP = "import time; time.sleep(60)"
WORK = "while True: pass"
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', {!r}])"
PARENT_OF_MANY = "import subprocess, sys\nwhile True: subprocess.run([sys.executable, '-c', 'sum(range(10**6))'])"


@contextmanager
def process(code: str) -> Iterator[int]:
    started = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    try:
        time.sleep(0.6)  # what its start takes is work
        yield started.pid
    finally:
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def comes_to_rest(activity: Activity, within: float) -> bool:
    end = time.monotonic() + within
    while time.monotonic() < end:
        if activity.is_over():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(
    ("code", "with_children", "rests"),
    [
        (SLEEP, True, True),
        (WORK, False, False),
        (PARENT.format(WORK), False, True),
        (PARENT.format(WORK), True, False),
        (PARENT_OF_MANY, True, False),
        (PARENT.format(PARENT.format(SLEEP)), True, True),
    ],
    ids=["sleeps", "works", "child works", "child works, seen", "children come and go", "grandchild sleeps"],
)
def test_work_is_seen(code: str, with_children: bool, rests: bool) -> None:
    with process(code) as pid:
        activity = Activity([pid], 1.0, with_children=with_children)
        assert comes_to_rest(activity, 4.0 if rests else 2.0) is rests


def test_a_process_that_is_gone_does_nothing() -> None:
    with process("") as pid, process(WORK) as other:
        pass
    assert comes_to_rest(Activity([pid, other], 0.6, with_children=True), 3.0)


def test_the_time_of_silence_begins_anew_after_a_pause() -> None:
    with process(SLEEP) as pid:
        activity = Activity([pid], 0.6)
        assert comes_to_rest(activity, 3.0)
        assert not activity.is_over(paused=True)
        assert not activity.is_over()
        assert comes_to_rest(activity, 3.0)

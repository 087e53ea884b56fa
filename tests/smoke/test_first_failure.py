"""Of several ranks the one that failed by itself speaks, and not those that lost it."""

from __future__ import annotations

from typing import Any

import pytest

from dslint.smoke.listening import Heard
from dslint.smoke.peers.first_failure import is_left_alone, standings
from dslint.smoke.peers.standing import DIED, ENDED, RAISED, UNKNOWN, WAITS
from dslint.smoke.torchrun_exits import exit_codes
from dslint.smoke.verdict import Verdict, judge

CLOSED = "[/build/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:1"
BARRIER = """Stack (most recent call first):
  File "/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 5356 in barrier
  File "/home/me/train.py", line 7 in <module>"""
LINE = """Stack (most recent call first):
  File "/home/me/train.py", line 5 in <module>"""


def raised(name: str, message: str, at: float, trace: str = LINE) -> Heard:
    return Heard(
        seen={
            "phase": "step",
            "exception": name,
            "bases": [name],
            "message": message,
            "failed_at": at,
            "trace": trace,
        }
    )


def left_alone(at: float) -> Heard:
    return raised("RuntimeError", CLOSED, at, BARRIER)


def died(code: int | None, at: float = 1.0) -> Heard:
    return Heard(seen={"phase": "step"}, exit_code=code, last_at=at)


def ended(**seen: Any) -> Heard:
    return Heard(seen={"phase": "step", "ended_early": True, "steps": 1, **seen}, finished=True)


def verdict(*ranks: Heard) -> Verdict:
    return judge(ranks, mode="real", world=len(ranks), same_batch=False)


def test_what_a_rank_raises_by_itself_is_before_what_others_raise_for_it() -> None:
    """Even where these were quicker: a script may leave the group before its exception comes out."""
    found = verdict(left_alone(1.0), raised("ValueError", "bad sample", 2.0), left_alone(1.5))
    assert found.reason == "ValueError on rank 1 during step at /home/me/train.py:5: bad sample"
    assert [one.state for one in found.standing] == [WAITS, RAISED, WAITS]
    assert (found.exception, found.message) == ("ValueError", "bad sample")


def test_the_first_of_several_exceptions_counts() -> None:
    found = verdict(raised("KeyError", "'b'", 2.0), raised("ValueError", "a", 1.0))
    assert found.reason.startswith("ValueError on rank 1 ")


def test_an_exception_that_all_have_is_no_single_ranks() -> None:
    found = verdict(raised("ValueError", "a", 1.0), raised("ValueError", "a", 2.0))
    assert found.reason == "ValueError during step at /home/me/train.py:5: a"


def test_a_rank_that_ended_is_why_the_others_lost_it() -> None:
    found = verdict(left_alone(3.0), ended(ended_at=LINE), left_alone(2.0), died(-15))
    assert found.reason == (
        "rank 1 has ended at /home/me/train.py:5; ranks 0 and 2 waited for it in barrier at /home/me/train.py:7, "
        "until the connection was closed (during step)"
    )
    assert (found.failure, found.exception) == ("exception", "RuntimeError")
    assert [one.state for one in found.standing] == [WAITS, ENDED, WAITS, UNKNOWN]


@pytest.mark.parametrize("code", [-11, -9, 7, 0])
def test_a_rank_that_died_is_before_those_that_lost_it(code: int) -> None:
    found = verdict(left_alone(0.5), died(code), died(-15, at=0.1))
    assert found.failure == "died"
    assert found.reason == f"rank 1 died during step ({'signal' if code < 0 else 'exit code'} {abs(code)})"
    assert [one.state for one in found.standing] == [WAITS, DIED, UNKNOWN]


def test_a_rank_that_was_killed_after_another_failed_did_not_die_by_itself() -> None:
    found = verdict(died(-9, at=0.1), raised("ValueError", "a", 1.0))
    assert found.exception == "ValueError"
    assert [one.state for one in found.standing] == [UNKNOWN, RAISED]


def test_a_connection_that_the_script_itself_lost_is_its_own() -> None:
    own = raised("ConnectionResetError", "[Errno 104] Connection reset by peer", 1.0)
    assert not is_left_alone(own)
    assert not is_left_alone(raised("TimeoutError", "The read operation timed out", 1.0))
    assert is_left_alone(raised("RuntimeError", "Timed out waiting 1800000ms for recv operation", 1.0, BARRIER))
    assert is_left_alone(raised("RuntimeError", CLOSED, 1.0))


def test_ranks_that_ended_well_stand_nowhere() -> None:
    assert verdict(ended(), ended()).standing == ()
    assert [one.state for one in standings([ended(), died(None)])] == [ENDED, DIED]


TOLD = """
E1202 19:20:24.1 30021 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: -11) local_rank: 1
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
=====================
train.py FAILED
---------------------
Failures:
[1]:
  time      : 2026-12-02_19:20:24
  host      : localhost
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 30050)  (SIGTERM)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 30050
---------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-12-02_19:20:24
  host      : localhost
  rank      : 1 (local_rank: 1)
  exitcode  : 7 (pid: 30051)
  error_file: <N/A>
"""


def test_torchrun_tells_with_what_each_rank_ended() -> None:
    assert exit_codes(TOLD, 3) == {0: -15, 1: 7, 2: 0}
    assert exit_codes("", 3) == {}

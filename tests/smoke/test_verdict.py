"""What ranks reported, and the verdict on it."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from dslint.smoke.listening import Heard, Listener
from dslint.smoke.reporting import Reporter, report_file
from dslint.smoke.verdict import FAILURES, Verdict, judge

WHOLE = {"missing": [], "misshapen": {}, "tensors": 2, "elements": 10, "expected_elements": 10}
FINE: dict[str, Any] = {
    "phase": "done",
    "losses": [2.0, 1.5],
    "rates": [1e-4, 1e-4],
    "skipped": 0,
    "moved": True,
    "saved": True,
    "weights": WHOLE,
    "loaded": True,
    "restored_steps": True,
    "restored_parameters": True,
}


def rank(finished: bool = True, in_time: bool = True, exit_code: int | None = None, **seen: Any) -> Heard:
    return Heard(seen={**FINE, **seen}, finished=finished, in_time=in_time, exit_code=exit_code)


def real(*ranks: Heard) -> Verdict:
    return judge(ranks, mode="real", world=len(ranks))


def test_ranks_that_agree_pass() -> None:
    assert real(rank(), rank()).passed


@pytest.mark.parametrize(
    ("seen", "failure", "words"),
    [
        ({"losses": [2.0, "nan"]}, "loss", "the loss of step 2 on rank 0 is nan"),
        ({"skipped": 2, "loss_scale": 256.0}, "overflow", "all 2 steps overflowed in fp16"),
        ({"moved": False}, "standstill", "2 optimizer steps moved no parameter"),
        ({"moved": False, "rates": [0.0] * 5}, "standstill", "since the learning rate was 0"),
        ({"weights": {**WHOLE, "missing": ["a.weight"]}}, "weights", "lack 1 tensors, the first: a.weight"),
        (
            {"weights": {**WHOLE, "misshapen": {"a.weight": [0]}}},
            "weights",
            "another shape than in the model: a.weight",
        ),
        ({"loaded": False}, "restore", "found nothing to load"),
        ({"restored_steps": False}, "restore", "another number of steps"),
        ({"restored_parameters": False}, "restore", "other parameters than were saved"),
    ],
)
def test_what_is_wrong_with_a_training_that_came_to_its_end(
    seen: dict[str, Any], failure: str, words: str
) -> None:
    found = judge([rank(**seen)], mode="simulated", world=1)
    assert found.failure == failure
    assert failure in FAILURES
    assert words in found.reason
    assert found.trained


def test_what_can_not_be_seen_is_no_failure() -> None:
    assert judge([rank(moved=None, restored_parameters=None, weights=None)], mode="simulated", world=1).passed


def test_losses_of_a_simulated_group_are_not_judged() -> None:
    assert judge([rank(losses=[2.0, "nan"])], mode="simulated", world=8).passed


def test_a_warm_up_that_has_only_begun_is_a_note() -> None:
    found = judge([rank(moved=False, rates=[0.0, 0.0])], mode="simulated", world=8)
    assert found.passed
    assert "try more --steps" in found.notes[0]


def test_ranks_that_lost_one_another_fail() -> None:
    found = real(rank(), rank(losses=[2.0, 1.6]))
    assert found.failure == "unequal"
    assert "every rank got the same batch" in found.reason


def test_a_script_may_give_its_ranks_different_batches() -> None:
    assert judge([rank(), rank(losses=[2.0, 1.6])], mode="real", world=2, same_batch=False).passed


def test_the_rank_that_raised_speaks_for_those_that_waited_for_it() -> None:
    waits = rank(finished=False, in_time=False, phase="step")
    raised = rank(phase="step", exception="ValueError", bases=["ValueError"], message="no")
    found = real(waits, raised)
    assert (found.failure, found.reason) == ("exception", "ValueError on rank 1 during step: no")


def test_a_rank_that_died_is_named_with_its_signal() -> None:
    found = judge([rank(finished=False, phase="initialize", exit_code=-11)], mode="simulated", world=8)
    assert found.reason == "the process died during initialize (signal 11)"


def test_a_hang_while_an_op_is_built_says_so() -> None:
    one = rank(finished=False, in_time=False, phase="initialize")
    one.building = "cpu_adam"
    assert "while the op cpu_adam was being built" in judge([one], mode="simulated", world=8).reason


def test_steps_that_overflow_at_first_are_a_note() -> None:
    found = judge([rank(skipped=1)], mode="simulated", world=8)
    assert found.passed
    assert found.notes == ("1 of 2 steps overflowed while the loss scale came down",)


def test_seconds_are_those_between_two_phases(tmp_path: Path) -> None:
    one = Heard()
    for phase, at in (("read", 1.0), ("parse", 1.5), ("done", 4.0)):
        one.take({"phase": phase, "at": at})
    one.take({"finished": True, "at": 4.2})
    assert one.seconds() == {"read": 0.5, "parse": 2.5}


def test_what_a_rank_reports_is_read_line_by_line(tmp_path: Path) -> None:
    heard: list[dict[str, Any]] = []
    listener = Listener(tmp_path, ranks=2, timeout=10, progress=heard.append)
    Reporter(tmp_path, 0).enter("read")
    Reporter(tmp_path, 1).tell(losses=[math.pi], path=tmp_path)
    with report_file(tmp_path, 0).open("a") as file:
        file.write('{"phase": "par')
    listener.listen()
    assert [line["phase"] for line in heard] == ["read"]
    with report_file(tmp_path, 0).open("a") as file:
        file.write('se", "at": 1}\n')
    listener.listen()
    zero, one = listener.close(in_time=True)
    assert (zero.phase, one.seen) == ("parse", {"losses": [math.pi], "path": str(tmp_path)})
    assert not zero.finished


def test_a_rank_that_fails_on_a_full_disk_is_told_from_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may not even be able to report its exception."""
    usage = shutil.disk_usage(tmp_path)
    for free, full in ((0, True), (2**30, False)):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: usage._replace(free=free))
        listener = Listener(tmp_path, ranks=2, timeout=10)
        Reporter(tmp_path, 0).enter("save")
        Reporter(tmp_path, 1).finish()
        assert [one.disk_full for one in listener.close(in_time=True)] == [full, False]

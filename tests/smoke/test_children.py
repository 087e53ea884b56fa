"""A child's end is an outcome, whatever end it takes, and nothing of it is left."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dslint.smoke import listening
from dslint.smoke.children import ServerClosedError, run_forked, run_forked_group
from dslint.smoke.listening import Heard
from dslint.smoke.reporting import Reporter
from dslint.smoke.verdict import Verdict, judge

Work = Callable[[Reporter], None]


def forked(work: Work, folder: Path, timeout: float = 10) -> Heard:
    return run_forked(work, folder, timeout)


def verdict(heard: Heard) -> Verdict:
    return judge([heard], mode="simulated", world=8)


def test_a_child_reports_and_finishes(tmp_path: Path) -> None:
    heard = forked(lambda reporter: (reporter.enter("done"), reporter.tell(saved=True))[0], tmp_path)
    assert heard.finished
    assert heard.seen["saved"] is True
    assert verdict(heard).trained


def test_an_exception_comes_with_its_bases_and_its_phase(tmp_path: Path) -> None:
    def work(reporter: Reporter) -> None:
        reporter.enter("parse")
        raise FileNotFoundError("no such config")

    found = verdict(forked(work, tmp_path))
    assert (found.phase, found.exception, found.message) == ("parse", "FileNotFoundError", "no such config")
    assert found.raised("OSError")
    place = r"\S*test_children\.py:\d+"
    assert re.fullmatch(rf"FileNotFoundError during parse at {place}: no such config", found.reason)


def test_sys_exit_is_an_outcome(tmp_path: Path) -> None:
    found = verdict(forked(lambda reporter: sys.exit(3), tmp_path))
    assert (found.exception, found.message) == ("SystemExit", "3")


def test_a_hard_exit_is_an_outcome(tmp_path: Path) -> None:
    def work(reporter: Reporter) -> None:
        reporter.enter("initialize")
        os.write(2, b"last words")
        os._exit(7)

    found = verdict(forked(work, tmp_path))
    assert (found.phase, found.failure) == ("initialize", "died")
    assert found.reason == "the process died during initialize (exit code 7)"
    assert found.output == "last words"


def test_a_segmentation_fault_is_an_outcome(tmp_path: Path) -> None:
    def work(reporter: Reporter) -> None:
        faulthandler.disable()  # pytest's own would tell of it at length
        ctypes.string_at(0)

    found = verdict(forked(work, tmp_path))
    assert found.failure == "died"
    assert "signal 11" in found.reason


def test_a_hang_ends_at_the_timeout_and_says_where_it_stood(tmp_path: Path) -> None:
    def sleep_for_ever() -> None:
        time.sleep(600)

    started = time.monotonic()
    found = verdict(forked(lambda reporter: sleep_for_ever(), tmp_path, timeout=1))
    assert (found.failure, found.exception) == ("hang", "Timeout")
    assert time.monotonic() - started < 10
    assert "sleep_for_ever" in found.stacks[0]


def test_a_hang_takes_all_its_processes_along(tmp_path: Path) -> None:
    def work(reporter: Reporter) -> None:
        reporter.tell(grandchild=os.fork())
        time.sleep(600)

    heard = forked(work, tmp_path, timeout=1)
    assert is_gone(heard.seen["grandchild"])


def test_a_process_that_made_itself_independent_is_ended_too(tmp_path: Path) -> None:
    code = """if True:
        import sys
        from pathlib import Path
        from dslint.smoke.children import adopt_orphans, run_forked
        import os, time

        def work(reporter):
            if os.fork() == 0:
                os.setsid()
                reporter.tell(daemon=os.getpid())
                time.sleep(600)
            time.sleep(0.3)

        adopt_orphans()
        print(run_forked(work, Path(sys.argv[1]), 10, alone=True).seen["daemon"])
    """
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert is_gone(int(done.stdout))


def test_other_children_of_the_process_are_left_alone(tmp_path: Path) -> None:
    other = subprocess.Popen(["sleep", "60"])
    forked(lambda reporter: reporter.enter("done"), tmp_path)
    assert other.poll() is None
    other.kill()
    other.wait()


def test_endless_output_ends_the_child_before_it_fills_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "FLOOD", 2**20)

    def work(reporter: Reporter) -> None:
        while True:
            os.write(1, b"x" * 2**16)

    found = verdict(forked(work, tmp_path, timeout=60))
    assert (found.failure, found.reason) == ("flood", "it printed without end during start")
    assert (tmp_path / "rank-0.out").stat().st_size < 2**28


def test_the_clock_stands_still_while_an_op_is_built(tmp_path: Path) -> None:
    def work(reporter: Reporter) -> None:
        reporter.enter("initialize")
        reporter.tell(building="cpu_adam")
        time.sleep(1.5)
        reporter.tell(built="cpu_adam")
        reporter.enter("done")

    heard = forked(work, tmp_path, timeout=1)
    assert heard.finished
    assert heard.built["cpu_adam"] == pytest.approx(1.5, abs=0.3)


def test_a_child_that_nobody_waits_for_is_ended(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    def work(reporter: Reporter) -> None:
        pid_file.write_text(str(os.getpid()))
        time.sleep(600)

    with pytest.raises(ServerClosedError):
        run_forked(work, tmp_path, 60, wanted=lambda: not pid_file.exists() or not pid_file.read_text())
    assert is_gone(int(pid_file.read_text()))


def is_gone(pid: int) -> bool:
    for _ in range(50):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.1)
    return False


# --- several ranks ---


def test_ranks_run_side_by_side(tmp_path: Path) -> None:
    ranks = run_forked_group([lambda reporter, own=own: reporter.tell(own=own) for own in range(3)], tmp_path, 10)
    assert [one.seen["own"] for one in ranks] == [0, 1, 2]
    assert all(one.finished for one in ranks)


def test_once_a_rank_has_failed_the_others_are_ended(tmp_path: Path) -> None:
    def fail(reporter: Reporter) -> None:
        raise KeyError

    began = time.monotonic()
    waiting, failing = run_forked_group([lambda reporter: time.sleep(60), fail], tmp_path, 30)
    assert time.monotonic() - began < 10
    assert (waiting.finished, failing.seen["exception"]) == (False, "KeyError")


@pytest.mark.skipif(sys.platform != "linux", reason="the time of processors is read from /proc")
def test_ranks_that_do_nothing_are_ended_and_those_that_work_are_not(tmp_path: Path) -> None:
    def work(reporter: Reporter) -> None:
        end = time.monotonic() + 2
        while time.monotonic() < end:
            pass

    for name in ("idle", "busy"):
        (tmp_path / name).mkdir()
    began = time.monotonic()
    idle = run_forked_group([lambda reporter: time.sleep(60)] * 2, tmp_path / "idle", 60, silence=1.0)
    assert time.monotonic() - began < 10
    assert not any(one.in_time for one in idle)
    assert all(one.finished for one in run_forked_group([work] * 2, tmp_path / "busy", 60, silence=1.0))

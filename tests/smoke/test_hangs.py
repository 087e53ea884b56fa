"""Real ranks of a script that miss each other are ended soon, and told apart."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from dslint.smoke import launch
from dslint.smoke.script.running import run_script
from dslint.smoke.verdict import Verdict, judge

pytestmark = [
    pytest.mark.deepspeed,
    pytest.mark.skipif(sys.platform != "linux", reason="the time of processors is read from /proc"),
]

SILENCE = 3.0
BEGIN = """
import os, sys, time
import torch, deepspeed
import torch.distributed as dist

sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None  # else the first run builds it for a minute

def engine_of(stage):
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Linear(64, 1))
    config = {"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": stage},
              "bf16": {"enabled": True}, "optimizer": {"type": "Adam", "params": {"lr": 1e-3, "torch_adam": True}}}
    return deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)[0]

def step(engine):
    loss = engine(torch.randn(2, 16, dtype=torch.bfloat16)).float().sum()  # forward
    engine.backward(loss)  # backward
    engine.step()
"""
SAVING = """
engine = engine_of({stage})
while True:
    step(engine)
    if dist.get_rank() == 0:
        engine.save_checkpoint({place!r})  # save
"""
MEETING = """
engine = engine_of(0)
if dist.get_rank() == 0:
    dist.barrier()  # alone
step(engine)
"""
LONELY = """
engine = engine_of(0)
step(engine)
if dist.get_rank() == 1:
    {what}  # alone
dist.barrier()  # together
"""
RECEIVING = """
engine = engine_of(0)
dist.recv(torch.zeros(1), src=1 - dist.get_rank())  # both
"""
SLEEPING = """
engine = engine_of(0)
if dist.get_rank() == 0:
    time.sleep(600)  # sleeps
step(engine)
"""
NEVER_THERE = """
if os.environ["RANK"] == "1":
    sys.exit()  # leaves
engine_of(0)  # stays
"""


@pytest.fixture(autouse=True)
def quiet_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "SILENCE", SILENCE)
    monkeypatch.setenv("DS_ACCELERATOR", "cpu")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.chdir(tmp_path)


def run(text: str, *, ranks: int = 2, timeout: float = 90.0) -> Verdict:
    Path("train.py").write_text(BEGIN + text)
    heard = run_script(Path("train.py"), [], ranks=ranks, steps=9, timeout=timeout, python=sys.executable)
    return judge(heard, mode="real", world=ranks, same_batch=False)


def line(mark: str) -> str:
    """The line of the script that ends in this comment."""
    lines = Path("train.py").read_text().splitlines()
    return f"train.py:{next(number for number, text in enumerate(lines, 1) if text.endswith(f'# {mark}'))}"


@pytest.mark.parametrize(
    ("stage", "ranks", "others", "waits"),
    [
        (1, 2, "rank 1", "in all_reduce, called by engine.backward at {backward}"),
        (3, 2, "rank 1", "in broadcast, called by the forward pass at {forward}"),
        (1, 4, "ranks 1 to 3", "in all_reduce, called by engine.backward at {backward}"),
    ],
)
def test_a_save_on_rank_0_only(tmp_path: Path, stage: int, ranks: int, others: str, waits: str) -> None:
    began = time.monotonic()
    found = run(SAVING.format(stage=stage, place=str(tmp_path / "out")), ranks=ranks)
    assert time.monotonic() - began < 80
    assert (found.failure, found.exception) == ("hang", "Timeout")
    waits = waits.format(forward=line("forward"), backward=line("backward"))
    assert found.reason == (
        "the ranks wait for each other in different places: "
        f"rank 0 in barrier, called by engine.save_checkpoint at {line('save')}; {others} {waits} "
        "(during step; nothing moved for 3 s)"
    )
    assert [one.state for one in found.standing] == ["waits"] * ranks
    assert len(found.stacks) == ranks


def test_a_collective_on_rank_0_only() -> None:
    found = run(MEETING)
    assert found.reason.startswith(
        f"the ranks wait for each other in different places: rank 0 in barrier at {line('alone')}; rank 1 in "
    )


def test_ranks_that_miss_each_other_in_one_line() -> None:
    assert run(RECEIVING).reason == (
        f"both ranks stand in the same place, in recv at {line('both')}, and none of them goes on "
        "(during step; nothing moved for 3 s)"
    )


def test_a_rank_that_sleeps_is_not_taken_for_one_that_waits() -> None:
    found = run(SLEEPING, timeout=24.0)
    assert found.reason.startswith(
        f"rank 0 is outside of any collective, at {line('sleeps')} (`time.sleep(600)  # sleeps`); "
        "rank 1 waits for it in "
    )
    assert found.reason.endswith("(during step; no end in time)")


def test_a_rank_that_is_never_there() -> None:
    found = run(NEVER_THERE)
    assert found.reason.startswith(
        f"rank 1 has ended at {line('leaves')} (`sys.exit()  # leaves`); rank 0 waits for it in init_process_group"
    )


# --- one fails, and the others lose it ---


@pytest.mark.parametrize("ranks", [2, 4])
def test_the_rank_that_raised_is_named(ranks: int) -> None:
    found = run(LONELY.format(what='raise ValueError("bad sample")'), ranks=ranks)
    assert (found.failure, found.exception) == ("exception", "ValueError")
    assert found.reason == f"ValueError on rank 1 during step at {line('alone')}: bad sample"


@pytest.mark.parametrize("ranks", [2, 4])
def test_the_rank_that_left_is_named(ranks: int) -> None:
    found = run(LONELY.format(what="sys.exit(0)"), ranks=ranks)
    assert found.failure == "exception"
    assert found.reason.startswith(f"rank 1 has ended at {line('alone')} (`sys.exit(0)  # alone`); rank")
    assert f"waited for it in barrier at {line('together')}, until the connection was closed" in found.reason


@pytest.mark.parametrize(
    ("what", "how"), [("os.kill(os.getpid(), 11)", "signal 11"), ("os._exit(0)", "exit code 0")]
)
def test_the_rank_that_died_is_named(what: str, how: str) -> None:
    found = run(LONELY.format(what=f"import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); {what}"))
    assert (found.failure, found.reason) == ("died", f"rank 1 died during step ({how})")

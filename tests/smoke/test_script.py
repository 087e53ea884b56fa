"""A user's own script is run as it is, and ended after a few steps; nothing of that is left."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dslint.smoke import leftovers
from dslint.smoke.environment import SmokeError
from dslint.smoke.leftovers import remove_leftovers, shared_memory
from dslint.smoke.listening import Heard
from dslint.smoke.script.import_hook import after_import
from dslint.smoke.script.running import run_script, script_environment
from dslint.smoke.verdict import Verdict, judge

needs_deepspeed = pytest.mark.deepspeed
STEPS = 3

MODEL = """
import os, sys, tempfile, time
from pathlib import Path
import torch, deepspeed

sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None  # else the first run builds it for a minute

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(16, 64), torch.nn.Linear(64, 1)
    def forward(self, x):
        return self.down(torch.relu(self.up(x))).float().pow(2).mean()

def engine_of(stage, **more):
    config = {"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": stage},
              "optimizer": {"type": "Adam", "params": {"lr": 1e-3, "torch_adam": True}}, **more}
    model = Model()
    return deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)[0]
"""

ENDLESS = (
    MODEL
    + """
notes = Path(sys.argv[1]) / f"rank-{os.environ['RANK']}"
import helper  # lies beside the script

def main():
    engine = engine_of(2, bf16={"enabled": True}, gradient_accumulation_steps=2)
    with tempfile.TemporaryDirectory() as place:
        try:
            for _ in range(10_000):
                engine.backward(engine(torch.randn(2, 16, dtype=torch.bfloat16)))
                engine.step()
        finally:
            notes.write_text(f"{place}\\n{os.getcwd()}\\n{sys.argv}\\n{__file__}\\n{os.environ.get('PYTHONPATH')}")

if __name__ == "__main__":
    main()
"""
)

RAISING = (
    MODEL
    + """
engine = engine_of(0)
engine._take_model_step = lambda *_: 1 / 0
engine.backward(engine(torch.randn(2, 16)))
engine.step()
"""
)

GUARDED = (
    MODEL
    + """
engine = engine_of(2, bf16={"enabled": True})
for _ in range(10_000):
    engine.backward(engine(torch.randn(2, 16, dtype=torch.bfloat16)))
    engine.step()
    if engine.global_rank == 0:
        engine.save_checkpoint(sys.argv[1])  # all ranks have to call it
"""
)

SHORT = (
    MODEL
    + """
engine = engine_of(0)
for _ in range(2):
    engine.backward(engine(torch.randn(2, 16)))
    engine.step()
"""
)

STUBBORN = (
    MODEL
    + """
engine = engine_of(2)
for _ in range(10_000):
    try:
        engine(torch.randn(2, 16)).backward()
        engine.step()
    except:
        print("goes on")
Path(sys.argv[1]).touch()
"""
)

TRAINER = """
import sys
from pathlib import Path
import torch
from transformers import Trainer, TrainingArguments

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(16, 64), torch.nn.Linear(64, 1)
    def forward(self, x, labels=None):
        found = self.down(torch.relu(self.up(x)))
        return {"loss": (found - labels).pow(2).mean(), "logits": found}

config = {"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
          "zero_optimization": {"stage": 2},
          "optimizer": {"type": "AdamW", "params": {"lr": "auto", "torch_adam": True}},
          "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_min_lr": 0, "warmup_max_lr": "auto",
                        "warmup_num_steps": "auto", "total_num_steps": "auto"}}}
args = TrainingArguments(output_dir=sys.argv[1], deepspeed=config, per_device_train_batch_size=2, warmup_steps=1,
                         gradient_accumulation_steps=2, num_train_epochs=500, save_strategy="steps", save_steps=1)
data = [{"x": torch.randn(16), "labels": torch.randn(1)} for _ in range(100)]
import deepspeed
sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None
trainer = Trainer(model=Model(), args=args, train_dataset=data)
try:
    trainer.train()
finally:
    Path(sys.argv[1], "length").write_text(str(trainer.state.max_steps))
"""

SLEEPING = """
import os, sys, time
from pathlib import Path
Path(sys.argv[1]).write_text(str(os.getpid()))
time.sleep(600)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the script's own output; temporary folders come beside it, the working folder is empty."""
    for name in ("out", "work", "temporary", "scripts"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))  # torch keeps it, as for any script
    monkeypatch.setenv("DS_ACCELERATOR", "cpu")
    return tmp_path


def run(
    place: Path, text: str, *arguments: str, ranks: int = 1, timeout: float = 60.0, **more: Any
) -> list[Heard]:
    script = place / "scripts" / "train.py"
    script.write_text(text)
    heard = run_script(script, arguments, ranks=ranks, steps=STEPS, timeout=timeout, python=sys.executable, **more)
    assert left(place) == []
    return heard


def left(place: Path) -> list[Path]:
    """What lies in the temporary and in the working folder."""
    return [*(place / "temporary").iterdir(), *(place / "work").iterdir()]


def verdict(heard: list[Heard]) -> Verdict:
    return judge(heard, mode="real", world=len(heard), same_batch=False)


def is_alive(pid: str) -> bool:
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# --- scripts that train ---


@needs_deepspeed
def test_an_endless_script_is_ended_in_order_after_its_steps(place: Path) -> None:
    (place / "scripts" / "helper.py").touch()
    seen = verdict(run(place, ENDLESS, str(place / "out"), "--lr", "1", ranks=2))
    assert seen.passed, (seen.reason, seen.output)
    assert seen.phase == "done"
    assert len(seen.losses) == STEPS
    assert None not in seen.losses
    assert seen.seen["batch"] == [8, 2, 2]
    assert (seen.seen["zero_stage"], seen.seen["dtype"], seen.seen["moved"]) == (2, "bfloat16", True)
    assert seen.seen["weights"] == {
        "missing": [], "misshapen": {}, "tensors": 4, "elements": 1153, "expected_elements": 1153
    }  # fmt: skip
    assert seen.seen["checkpoint_saved"] is True
    for rank in range(2):  # the script's `finally:` ran, and what it had in `with` is gone
        own, where, argv, file, search = (place / "out" / f"rank-{rank}").read_text().splitlines()
        assert not Path(own).exists()
        script = str(place / "scripts" / "train.py")
        assert (where, file) == (str(place / "work"), script)
        assert argv == str([script, str(place / "out"), "--lr", "1"])
        assert search == str(os.environ.get("PYTHONPATH"))


@needs_deepspeed
def test_an_exception_in_a_step_is_the_verdict(place: Path) -> None:
    seen = verdict(run(place, RAISING))
    assert (seen.failure, seen.exception, seen.phase) == ("exception", "ZeroDivisionError", "step")
    assert "train.py" in seen.output


@needs_deepspeed
def test_a_hang_under_a_rank_guard_names_the_line(place: Path) -> None:
    seen = verdict(run(place, GUARDED, str(place / "out"), ranks=2, timeout=14))
    assert (seen.failure, seen.phase) == ("hang", "step")
    line = next(number for number, text in enumerate(GUARDED.splitlines(), 1) if "save_checkpoint" in text)
    assert any(f'train.py", line {line} in' in stack for stack in seen.stacks)


@needs_deepspeed
def test_a_script_that_ends_early_passes_with_a_note(place: Path) -> None:
    seen = verdict(run(place, SHORT))
    assert seen.passed
    assert seen.seen["steps"] == 2
    assert any("after 2 of 3 optimizer steps" in note for note in seen.notes)


@needs_deepspeed
def test_a_script_that_catches_everything_is_ended_all_the_same(place: Path) -> None:
    seen = verdict(run(place, STUBBORN, str(place / "out" / "end")))
    assert seen.passed
    assert "goes on" in seen.output
    assert not (place / "out" / "end").exists()
    assert any("losses are unknown" in note for note in seen.notes)


@needs_deepspeed
def test_a_trainer_is_given_its_length_and_saves_nothing_itself(place: Path) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    seen = verdict(run(place, TRAINER, str(place / "out")))
    assert seen.passed, (seen.reason, seen.output)
    assert len(seen.losses) == STEPS
    assert seen.seen["scheduler"] == "WarmupDecayLR"
    assert seen.seen["weights"]["tensors"] == 4
    assert [file.name for file in (place / "out").iterdir()] == ["length"]
    assert (place / "out" / "length").read_text() == str(STEPS)


# --- scripts that don't come to train ---


@needs_deepspeed
def test_a_script_without_deepspeed_is_refused(place: Path) -> None:
    with pytest.raises(SmokeError, match=r"train\.py: it ended without calling deepspeed\.initialize"):
        run(place, "import sys\nsys.exit()")
    assert left(place) == []


@needs_deepspeed
def test_a_script_that_fails_before_deepspeed_is_judged(place: Path) -> None:
    seen = verdict(run(place, "import sys\nsys.exit(3)"))
    assert (seen.failure, seen.exception, seen.phase) == ("exception", "SystemExit", "start")


@needs_deepspeed
def test_a_script_that_never_gets_to_deepspeed_is_ended(place: Path) -> None:
    pid = place / "out" / "pid"
    with pytest.raises(SmokeError, match=r"didn't call deepspeed\.initialize within 4 seconds .*line 5\)"):
        run(place, SLEEPING, str(pid), timeout=4)
    assert not is_alive(pid.read_text())
    assert left(place) == []


@needs_deepspeed
def test_nothing_is_left_after_an_interrupt(place: Path) -> None:
    pids = []

    def interrupt(line: dict[str, Any]) -> None:
        pids.extend([str(line["pid"])] if "pid" in line else [])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(place, SLEEPING, str(place / "out" / "pid"), progress=interrupt)
    assert len(pids) == 1
    assert not is_alive(pids[0])
    assert left(place) == []


def test_a_missing_script_is_refused(tmp_path: Path) -> None:
    def attempt(script: Path) -> None:
        run_script(script, [], ranks=1, steps=1, timeout=1, python=sys.executable)

    with pytest.raises(SmokeError, match="no such file"):
        attempt(tmp_path / "missing.py")
    with pytest.raises(SmokeError, match="is not a file"):
        attempt(tmp_path)


def test_a_python_without_torch_is_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = place / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
    bare.chmod(0o755)
    script = place / "scripts" / "train.py"
    script.touch()
    with pytest.raises(SmokeError, match=r"(?s)didn't start it: .*torch"):
        run_script(script, [], ranks=1, steps=1, timeout=20, python=str(bare))


# --- parts ---


def test_the_environment_is_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setenv("PATH", "/somewhere")
    found = script_environment("/env/bin/python")
    ours = {"PATH": "", "WANDB_MODE": "", "NCCL_NVLS_ENABLE": ""}
    assert {**found, **ours} == {**os.environ, **ours}
    assert found["PATH"] == f"/somewhere{os.pathsep}/env/bin"
    assert script_environment("python")["PATH"] == "/somewhere"


def test_the_hook_calls_back_before_the_importer_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "whole_package").mkdir()
    (tmp_path / "whole_package" / "__init__.py").write_text("import whole_package.part\nvalue = 1\n")
    (tmp_path / "whole_package" / "part.py").write_text("value = 2\n")
    (tmp_path / "user_of_it.py").write_text("from whole_package import value\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    called = []

    def patch(module: ModuleType) -> None:
        called.append(module.__name__)
        module.value += 10  # type: ignore[attr-defined]

    after_import({"whole_package": patch, "whole_package.part": patch, "never_imported": patch})
    user = importlib.import_module("user_of_it")
    assert user.value == 11
    assert called == ["whole_package.part", "whole_package"]
    assert "exec_module" not in vars(sys.modules["whole_package"].__loader__)
    assert importlib.util.find_spec("never_imported") is None


def test_losses_may_differ_where_the_data_does() -> None:
    ranks = [Heard(seen={"phase": "done", "losses": [loss], "steps": 1}, finished=True) for loss in (1.0, 2.0)]
    assert judge(ranks, mode="real", world=2).failure == "unequal"
    assert judge(ranks, mode="real", world=2, same_batch=False).passed
    ranks[1].seen["losses"] = ["nan"]
    assert judge(ranks, mode="real", world=2, same_batch=False).failure == "loss"


def test_a_script_without_a_step_fails() -> None:
    ended = Heard(seen={"phase": "step", "ended_early": True}, finished=True)
    assert judge([ended], mode="real", world=1, same_batch=False).failure == "standstill"


def test_a_lock_from_before_the_run_is_named() -> None:
    waiting = Heard(seen={"phase": "initialize", "old_lock": "/ops/cpu_adam/lock"}, in_time=False)
    seen = judge([waiting], mode="real", world=1, same_batch=False)
    assert seen.failure == "hang"
    assert any("/ops/cpu_adam/lock was there before" in note for note in seen.notes)


def test_rank_0_speaks_for_ranks_that_ended_well() -> None:
    first = Heard(
        seen={"phase": "done", "weights": {"missing": ["a"], "misshapen": {}}}, finished=True, last_at=2.0
    )
    second = Heard(seen={"phase": "done"}, finished=True, last_at=1.0)
    assert judge([first, second], mode="real", world=2).failure == "weights"
    waiting = Heard(seen={"phase": "step"}, in_time=False, last_at=3.0)
    assert judge([first, waiting], mode="real", world=2).failure == "hang"


def test_only_the_lock_of_a_build_that_was_cut_off_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "SHARED_MEMORY", tmp_path)
    locks = [tmp_path / name / "lock" for name in ("built", "cut_off", "waiting")]
    for lock in locks:
        lock.parent.mkdir()
        lock.touch()
    memory = shared_memory({"MASTER_ADDR": "localhost", "MASTER_PORT": "1", "RANK": "0"})
    memory.touch()
    remove_leftovers(
        [
            Heard(seen={"own_lock": str(locks[0]), "shared_memory": str(memory)}),
            Heard(seen={"own_lock": str(locks[1])}, building="cut_off"),
            Heard(seen={"own_lock": str(locks[0])}, building="waiting"),
        ]
    )
    assert [lock.exists() for lock in locks] == [True, False, True]
    assert not memory.exists()

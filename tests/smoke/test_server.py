"""One server tries many configs, and none of them can hurt it or the next."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dslint.smoke.client import SmokeServer
from dslint.smoke.environment import SmokeError
from dslint.smoke.processes import end_marked, marked, new_mark
from dslint.smoke.trial import Trial
from dslint.smoke.verdict import Verdict, judge

pytestmark = pytest.mark.deepspeed


def config(stage: int, **more: Any) -> dict[str, Any]:
    return {"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": stage}, **more}


def tried(server: SmokeServer, config: dict[str, Any] | str, **more: Any) -> Verdict:
    text = config if isinstance(config, str) else json.dumps(config)
    trial = Trial(text, **{"gpus": 8, "fp16": True, "bf16": True, **more})
    return judge([server.run(trial)], mode="simulated", world=trial.ranks)


# --- what is tried ---


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
@pytest.mark.parametrize("precision", [{}, {"bf16": {"enabled": True}}, {"fp16": {"enabled": True}}], ids=str)
def test_a_good_config_trains_saves_and_loads(server: SmokeServer, stage: int, precision: dict[str, Any]) -> None:
    found = tried(server, config(stage, **precision))
    assert found.passed, found
    assert found.seen["batch"] == [16, 2, 1]
    assert found.seen["zero_stage"] == stage
    assert found.seen["dtype"] == {"bf16": "bfloat16", "fp16": "float16"}.get(next(iter(precision), ""), "float32")
    assert found.seen["moved"]
    assert (found.seen["restored_steps"], found.seen["restored_parameters"]) == (True, True)
    assert len(found.losses) == 2


def test_saved_weights_are_the_models_own(server: SmokeServer) -> None:
    gathers = {"stage": 3, "stage3_gather_16bit_weights_on_model_save": True}
    found = tried(server, config(3, zero_optimization=gathers))
    weights = found.seen["weights"]
    assert found.seen["saved"] is True
    assert (weights["missing"], weights["misshapen"]) == ([], {})
    assert weights["elements"] == weights["expected_elements"]


def test_stage_3_without_gathering_saves_nothing_and_says_so(server: SmokeServer) -> None:
    found = tried(server, config(3))
    assert found.passed
    assert found.seen["saved"] is False
    assert any("wrote nothing" in note for note in found.notes)


@pytest.mark.parametrize("key", ["stage3_param_persistence_threshold", "param_persistence_threshold"])
def test_large_parameters_are_really_split_whatever_the_threshold(server: SmokeServer, key: str) -> None:
    zero = {"stage": 3, key: 1_000_000}
    zero["stage3_gather_16bit_weights_on_model_save"] = True
    assert tried(server, config(3, zero_optimization=zero)).seen["weights"]["elements"] > 4_000_000


def test_endless_overflow_has_its_own_words(server: SmokeServer) -> None:
    fp16 = {"enabled": True, "loss_scale": 1e9}
    found = tried(server, config(2, fp16=fp16))
    assert found.failure == "overflow"
    assert "overflowed" in found.reason


def test_a_loss_scale_that_comes_down_is_no_failure(server: SmokeServer) -> None:
    found = tried(server, config(2, fp16={"enabled": True, "initial_scale_power": 22}))
    assert found.passed, found.reason
    assert any("while the loss scale came down" in note for note in found.notes)


def test_a_learning_rate_of_zero_moves_nothing(server: SmokeServer) -> None:
    optimizer = {"type": "AdamW", "params": {"lr": 0.0, "torch_adam": True}}
    found = tried(server, config(2, optimizer=optimizer))
    assert (found.failure, found.reason) == (
        "standstill",
        "5 optimizer steps moved no parameter since the learning rate was 0",
    )


@pytest.mark.parametrize(
    ("gpus", "nodes", "phase"), [(8, 1, "parse"), (4, 1, "done"), (2, 2, "done"), (8, 8, "parse")]
)
def test_the_batch_must_fit_the_ranks(server: SmokeServer, gpus: int, nodes: int, phase: str) -> None:
    batch = {"train_batch_size": 16, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 1}
    assert tried(server, batch, gpus=gpus, nodes=nodes).phase == phase


def test_a_warm_up_that_begins_with_0_moves_in_the_end(server: SmokeServer) -> None:
    scheduler = {"type": "WarmupLR", "params": {"warmup_min_lr": 0, "warmup_max_lr": 0.1, "warmup_num_steps": 100}}
    optimizer = {"type": "AdamW", "params": {"lr": 0.1, "torch_adam": True}}
    found = tried(server, config(2, optimizer=optimizer, scheduler=scheduler))
    assert found.passed, found.reason
    assert found.seen["rates"][:2] == [0, 0]
    assert found.seen["moved"]


def test_deepspeed_reads_hjson_and_refuses_a_duplicate(server: SmokeServer) -> None:
    assert tried(server, "{train_batch_size: 8, # a comment\n}").passed
    found = tried(server, '{"train_batch_size": 8, "train_batch_size": 8}')
    assert (found.phase, found.exception) == ("read", "ValueError")


def test_hugging_face_reads_strict_json_and_fills_in_auto(server: SmokeServer) -> None:
    text = '{"train_batch_size": "auto", "train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 2},}'
    found = tried(server, text, loader="hf")
    assert (found.phase, found.exception) == ("read", "JSONDecodeError")
    found = tried(server, text.replace("},}", "}}"), loader="hf")
    assert found.passed, found
    assert found.seen["batch"] == [32, 4, 1]
    assert found.seen["dtype"] == "bfloat16"


def test_arguments_of_the_trainer_can_disagree(server: SmokeServer) -> None:
    text = config(2, gradient_clipping=1.0)
    found = tried(server, text, loader="hf", arguments={"max_grad_norm": 0.5})
    assert (found.phase, found.exception) == ("fill", "ValueError")
    assert "gradient_clipping" in found.message


def test_an_accelerate_file_trains(server: SmokeServer) -> None:
    text = (
        "distributed_type: DEEPSPEED\nnum_processes: 8\nmixed_precision: bf16\ndeepspeed_config: {zero_stage: 2}\n"
    )
    trial = Trial(None, accelerate=text, gpus=8, loader="hf", fp16=True, bf16=True)
    found = judge([server.run(trial)], mode="simulated", world=8)
    assert found.passed, found
    assert (found.seen["zero_stage"], found.seen["dtype"]) == (2, "bfloat16")


def test_a_gpu_without_bf16_is_simulated(server: SmokeServer) -> None:
    found = tried(server, config(2, bf16={"enabled": True}), bf16=False)
    assert (found.phase, found.exception) == ("initialize", "ValueError")
    assert tried(server, config(2, fp16={"enabled": True}), bf16=False).seen["dtype"] == "float16"


def test_a_hidden_package_is_missing(server: SmokeServer) -> None:
    found = tried(server, config(0, tensorboard={"enabled": True}), missing=("tensorboard",))
    assert (found.phase, found.exception) == ("initialize", "ModuleNotFoundError")


def test_offload_brings_the_cpu_optimizer(server: SmokeServer) -> None:
    if "CPUAdam" not in server.hello["ops"]:
        pytest.skip("CPUAdam cannot be built here")
    found = tried(server, config(2, zero_optimization={"stage": 2, "offload_optimizer": {"device": "cpu"}}))
    assert (found.phase, found.seen["optimizer"]) == ("done", "DeepSpeedCPUAdam")


def test_nothing_is_written_to_the_places_that_a_config_names(server: SmokeServer, tmp_path: Path) -> None:
    place = tmp_path / "logs"
    monitor = {"enabled": True, "output_path": str(place), "job_name": "x"}
    found = tried(server, config(1, csv_monitor=monitor))
    assert found.passed, found
    assert found.seen["redirected"] == ["output_path"]
    assert not place.exists()


# --- isolation ---


@pytest.fixture(scope="module")
def exposed() -> Iterator[SmokeServer]:
    """A server whose trials run any code first."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    with SmokeServer(device="cpu", program="poisoned_server") as server:
        yield server


POISON = """
import deepspeed, os, sys, torch
os.environ["DSLINT_POISON"] = "1"
sys.modules["hjson"] = None
torch.set_default_dtype(torch.float64)
deepspeed.initialize = None
deepspeed.accelerator.get_accelerator().supported_dtypes = lambda: []
torch.nn.Linear.forward = None
"""


def poisoned(server: SmokeServer, code: str, **more: Any) -> Verdict:
    return tried(server, config(2), arguments={"poison": code}, **more)


def test_a_trial_that_poisons_everything_does_not_reach_the_next(exposed: SmokeServer) -> None:
    before = tried(exposed, config(3, bf16={"enabled": True}), detailed=True)
    assert not poisoned(exposed, POISON).passed
    after = tried(exposed, config(3, bf16={"enabled": True}), detailed=True)
    assert after.passed
    assert (after.losses, after.seen["settings"]) == (before.losses, before.seen["settings"])


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        ("import ctypes; ctypes.string_at(0)", "died"),
        ("import os; os._exit(0)", "died"),
        ("import time; time.sleep(600)", "hang"),
        ("while True: print('x' * 100_000)", "flood"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", "hang"),
        ("import sys; sys.exit(0)", "exception"),
        ("raise KeyboardInterrupt", "exception"),
        ("raise ValueError('a' * 10**6)", "exception"),
        ("import os, shutil; shutil.rmtree(os.getcwd())", "exception"),
    ],
)
def test_whatever_a_trial_does_is_a_verdict(exposed: SmokeServer, code: str, failure: str) -> None:
    assert poisoned(exposed, code, timeout=2).failure == failure
    assert tried(exposed, config(2)).passed


def test_a_trial_that_is_too_slow_is_a_verdict(server: SmokeServer) -> None:
    assert tried(server, config(1, gradient_accumulation_steps=5000), timeout=0.5).exception == "Timeout"
    assert tried(server, config(0)).passed


def test_the_server_leaves_no_process_and_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    mark = new_mark()
    monkeypatch.setattr("dslint.smoke.client.new_mark", lambda: mark)
    with SmokeServer(device="cpu") as server:
        assert tried(server, config(1)).passed
        assert marked(mark)
    assert not marked(mark)
    assert list(tmp_path.iterdir()) == []
    end_marked(mark)


def test_a_full_disk_is_said_before_anything_is_tried(
    server: SmokeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dslint.smoke.client.DISK_NEEDED", 2**62)
    with pytest.raises(SmokeError, match=r"MB free in .* set TMPDIR to another disk"):
        tried(server, config(0))


def test_a_killed_server_is_said(tmp_path: Path) -> None:
    with SmokeServer(device="cpu") as server:
        assert server._process is not None
        os.kill(server._process.pid, 9)
        with pytest.raises(SmokeError, match="the process that trains is gone"):
            tried(server, config(0))


def test_cuda_is_not_started_before_the_fork(server: SmokeServer) -> None:
    assert server.hello["cuda_started"] is False

"""The trial tool tells what DeepSpeed does, and survives whatever its children do."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.deepspeed_trial import Report, TrialServer, fill_like_hugging_face, forked

needs_deepspeed = pytest.mark.deepspeed


def good(stage: int, **more: Any) -> dict[str, Any]:
    return {"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": stage}, **more}


# --- children that misbehave (no DeepSpeed needed) ---


def test_a_child_reports_and_finishes() -> None:
    def work(report: Report) -> None:
        report(stage="done", save16=True)

    result = forked(work, 10)
    assert (result["stage"], result["save16"], result["exception"]) == ("done", True, None)


def test_an_exception_comes_with_its_bases() -> None:
    def work(report: Report) -> None:
        report(stage="parse")
        raise FileNotFoundError("no such config")

    result = forked(work, 10)
    assert (result["stage"], result["exception"]) == ("parse", "FileNotFoundError")
    assert "OSError" in result["mro"]
    assert result["message"] == "no such config"


def test_sys_exit_is_an_outcome() -> None:
    result = forked(lambda report: sys.exit(3), 10)
    assert (result["exception"], result["message"]) == ("SystemExit", "3")


def test_a_hard_exit_is_an_outcome() -> None:
    def work(report: Report) -> None:
        report(stage="initialize")
        os.write(2, b"last words")
        os._exit(7)

    result = forked(work, 10)
    assert (result["stage"], result["exception"]) == ("initialize", "Died")
    assert "exit code 7" in result["message"]
    assert "last words" in result["message"]


def test_a_signal_is_an_outcome() -> None:
    result = forked(lambda report: os.kill(os.getpid(), signal.SIGKILL), 10)
    assert result["exception"] == "Died"
    assert "exit code -9" in result["message"]


def test_a_hang_ends_at_the_timeout_with_all_its_processes() -> None:
    def work(report: Report) -> None:
        report(grandchild=os.fork())
        time.sleep(60)

    started = time.monotonic()
    result = forked(work, 1)
    assert result["exception"] == "Timeout"
    assert time.monotonic() - started < 10
    assert is_gone(result["grandchild"])


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


# --- how Hugging Face fills a config ---


def test_auto_is_filled_from_arguments_that_agree() -> None:
    config = good(2, train_batch_size="auto", train_micro_batch_size_per_gpu=4)
    filled = fill_like_hugging_face(config, 8, {})
    assert filled["train_batch_size"] == 32
    assert filled["bf16"] == {"enabled": True}
    assert config["train_batch_size"] == "auto"


def test_given_arguments_can_disagree() -> None:
    config = good(2, gradient_clipping=1.0)
    with pytest.raises(ValueError, match=r"gradient_clipping=1\.0 vs hf 0\.5"):
        fill_like_hugging_face(config, 8, {"max_grad_norm": 0.5})


def test_an_auto_that_nobody_fills_is_refused() -> None:
    config = {"zero_optimization": {"stage": 2, "overlap_comm": "auto"}}
    with pytest.raises(ValueError, match="overlap_comm"):
        fill_like_hugging_face(config, 8, {})


# --- real DeepSpeed ---


@needs_deepspeed
@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_a_good_config_is_done(trials: TrialServer, stage: int) -> None:
    trial = trials.run(good(stage, bf16={"enabled": True}))
    assert trial.done, trial
    assert (trial.batch, trial.zero, trial.dtype) == ((16, 2, 1), stage, "bfloat16")


@needs_deepspeed
def test_stage_3_saves_only_what_it_may_gather(trials: TrialServer) -> None:
    gathers = {"stage": 3, "stage3_gather_16bit_weights_on_model_save": True}
    assert trials.run(good(3)).save16 is False
    assert trials.run(good(3, zero_optimization=gathers)).save16 is True


@needs_deepspeed
def test_two_types_at_once_are_refused_while_parsing(trials: TrialServer) -> None:
    trial = trials.run(good(2, fp16={"enabled": True}, bf16={"enabled": True}))
    assert (trial.stage, trial.exception) == ("parse", "AssertionError")


@needs_deepspeed
@pytest.mark.parametrize(("ranks", "stage"), [(8, "parse"), (4, "done"), (64, "parse")])
def test_the_batch_must_fit_the_ranks(trials: TrialServer, ranks: int, stage: str) -> None:
    config = good(1, train_batch_size=16, train_micro_batch_size_per_gpu=4, gradient_accumulation_steps=1)
    assert trials.run(config, ranks=ranks).stage == stage


@needs_deepspeed
def test_a_file_is_read_as_hjson(trials: TrialServer) -> None:
    assert trials.run("{train_batch_size: 8, # a comment\n}").done
    trial = trials.run('{"train_batch_size": 8, "train_batch_size": 8}')
    assert (trial.stage, trial.exception) == ("read", "ValueError")


@needs_deepspeed
def test_hugging_face_reads_strict_json(trials: TrialServer) -> None:
    text = '{"train_batch_size": "auto", "train_micro_batch_size_per_gpu": 1, "zero_optimization": {},}'
    trial = trials.run(text)
    assert (trial.stage, trial.exception) == ("read", "JSONDecodeError")
    assert trial.raised("ValueError")
    assert trials.run(text.replace("},}", "}}")).done


@needs_deepspeed
def test_a_gpu_without_bf16(trials: TrialServer) -> None:
    trial = trials.run(good(2, bf16={"enabled": True}), bf16=False)
    assert (trial.stage, trial.exception) == ("initialize", "ValueError")
    assert trials.run(good(2, fp16={"enabled": True}), bf16=False).dtype == "float16"


@needs_deepspeed
def test_a_hidden_package_is_missing(trials: TrialServer) -> None:
    trial = trials.run(good(0, tensorboard={"enabled": True}), without=["tensorboard"])
    assert (trial.stage, trial.exception) == ("initialize", "ModuleNotFoundError")


@needs_deepspeed
def test_offload_brings_the_cpu_optimizer(trials: TrialServer) -> None:
    if "CPUAdam" not in trials.ops:
        pytest.skip("CPUAdam cannot be built here")
    offload = {"stage": 2, "offload_optimizer": {"device": "cpu"}}
    trial = trials.run(good(2, zero_optimization=offload))
    assert (trial.stage, trial.optimizer) == ("done", "DeepSpeedCPUAdam")


@needs_deepspeed
def test_the_server_outlives_a_timeout(trials: TrialServer) -> None:
    assert trials.run(good(3), timeout=0.01).exception == "Timeout"
    assert trials.run(good(0)).done

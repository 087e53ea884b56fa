"""Which way a config is tried, on machines of several kinds."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dslint.runs.gpus import find_gpu
from dslint.smoke import smoking
from dslint.smoke.environment import SmokeError
from dslint.smoke.listening import Heard
from dslint.smoke.planning import SmokeOptions
from dslint.smoke.smoking import Smoked, smoke
from dslint.smoke.trial import Trial

OPTIONS = SmokeOptions(
    gpus=2, nodes=None, gpu=None, mode=None, device="auto", loader=None, steps=2, timeout=60.0, python="python"
)
DONE = {"phase": "done", "losses": [2.0, 1.0], "moved": True, "device": "NVIDIA H200"}


class Machine:
    """Stands in for the server and the launcher, and keeps what they are asked to try."""

    def __init__(self, *, gpus: int, transformers: bool = True) -> None:
        self.hello: Mapping[str, Any] = {"count": gpus, "transformers": transformers}
        self.simulated: list[Trial] = []
        self.real: list[Trial] = []

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def run(self, trial: Trial, *_: object) -> Heard:
        self.simulated.append(trial)
        return Heard(seen=dict(DONE), finished=True)

    def run_real(self, trial: Trial, **_: object) -> list[Heard]:
        self.real.append(trial)
        return [Heard(seen=dict(DONE), finished=True) for _ in range(trial.ranks)]


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "ds_config.json"
    path.write_text(json.dumps({"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": True}}))
    return str(path)


def smoked(machine: Machine, monkeypatch: pytest.MonkeyPatch, path: str, **options: Any) -> Smoked:
    monkeypatch.setattr(smoking, "SmokeServer", lambda **_: machine)
    monkeypatch.setattr(smoking, "run_real", machine.run_real)
    (found,) = smoke([path], dataclasses.replace(OPTIONS, **options), lambda path: lambda line: None)
    return found


@pytest.mark.parametrize(
    ("gpus", "options", "real"),
    [
        (2, {}, True),
        (8, {}, True),
        (1, {}, False),
        (0, {}, False),
        (8, {"mode": "simulated"}, False),
        (8, {"nodes": 2}, False),
        (8, {"gpu": find_gpu("v100")}, False),
        (0, {"mode": "real", "device": "cpu"}, True),
        (2, {"mode": "real"}, True),
        (1, {"mode": "real", "share_gpus": True}, True),
    ],
)
def test_ranks_are_real_where_there_are_gpus_enough(
    config: str, monkeypatch: pytest.MonkeyPatch, gpus: int, options: dict[str, Any], real: bool
) -> None:
    machine = Machine(gpus=gpus)
    found = smoked(machine, monkeypatch, config, **options)
    assert (len(machine.real), len(machine.simulated)) == ((1, 0) if real else (0, 1))
    assert found.verdict.mode == ("real" if real else "simulated")


@pytest.mark.parametrize(
    ("gpus", "options", "message"),
    [
        (
            1,
            {"mode": "real"},
            "--real: 2 ranks, but 1 GPU here; lower --gpus, use --simulate, or let ranks share a GPU",
        ),
        (0, {"mode": "real"}, "--real: torch sees no GPU here"),
        (8, {"mode": "real", "nodes": 2}, "--nodes needs --simulate"),
        (8, {"mode": "real", "gpu": find_gpu("v100")}, "--gpu needs --simulate"),
        (0, {"device": "cuda"}, "--device cuda: torch sees no GPU here"),
    ],
)
def test_real_ranks_that_can_not_be_are_refused(
    config: str, monkeypatch: pytest.MonkeyPatch, gpus: int, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(SmokeError) as error:
        smoked(Machine(gpus=gpus), monkeypatch, config, **options)
    assert message in str(error.value)


def test_a_cpu_answers_like_a_gpu_and_says_so(config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(gpus=0)
    found = smoked(machine, monkeypatch, config)
    assert found.simulated_gpu == "a GPU with fp16 and bf16"
    assert (machine.simulated[0].fp16, machine.simulated[0].bf16) == (True, True)


def test_a_gpu_answers_for_itself(config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(gpus=1)
    found = smoked(machine, monkeypatch, config)
    assert found.simulated_gpu == ""
    assert (machine.simulated[0].fp16, machine.simulated[0].bf16) == (None, None)


def test_auto_without_transformers_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ds_config.json"
    path.write_text('{"train_batch_size": "auto"}')
    with pytest.raises(SmokeError, match="pip install transformers accelerate, or write the values out"):
        smoked(Machine(gpus=0, transformers=False), monkeypatch, str(path))

"""What counts a script's steps, and what keeps a Trainer short, on stand-ins."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from dslint.smoke.reporting import Reporter, report_file
from dslint.smoke.script.trainer_limits import keep_quiet, shorten_trainings


def told(folder: Path) -> dict[str, Any]:
    lines = [json.loads(line) for line in report_file(folder, 0).read_text().splitlines()]
    return {key: value for line in lines for key, value in line.items()}


# --- counting ---


class Engine:
    """Steps at every second call, after `late` steps of a loaded checkpoint; the first step overflows."""

    def __init__(self, parameter: Any) -> None:
        self.module = SimpleNamespace(parameters=lambda: iter([parameter]))
        self.optimizer = SimpleNamespace(param_groups=[{"lr": 0.5}], cur_scale=4)
        self.parameter = parameter
        self.global_steps, self.skipped_steps, self._micro = 1000, 7, 0

    def backward(self, loss: Any, scale_wrt_gas: bool = True) -> Any:
        return loss

    def step(self) -> None:
        self._micro += 1
        if self._micro % 2 == 0:
            self.global_steps += 1
            if self._micro == 2:
                self.skipped_steps += 1
            else:
                self.parameter.data += 1


@pytest.mark.deepspeed
def test_steps_are_counted_from_where_the_script_begins(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from dslint.smoke.script.counting import Counter

    engine = Engine(torch.nn.Parameter(torch.zeros(3)))
    counter = Counter(engine, Reporter(tmp_path, 0))
    seen: list[tuple[int, bool, Any]] = []
    counter.follow(
        before=lambda: None,
        after=lambda each: seen.append((each.steps, each.all_skipped, told(tmp_path)["moved"])),
    )
    for number, scaled in enumerate((True, True, False, False)):
        engine.backward(torch.tensor(float(number)), scale_wrt_gas=scaled)
        engine.step()
    assert seen == [(1, True, False), (2, False, True)]
    report = told(tmp_path)
    assert report["losses"] == [0.5, 5.0]  # a mean, and parts that were divided before
    assert (report["steps"], report["skipped"], report["rates"], report["loss_scale"]) == (2, 1, [0.5, 0.5], 4.0)


@pytest.mark.deepspeed
def test_samples_of_a_large_model_are_few_and_from_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from dslint.smoke.script import sampling

    monkeypatch.setattr(sampling, "LIMIT", 400)
    parameter = torch.nn.Parameter(torch.arange(1000.0))
    samples = sampling.samples(Engine(parameter))
    assert samples is not None
    assert samples[0].tolist() == list(range(0, 1000, 10))
    frozen = torch.nn.Parameter(torch.zeros(3), requires_grad=False)
    assert sampling.samples(Engine(frozen)) is None


# --- the Trainer ---


class Strategy(Enum):
    NO = "no"
    STEPS = "steps"


class Arguments:
    def __init__(self, config: dict[str, Any]) -> None:
        self.report_to, self.push_to_hub, self.save_strategy, self.max_steps = ["all"], True, Strategy.STEPS, -1
        self.deepspeed_plugin = SimpleNamespace(hf_ds_config=SimpleNamespace(config=config))
        self.__post_init__()

    def __post_init__(self) -> None:
        self.checked = True


class SpecialArguments(Arguments):
    def __post_init__(self) -> None:
        super().__post_init__()
        self.special = True


def length(tmp_path: Path, config: dict[str, Any], *resume: object) -> int:
    """The `max_steps` that a Trainer trains with."""

    class Trainer:
        def __init__(self) -> None:
            self.args = Arguments(config)

        def train(self, resume_from_checkpoint: object = None) -> tuple[int, Strategy, object]:
            return self.args.max_steps, self.args.save_strategy, resume_from_checkpoint

    module = ModuleType("trainer")
    module.Trainer = Trainer  # type: ignore[attr-defined]
    shorten_trainings(module, 3, 40, Reporter(tmp_path, 0))
    steps, strategy, resumed = Trainer().train(*resume)
    assert strategy is Strategy.NO
    assert resumed == (resume[0] if resume else None)
    return steps


def test_a_trainer_gets_the_length_of_the_smoke_run(tmp_path: Path) -> None:
    assert length(tmp_path, {}) == 3
    assert length(tmp_path, {"scheduler": {"params": {"total_num_steps": "auto"}}}) == 3
    assert length(tmp_path, {"fp16": {"enabled": True}}) == 43  # first steps may overflow


def test_a_trainer_keeps_its_length_where_another_would_fail(tmp_path: Path) -> None:
    assert length(tmp_path, {"scheduler": {"params": {"total_num_steps": 500}}}) == -1
    assert length(tmp_path, {"scheduler": {"params": {"warmup_num_steps": 10}}}) == -1
    assert length(tmp_path, {}, "checkpoint-1000") == -1
    assert length(tmp_path, {}, False) == 3


def test_arguments_send_nothing_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Arguments, "__post_init__", Arguments.__post_init__)  # put back afterwards
    module = ModuleType("training_args")
    module.TrainingArguments = Arguments  # type: ignore[attr-defined]
    keep_quiet(module)
    arguments = SpecialArguments({})
    assert arguments.checked
    assert arguments.special
    assert (arguments.report_to, arguments.push_to_hub) == ([], False)

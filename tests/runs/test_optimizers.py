"""The optimizers and schedulers that DeepSpeed 0.19.8 builds from a config, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dslint.runs.optimizers import (
    OptimizerSection,
    default_value,
    dropped_params,
    is_untested_with_zero,
    missing_scheduler_params,
    near_optimizer,
    near_scheduler,
    optimizer_classes,
    optimizer_kind,
    refused_scheduler_values,
    refuses_amsgrad,
    scheduler_kind,
    scheduler_values_not_numbers,
    unknown_params,
    unknown_scheduler_params,
)
from dslint.runs.unknown import UNDECIDABLE

ROOT = Path(__file__).resolve().parents[2]


def section(name: str, offload: str | None = "none", **params: object) -> OptimizerSection:
    return OptimizerSection(name, params, offload)


@pytest.mark.parametrize("name", ["Adam", "ADAMW", "adagrad", "LION", "Lamb", "muon", "MuSGD"])
def test_deepspeeds_own_names_may_be_in_any_case(name: str) -> None:
    assert optimizer_kind(name) == "deepspeed"
    assert near_optimizer(name) is None


@pytest.mark.parametrize(("name", "kind"), [("SGD", "torch"), ("sgd", "unknown"), ("Rmsprop", "unknown")])
def test_names_from_torch_must_be_exact(name: str, kind: str) -> None:
    assert optimizer_kind(name) == kind


@pytest.mark.parametrize("name", ["Optimizer", "lr_scheduler", "swa_utils", "auto", ""])
def test_what_cannot_be_built_is_unknown(name: str) -> None:
    assert optimizer_kind(name) == "unknown"
    assert optimizer_classes(section(name)) == ()
    assert unknown_params(section(name, junk=1)) == ()


@pytest.mark.parametrize("name", ["OneBitAdam", "zerooneadam", "OneBitLamb"])
def test_one_bit_optimizers_were_removed(name: str) -> None:
    assert optimizer_kind(name) == "removed"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("FusedAdam", "AdamW"),
        ("DeepSpeedCPUAdam", "AdamW"),
        ("CPUAdam", "AdamW"),
        ("adamw_torch", "AdamW"),
        ("OneBitLamb", "Lamb"),
        ("OneBitAdam", "AdamW"),
        ("sgd", "SGD"),
        ("rmsprop", "RMSprop"),
        ("nadam", "NAdam"),
        ("Admw", "AdamW"),
        ("paged_lion_8bit", "Lion"),
        ("auto", None),
        ("shampoo", None),
        ("", None),
    ],
)
def test_the_optimizer_that_was_meant(name: str, meant: str | None) -> None:
    assert near_optimizer(name) == meant


@pytest.mark.parametrize(
    ("asked", "classes"),
    [
        (section("AdamW"), ("FusedAdam",)),
        (section("AdamW", offload="cpu"), ("DeepSpeedCPUAdam",)),
        (section("AdamW", offload="nvme"), ("DeepSpeedCPUAdam",)),
        (section("AdamW", offload=None), ("FusedAdam", "DeepSpeedCPUAdam")),
        (section("AdamW", offload="cpu", torch_adam=True), ("torch.optim.AdamW",)),
        (section("Adam", torch_adam="false"), ("torch.optim.AdamW",)),
        (section("Adam", torch_adam=True, adam_w_mode=False), ("torch.optim.Adam",)),
        (section("AdamW", torch_adam=True, adam_w_mode=False), ("torch.optim.AdamW",)),
        (section("Adam", torch_adam=UNDECIDABLE), ("FusedAdam", "torch.optim.AdamW")),
        (section("Lion", offload="cpu"), ("DeepSpeedCPULion",)),
        (section("Adagrad"), ("torch.optim.Adagrad",)),
        (section("SGD", offload="cpu"), ("torch.optim.SGD",)),
    ],
)
def test_the_class_that_is_built(asked: OptimizerSection, classes: tuple[str, ...]) -> None:
    assert optimizer_classes(asked) == classes


@pytest.mark.parametrize(
    ("asked", "unknown"),
    [
        (section("AdamW", lr=1, betas=[0.9, 0.9], beta1=0.9), ("beta1",)),
        (section("AdamW", adam_w_mode=True, torch_adam=False, fp32_optimizer_states=True), ()),
        (section("AdamW", foreach=True, fused=True), ("foreach", "fused")),
        (section("AdamW", torch_adam=True, foreach=True, fused=True), ()),
        (section("AdamW", torch_adam=True, bias_correction=True), ("bias_correction",)),
        (section("AdamW", offload="cpu", adamw_mode=True), ("adamw_mode",)),
        (section("AdamW", offload="cpu", set_grad_none=True), ("set_grad_none",)),
        (section("AdamW", offload=None, set_grad_none=True), ()),
        (section("AdamW", params=[]), ("params",)),
        (section("AdamW", max_grad_norm=1.0), ()),
        (section("SGD", torch_adam=True, momentum=0.9), ("torch_adam",)),
        (section("Adagrad", fp32_optimizer_states=True), ("fp32_optimizer_states",)),
        (section("Adagrad", offload="cpu", fp32_optimizer_states=True), ()),
        (section("Muon", junk=1), ()),
        (section("MuAdam", lr=1, decoupled_wd=True, junk=1), ("junk",)),
    ],
)
def test_params_that_no_class_takes(asked: OptimizerSection, unknown: tuple[str, ...]) -> None:
    assert unknown_params(asked) == unknown


@pytest.mark.parametrize(
    ("asked", "dropped"),
    [
        (section("Muon", lr=1, muon_lr=1, per_head_muon=True, nesterov=True), ("nesterov",)),
        (section("Muon", foreach=True), ("foreach",)),
        (section("Muon", foreach=True, torch_adam=True), ()),
        (section("Muon", max_grad_norm=1.0), ()),
        (section("AdamW", fp32_optimizer_states=False), ("fp32_optimizer_states",)),
        (section("AdamW", offload="cpu", fp32_optimizer_states=False), ()),
        (section("AdamW", offload=None, fp32_optimizer_states=False), ()),
        (section("SGD", junk=1), ()),
    ],
)
def test_params_that_are_dropped_without_a_word(asked: OptimizerSection, dropped: tuple[str, ...]) -> None:
    assert dropped_params(asked) == dropped


def test_amsgrad_needs_the_torch_class() -> None:
    assert refuses_amsgrad(section("AdamW", amsgrad=True))
    assert refuses_amsgrad(section("Adam", offload=None, amsgrad="auto"))
    assert refuses_amsgrad(section("Lamb", amsgrad=True))
    assert not refuses_amsgrad(section("AdamW", amsgrad=True, torch_adam=True))
    assert not refuses_amsgrad(section("AdamW", amsgrad=False))
    assert not refuses_amsgrad(section("Adagrad", offload="cpu", amsgrad=True))


@pytest.mark.parametrize(
    ("name", "stage", "untested"),
    [
        ("SGD", 2, True),
        ("SGD", 0, False),
        ("SGD", None, None),
        ("Lamb", 1, True),
        ("AdamW", 3, False),
        ("Adagrad", None, False),
        ("Muon", 2, False),
        ("MuAdam", 2, False),
        ("MuSGD", 2, True),
        ("nonsense", 2, None),
    ],
)
def test_optimizers_that_zero_calls_untested(name: str, stage: int | None, untested: bool | None) -> None:
    assert is_untested_with_zero(section(name, offload=None), stage) is untested


def test_defaults_are_those_of_the_class_that_is_built() -> None:
    assert default_value(section("AdamW"), "weight_decay") == 0
    assert default_value(section("AdamW", torch_adam=True), "weight_decay") == 0.01
    assert default_value(section("AdamW", offload=None), "lr") == 0.001
    assert default_value(section("nonsense"), "lr") is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [("WarmupLR", "deepspeed"), ("warmuplr", "unknown"), ("StepLR", "torch"), ("LRScheduler", "unknown")],
)
def test_scheduler_names_are_exact(name: str, kind: str) -> None:
    assert scheduler_kind(name) == kind


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("warmuplr", "WarmupLR"),
        ("1Cycle", "OneCycle"),
        ("cosine", "WarmupCosineLR"),
        ("WarmupLinearLR", "WarmupDecayLR"),
        ("constant_with_warmup", "WarmupLR"),
        ("WarmupDecay", "WarmupDecayLR"),
        ("OneCycle", None),
        ("auto", None),
    ],
)
def test_the_scheduler_that_was_meant(name: str, meant: str | None) -> None:
    assert near_scheduler(name) == meant


def test_each_scheduler_has_its_own_params() -> None:
    assert unknown_scheduler_params("WarmupLR", {"total_num_steps": 9, "warmup_type": "log"}) == (
        "total_num_steps",
    )
    assert unknown_scheduler_params("WarmupCosineLR", {"total_num_steps": 9, "warmup_max_lr": 1}) == (
        "warmup_max_lr",
    )
    assert unknown_scheduler_params("StepLR", {"step_size": 2, "verbose": True}) == ()
    assert unknown_scheduler_params("nonsense", {"a": 1}) == ()


def test_params_that_a_scheduler_cannot_do_without() -> None:
    assert missing_scheduler_params("OneCycle", {"cycle_min_lr": 0}) == ("cycle_max_lr",)
    assert missing_scheduler_params("WarmupDecayLR", {}) == ("total_num_steps",)
    assert missing_scheduler_params("WarmupLR", {}) == ()
    assert missing_scheduler_params("nonsense", {}) == ()


@pytest.mark.parametrize("name", ["WarmupLR", "WarmupDecayLR", "WarmupCosineLR"])
@pytest.mark.parametrize("value", [0, -1, 10.0, "auto", "10", None, False])
def test_warmup_steps_must_be_a_positive_integer(name: str, value: object) -> None:
    assert refused_scheduler_values(name, {"warmup_num_steps": value}) == ("warmup_num_steps",)


@pytest.mark.parametrize("value", [1, 10, True, UNDECIDABLE])
def test_warmup_steps_that_count_or_cannot_be_told_are_taken(value: object) -> None:
    assert refused_scheduler_values("WarmupLR", {"warmup_num_steps": value}) == ()


@pytest.mark.parametrize(
    ("name", "param", "value", "is_none"),
    [
        ("WarmupLR", "warmup_max_lr", "0.1", True),
        ("WarmupLR", "warmup_max_lr", {}, True),
        ("WarmupLR", "warmup_max_lr", [0.1], False),
        ("WarmupLR", "warmup_max_lr", None, False),
        ("WarmupLR", "warmup_min_lr", None, True),
        ("WarmupLR", "warmup_min_lr", True, False),
        ("WarmupLR", "warmup_min_lr", UNDECIDABLE, False),
        ("WarmupLR", "total_num_steps", "100", False),
        ("WarmupDecayLR", "total_num_steps", [100], True),
        ("WarmupDecayLR", "total_num_steps", None, True),
        ("WarmupCosineLR", "cos_min_ratio", "0.1", False),
        ("OneCycle", "cycle_min_lr", "0.1", True),
        ("StepLR", "gamma", "0.1", False),
    ],
)
def test_scheduler_values_must_be_numbers(name: str, param: str, value: object, is_none: bool) -> None:
    assert scheduler_values_not_numbers(name, {param: value}) == ((param,) if is_none else ())


def test_warmup_steps_may_be_left_out() -> None:
    assert refused_scheduler_values("WarmupLR", {}) == ()


def test_range_test_steps_must_be_a_positive_integer() -> None:
    name = "lr_range_test_step_size"
    assert refused_scheduler_values("LRRangeTest", {name: 100.0}) == (name,)
    assert refused_scheduler_values("LRRangeTest", {name: 100}) == ()


@pytest.mark.parametrize("value", [0, -1, "auto", None, []])
def test_one_cycle_refuses_a_first_step_size_that_is_not_positive(value: object) -> None:
    name = "cycle_first_step_size"
    assert refused_scheduler_values("OneCycle", {name: value}) == (name,)


@pytest.mark.parametrize("value", ["100", 2.5, True, UNDECIDABLE])
def test_one_cycle_takes_any_positive_first_step_size(value: object) -> None:
    assert refused_scheduler_values("OneCycle", {"cycle_first_step_size": value}) == ()


@pytest.mark.parametrize(("value", "refused"), [(-1, True), ("x", True), (0, False), (None, False)])
def test_the_second_step_size_of_one_cycle_may_be_zero_or_null(value: object, refused: bool) -> None:
    assert bool(refused_scheduler_values("OneCycle", {"cycle_second_step_size": value})) is refused


@pytest.mark.deepspeed
def test_the_file_says_what_the_installed_packages_say() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("deepspeed")
    script = ROOT / "scripts" / "make_optimizers.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

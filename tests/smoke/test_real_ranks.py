"""Real ranks through gloo beside a simulated one: what the simulation says holds where there are peers."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from dslint.rulebook.cases import Example, examples
from dslint.rulebook.loader import RuleFile, load_rules
from dslint.smoke.client import SmokeServer
from dslint.smoke.proofs.prover import Prover
from dslint.smoke.trial import Trial
from dslint.smoke.verdict import Verdict, judge

pytestmark = pytest.mark.deepspeed

ROOT = Path(__file__).parents[2]


def config(stage: int, precision: str = "bf16", **zero: Any) -> dict[str, Any]:
    """A config with small buckets, which else would be nearly all of a small model's memory."""
    buckets = {"reduce_bucket_size": 100_000, "allgather_bucket_size": 100_000}
    return {
        "train_micro_batch_size_per_gpu": 2,
        precision: {"enabled": True},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
        "zero_optimization": {"stage": stage, **buckets, **zero},
    }


def real(server: SmokeServer, config: dict[str, Any], ranks: int, **more: Any) -> Verdict:
    trial = Trial(json.dumps(config), gpus=ranks, fp16=True, bf16=True, mode="real", silence=20.0, **more)
    return judge(server.run_ranks(trial), mode="real", world=ranks)


def both(server: SmokeServer, config: dict[str, Any], ranks: int) -> tuple[Verdict, Verdict]:
    trial = Trial(json.dumps(config), gpus=ranks, fp16=True, bf16=True, detailed=True, metered=True)
    told = server.run_ranks(dataclasses.replace(trial, mode="real", silence=20.0))
    return judge([server.run(trial)], mode="simulated", world=ranks), judge(told, mode="real", world=ranks)


@pytest.mark.parametrize(
    ("stage", "precision", "ranks"),
    [(stage, precision, 2) for stage in (1, 2, 3) for precision in ("bf16", "fp16")]
    + [(1, "bf16", 4), (3, "bf16", 4)],
)
def test_a_simulated_rank_is_like_the_real_ones(
    server: SmokeServer, stage: int, precision: str, ranks: int
) -> None:
    simulated, real = both(server, config(stage, precision, stage3_param_persistence_threshold=10_000), ranks)
    assert (simulated.passed, real.passed) == (True, True)
    assert simulated.seen["settings"] == real.seen["settings"]
    (peak,) = simulated.peak_memory
    assert len(real.peak_memory) == ranks
    assert all(abs(each - peak) < 0.03 * peak for each in real.peak_memory)


def test_more_ranks_hold_less_of_a_partitioned_model(server: SmokeServer) -> None:
    two, four = (real(server, config(3), ranks, metered=True) for ranks in (2, 4))
    assert max(four.peak_memory) < 0.7 * min(two.peak_memory)


@pytest.mark.parametrize("gathers", [True, False])
def test_stage_3_saves_whole_weights_only_where_it_gathers_them(server: SmokeServer, gathers: bool) -> None:
    verdict = real(server, config(3, stage3_gather_16bit_weights_on_model_save=gathers), 2)
    assert verdict.passed
    assert verdict.seen["saved"] is gathers
    assert any("save_16bit_model wrote nothing" in note for note in verdict.notes) is not gathers
    if gathers:
        assert verdict.seen["weights"]["elements"] == verdict.seen["weights"]["expected_elements"]


@pytest.mark.parametrize(("partition", "exception"), [(2, None), (3, "AssertionError")])
def test_a_secondary_partition_must_divide_the_ranks(
    server: SmokeServer, partition: int, exception: str | None
) -> None:
    verdict = real(server, config(3, zero_hpz_partition_size=partition), 4)
    assert (verdict.exception, verdict.phase) == (exception, "initialize" if exception else "done")


def test_the_batch_must_fit_the_real_ranks(server: SmokeServer) -> None:
    sizes = {"train_batch_size": 8, "gradient_accumulation_steps": 2}
    assert real(server, {**config(1), **sizes}, 2).passed
    assert real(server, {**config(1), **sizes}, 4).phase == "parse"


def test_hugging_face_fills_in_auto_on_every_rank(server: SmokeServer) -> None:
    auto = {"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}}
    verdict = real(server, auto, 2, loader="hf")
    assert verdict.passed
    assert verdict.seen["batch"] == [2, 1, 1]


def test_accelerate_trains_on_every_rank(server: SmokeServer) -> None:
    text = "distributed_type: DEEPSPEED\nmixed_precision: bf16\ndeepspeed_config: {zero_stage: 2}\n"
    trial = Trial(None, accelerate=text, gpus=2, fp16=True, bf16=True, mode="real", silence=20.0)
    assert judge(server.run_ranks(trial), mode="real", world=2).passed


def test_ranks_that_share_what_is_there_train_too(server: SmokeServer) -> None:
    assert real(server, config(2), 2, shared=True).passed


# --- examples of rules ---

RECORD = json.loads((ROOT / "rules" / "proofs" / "real" / "cpu.json").read_text())["proofs"]
SHOWN = {(proof["code"], proof["example"]): proof["shown"] for proof in RECORD if not proof["not_run"]}
EVERY = 24
"""One of so many examples is tried with real ranks here; `python -m dslint.smoke.prove --real` tries all."""
CHOSEN = [
    (file, example)
    for file in load_rules(ROOT / "rules")
    for example in examples(file.text)
    if (file.rule.code, example.name) in SHOWN
    and all(side.get("gpus", 2) * side.get("nodes", 1) <= 2 for side in (example.bad, example.good))
][::EVERY]


@pytest.mark.parametrize(
    ("file", "example"),
    [pytest.param(file, example, id=f"{file.rule.code}-{example.name}") for file, example in CHOSEN],
)
def test_real_ranks_do_what_the_rule_says(server: SmokeServer, file: RuleFile, example: Example) -> None:
    proof = Prover(server, all_real=True).prove_example(file, example)
    assert not proof.complaints
    assert proof.shown == SHOWN[proof.code, proof.example]


def test_no_example_is_refuted_by_real_ranks() -> None:
    assert not [proof for proof in RECORD if proof["complaints"]]

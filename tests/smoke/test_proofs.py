"""Every rule's examples on real DeepSpeed: the bad one does what `effect` says, the good one trains."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from dslint.rulebook.cases import Example, examples, mended_examples
from dslint.rulebook.loader import RuleFile, load_rules
from dslint.smoke.client import SmokeServer
from dslint.smoke.proofs.config_evidence import Tried, complaints
from dslint.smoke.proofs.mended import prove_mended
from dslint.smoke.proofs.prover import Prover, without_entries
from dslint.smoke.proofs.trials import trial_of
from dslint.smoke.verdict import Verdict

ROOT = Path(__file__).parents[2]
RULES = load_rules(ROOT / "rules")
RECORD = {
    (proof["code"], proof["example"]): proof
    for proof in json.loads((ROOT / "rules" / "proofs" / "cpu.json").read_text())["proofs"]
}


@pytest.fixture(scope="module")
def prover(server: SmokeServer) -> Prover:
    return Prover(server)


@pytest.mark.deepspeed
@pytest.mark.parametrize(
    ("file", "example"),
    [
        pytest.param(file, example, id=f"{file.rule.code}-{example.name}")
        for file in RULES
        for example in examples(file.text)
    ],
)
def test_deepspeed_does_what_the_rule_says(prover: Prover, file: RuleFile, example: Example) -> None:
    proof = prover.prove_example(file, example)
    assert not proof.complaints
    recorded = RECORD[proof.code, proof.example]
    assert (proof.shown, proof.not_run) == (recorded["shown"], recorded["not_run"])


OF_FIXES = json.loads((ROOT / "rules" / "proofs" / "fixes" / "cpu.json").read_text())["proofs"]
HOLDING = {(proof["code"], proof["example"]) for proof in OF_FIXES if not proof["complaints"]}
MENDED = [
    (file, example)
    for file in RULES
    for example in mended_examples(file.text)
    if (file.rule.code, example.name) in HOLDING
]
EVERY = 12
"""One of so many mended examples is tried in the usual tests; `python -m dslint.smoke.prove --fixes` tries all."""


@pytest.mark.deepspeed
@pytest.mark.parametrize(
    ("file", "example"),
    [pytest.param(file, example, id=f"{file.rule.code}-{example.name}") for file, example in MENDED[::EVERY]],
)
def test_what_a_fix_makes_of_a_bad_example_trains(prover: Prover, file: RuleFile, example: Example) -> None:
    assert not prove_mended(prover, file, example).complaints


def test_fewer_than_one_rule_in_five_has_no_proof() -> None:
    proved = {code for (code, _), proof in RECORD.items() if not proof["not_run"]}
    assert len(proved) > 0.8 * len(RULES)


def test_a_rule_that_is_not_run_says_why_in_its_file() -> None:
    for (code, example), proof in RECORD.items():
        assert proof["shown"] or proof["not_run"], f"{code} {example}"


# --- the logic, on made-up verdicts ---


def verdict(
    phase: str = "done", exception: str | None = None, bases: tuple[str, ...] = (), **seen: Any
) -> Verdict:
    return Verdict(
        mode="simulated",
        ranks=8,
        failure=None if exception is None else "exception",
        reason="",
        notes=(),
        phase=phase,
        exception=exception,
        bases=bases,
        message="stage",
        seen=seen,
        losses=(),
        peak_memory=(),
        seconds={},
        built={},
        output="",
        stacks=(),
    )


DONE = verdict(saved=True)
EMPTY = verdict(saved=False)
FAILED = verdict("parse", "ValidationError", ("ValidationError", "ValueError", "Exception"))
ELSEWHERE = verdict("read", "NotDeepSpeedError", ("NotDeepSpeedError",))


@pytest.mark.parametrize(
    ("effect", "bad", "good", "complaint"),
    [
        ({"raises": "ValidationError", "during": "parse"}, FAILED, DONE, None),
        ({"raises": "ValueError", "during": "step"}, FAILED, DONE, None),
        ({"raises": "ValueError", "during": "read"}, FAILED, DONE, "during read at the latest"),
        ({"raises": "TypeError"}, FAILED, DONE, "should raise TypeError, but fails otherwise"),
        ({"raises": "ValueError"}, DONE, DONE, "should raise ValueError, but trains"),
        ({"raises": "ValueError"}, FAILED, FAILED, "the good example fails"),
        ({"not-deepspeed": True}, ELSEWHERE, DONE, None),
        ({"not-deepspeed": True}, DONE, DONE, "should raise NotDeepSpeedError, but trains"),
        ({"ignored": True}, FAILED, DONE, "should train, but fails"),
        ({"saves-nothing": True}, EMPTY, DONE, None),
        ({"saves-nothing": True}, DONE, DONE, "does save"),
        ({"saves-nothing": True}, EMPTY, EMPTY, "nothing either"),
        ({"warns": True}, verdict(warned=["old"]), verdict(warned=[]), None),
        ({"warns": True}, verdict(warned=["old"]), verdict(warned=["old"]), "warns of nothing"),
        ({"slow": True, "shows": {"saved": False}}, EMPTY, DONE, None),
        ({"slow": True, "shows": {"saved": False}}, DONE, DONE, "should show saved as False, but shows True"),
        ({"slow": True, "shows": {"saved": True}}, DONE, DONE, "the good example shows saved as True too"),
    ],
)
def test_complaints(effect: dict[str, Any], bad: Verdict, good: Verdict, complaint: str | None) -> None:
    found = complaints(effect, Tried(bad, good, entries=("x",), without=lambda: None))
    assert len(found) == (complaint is not None)
    assert complaint is None or complaint in found[0]


@pytest.mark.parametrize(
    ("with_it", "without_it", "complaint"),
    [
        (verdict(settings={"clipping": 1.0}), verdict(settings={"clipping": 1.0}), None),
        (verdict(settings={"config.clip": 2}), verdict(settings={"config.clip": 1}), None),
        (verdict(settings={"clipping": 2}), verdict(settings={"clipping": 1}), "differ clipping"),
        (verdict(norm=1.0), verdict(norm=2.0), "differ norm"),
        (verdict(), FAILED, "without the entry it fails"),
        (verdict(), None, "points at no entry"),
    ],
)
def test_an_entry_without_effect_makes_no_difference(
    with_it: Verdict, without_it: Verdict | None, complaint: str | None
) -> None:
    found = complaints({"ignored": True}, Tried(with_it, DONE, entries=("clip",), without=lambda: without_it))
    assert len(found) == (complaint is not None)
    assert complaint is None or complaint in found[0]


def rule(folder: Path, **changes: Any) -> RuleFile:
    content: dict[str, Any] = {
        "code": "DS999",
        "name": "test-rule",
        "severity": "warning",
        "summary": "A rule for a test, and for nothing else.",
        "why": "It shows which entry is left out of the example.",
        "when": "config.steps_per_print == 5",
        "at": "config.steps_per_print",
        "message": "steps_per_print is five",
        "effect": {"ignored": True},
        "source": "nowhere in particular",
        "examples": [
            {
                "name": "five",
                "bad": {
                    "config": {"steps_per_print": 5, "train_batch_size": 8, "zero_optimization": {"stage": 1}}
                },
                "good": {"config": {"train_batch_size": 8}},
            }
        ],
        **changes,
    }
    (folder / "test").mkdir(exist_ok=True)
    (folder / "test" / "DS999-test-rule.yaml").write_text(yaml.safe_dump(content))
    return load_rules(folder)[0]


def test_the_entry_at_the_finding_is_left_out(tmp_path: Path) -> None:
    file = rule(tmp_path)
    case = next(examples(file.text)).bad
    left = without_entries(trial_of(case, has_gpu=False), file, case)
    assert left is not None
    assert left.config is not None
    assert json.loads(left.config) == {"train_batch_size": 8, "zero_optimization": {"stage": 1}}


def test_another_entry_can_be_named(tmp_path: Path) -> None:
    file = rule(tmp_path, effect={"ignored": "zero_optimization.stage"})
    case = next(examples(file.text)).bad
    left = without_entries(trial_of(case, has_gpu=False), file, case)
    assert left is not None
    assert left.config is not None
    assert json.loads(left.config)["zero_optimization"] == {}


def test_a_case_says_what_its_trial_is() -> None:
    trial = trial_of({"config": {"train_batch_size": 8}, "gpus": 4, "nodes": 2, "gpu": "v100"}, has_gpu=False)
    assert (trial.ranks, trial.fp16, trial.bf16, trial.loader) == (8, True, False, "deepspeed")
    trial = trial_of({"config": {"train_batch_size": "auto"}}, has_gpu=True)
    assert (trial.ranks, trial.fp16, trial.bf16, trial.loader) == (8, None, None, "hf")

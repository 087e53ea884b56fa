"""Every rule's examples on real DeepSpeed: the bad one does what `effect` says, the good one trains.

The rule files are read as plain YAML, so that nothing of dslint stands between an example and its proof.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deepspeed_trial import STAGES, Trial, TrialServer

RULES = Path(__file__).parents[2] / "rules"
RANKS = 8  # for an example that does not say
FOREIGN_FILES = ("yaml", "accelerate")  # an example with one of these is about more than a DeepSpeed config
WITHOUT_BF16 = re.compile(
    r"v100|t4|p100|p40|p4\b|k80|m60|titan|gtx|1080|2080|rtx-?[568]000(?!-ada)|turing|volta|pascal"
)

Rule = dict[str, Any]
Case = dict[str, Any]
Try = Callable[[Case], Trial]


def provable_examples(folder: Path) -> Iterator[tuple[Rule, Case]]:
    """The rule and the example, for all that can be run."""
    for path in sorted(folder.glob("*/*.yaml")):
        rule = yaml.safe_load(path.read_text(encoding="utf-8"))
        for example in () if "not-run" in rule.get("proof", {}) else rule["examples"]:
            if is_runnable(example):
                yield rule, example


def is_runnable(example: Case) -> bool:
    """Whether both sides are DeepSpeed configs for the release that is installed."""
    return all(
        not any(key in example[side] for key in FOREIGN_FILES)
        and ("config" in example[side] or "text" in example[side])
        and example[side].get("deepspeed", installed()) == installed()
        for side in ("bad", "good")
    )


def installed() -> str:
    try:
        return version("deepspeed")
    except PackageNotFoundError:
        return ""


def try_on(trials: TrialServer, case: Case) -> Trial:
    """What DeepSpeed does with one side of an example."""
    config = case.get("text", case.get("config"))
    return trials.run(
        config if isinstance(config, dict | str) else json.dumps(config),
        ranks=case.get("gpus", RANKS) * case.get("nodes", 1),
        loader=case.get("loader"),
        without=[name for name, state in case.get("packages", {}).items() if state == "missing"],
        bf16=not WITHOUT_BF16.search(case.get("gpu", "").lower().replace(" ", "-")),
    )


def complaints(effect: dict[str, Any], bad: Trial, good: Trial) -> list[str]:
    """Where the trials contradict the effect that a rule claims."""
    found = [*about_the_bad(effect, bad)]
    if not good.done:
        found.append(f"the good example fails: {told(good)}")
    if effect.get("saves-nothing") and good.done and not good.save16:
        found.append("the good example saves nothing either")
    return found


def about_the_bad(effect: dict[str, Any], bad: Trial) -> Iterator[str]:
    name, latest = effect.get("raises"), effect.get("during", "done")
    if name is None:
        if not bad.done:
            yield f"the bad example should train, but fails: {told(bad)}"
        elif effect.get("saves-nothing") and bad.save16:
            yield "the bad example does save"
    elif bad.done:
        yield f"the bad example should raise {name}, but trains"
    elif not bad.raised(name):
        yield f"the bad example should raise {name}, but fails otherwise: {told(bad)}"
    elif STAGES.index(bad.stage) > STAGES.index(latest):
        yield f"the bad example should fail during {latest} at the latest: {told(bad)}"


def told(trial: Trial) -> str:
    return f"{trial.exception} during {trial.stage}: {trial.message[:500]}"


@pytest.mark.deepspeed
@pytest.mark.parametrize(
    ("rule", "example"),
    [
        pytest.param(rule, example, id=f"{rule['code']}-{example['name']}")
        for rule, example in provable_examples(RULES)
    ],
)
def test_deepspeed_does_what_the_rule_says(trials: TrialServer, rule: Rule, example: Case) -> None:
    bad, good = (try_on(trials, example[side]) for side in ("bad", "good"))
    assert not complaints(rule["effect"], bad, good)


# --- the logic above, on made-up rules and trials ---

BATCH: Rule = {
    "code": "DS998",
    "effect": {"raises": "AssertionError", "during": "initialize"},
    "examples": [
        {
            "name": "sixteen short",
            "bad": {"config": {"train_batch_size": 16, "train_micro_batch_size_per_gpu": 4}, "gpus": 8},
            "good": {"text": "{train_batch_size: 32}", "gpus": 4, "nodes": 2},
        }
    ],
}
IGNORED: Rule = {
    "code": "DS999",
    "effect": {"ignored": True},
    "examples": [
        {
            "name": "misspelt",
            "bad": {"config": {"train_batch_size": 8, "zero_optimisation": {"stage": 2}}},
            "good": {"config": {"train_batch_size": 8, "zero_optimization": {"stage": 2}}},
        }
    ],
}
DONE = Trial("done", save16=True)
FAILED = Trial("parse", "ValidationError", ("ValidationError", "ValueError", "Exception"), "stage")


@pytest.mark.parametrize(
    ("effect", "bad", "good", "complaint"),
    [
        ({"raises": "ValidationError", "during": "parse"}, FAILED, DONE, None),
        ({"raises": "ValueError", "during": "step"}, FAILED, DONE, None),
        ({"raises": "ValueError", "during": "read"}, FAILED, DONE, "during read at the latest"),
        (
            {"raises": "TypeError", "during": "parse"},
            FAILED,
            DONE,
            "should raise TypeError, but fails otherwise",
        ),
        ({"raises": "ValueError"}, DONE, DONE, "should raise ValueError, but trains"),
        ({"raises": "ValueError"}, FAILED, FAILED, "the good example fails"),
        ({"ignored": True}, DONE, DONE, None),
        ({"ignored": True}, FAILED, DONE, "should train, but fails"),
        ({"saves-nothing": True}, Trial("done", save16=False), DONE, None),
        ({"saves-nothing": True}, DONE, DONE, "does save"),
        ({"saves-nothing": True}, Trial("done", save16=False), Trial("done", save16=False), "nothing either"),
    ],
)
def test_complaints(effect: dict[str, Any], bad: Trial, good: Trial, complaint: str | None) -> None:
    found = complaints(effect, bad, good)
    assert len(found) == (complaint is not None)
    assert complaint is None or complaint in found[0]


@pytest.mark.deepspeed
@pytest.mark.parametrize("rule", [BATCH, IGNORED], ids=lambda rule: str(rule["code"]))
def test_sample_rules_hold(trials: TrialServer, rule: Rule) -> None:
    for example in rule["examples"]:
        bad, good = (try_on(trials, example[side]) for side in ("bad", "good"))
        assert not complaints(rule["effect"], bad, good)


def test_only_what_can_be_run_is_tried(tmp_path: Path) -> None:
    assert not list(provable_examples(tmp_path))
    area = tmp_path / "batch"
    area.mkdir()
    (area / "DS998-batch.yaml").write_text(yaml.safe_dump(BATCH))
    (area / "DS997-not-run.yaml").write_text(yaml.safe_dump({**BATCH, "proof": {"not-run": "needs a V100"}}))
    foreign = [{"name": "accelerate", "bad": {"accelerate": "{}"}, "good": {"config": {}}}]
    (area / "DS996-accelerate.yaml").write_text(yaml.safe_dump({**BATCH, "examples": foreign}))
    assert [(rule["code"], example["name"]) for rule, example in provable_examples(tmp_path)] == [
        ("DS998", "sixteen short")
    ]


@pytest.mark.parametrize(
    ("gpu", "lacks"),
    [("V100-32g", True), ("RTX 8000", True), ("rtx-6000-ada", False), ("h100", False), ("a40", False)],
)
def test_gpus_without_bf16(gpu: str, lacks: bool) -> None:
    assert bool(WITHOUT_BF16.search(gpu.lower().replace(" ", "-"))) == lacks

"""What a rule's own examples have beside a config, since its effect doesn't come without it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from dslint.smoke.trial import Trial


def as_in_examples(trial: Trial, rule: Mapping[str, Any]) -> Trial:
    """The trial with what the rule's examples have in common: calls of a script, its inputs, its launcher.

    Args:
        trial: the trial of a run's config.
        rule: the rule's file; empty for one that doesn't come with dslint.
    """
    cases = [example["bad"] for example in rule.get("examples", ())]
    if not cases:
        return trial
    return dataclasses.replace(
        trial,
        calls=tuple(dict.fromkeys(call for case in cases for call in case.get("calls", ()))),
        floats=all(case.get("inputs") == "floats" for case in cases),
        launcher=cases[0].get("launcher", trial.launcher),
    )


def in_words(trial: Trial) -> str:
    """What a trial has of a script that not every run has, for the end of a sentence; empty if nothing."""
    if not trial.calls:
        return ""
    return f" (in a script that calls {' and '.join(_CALLS.get(call, call) for call in trial.calls)})"


_CALLS = {
    "compile": "engine.compile",
    "configure_checkpointing": "deepspeed.checkpointing.configure",
    "convert_to_random_ltd": "convert_to_random_ltd",
    "load_data": "engine.deepspeed_io",
}

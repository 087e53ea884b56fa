"""A side of an example that has a script or a launch command, as a trial."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any

from dslint.rulebook.cases import Case
from dslint.runs.gpus import find_gpu
from dslint.smoke.proofs.planning import planned
from dslint.smoke.proofs.script_evidence import Effect
from dslint.smoke.script_trial import ScriptTrial

SIMULATED_RANKS, REAL_RANKS = 8, 2
"""Ranks of an example that does not say."""

MOST_REAL_RANKS = 4
"""Ranks that are really started; more would only wait for each other's processor."""

NEEDS_PEERS = ("hangs", "trains-otherwise", "like-good")
"""Effects that a fake group can't show: nobody waits in it, and its sums are not real."""


PACKAGES = {"mpi4py": "missing"}
"""What is assumed of packages: with this one, a script that no launcher started would still find its group."""


def has_script(case: Case) -> bool:
    """Whether a case is about more than a config."""
    return "script" in case or "launch" in case


def mode_of(case: Case, effect: Effect) -> str:
    """Whether the ranks of a case are "simulated" or "real"."""
    default = "real" if any(effect.get(name) for name in NEEDS_PEERS) else "simulated"
    return str(case.get("ranks-are", default))


def script_trial_of(case: Case, effect: Effect, *, has_gpu: bool, hides: Iterable[str] = ()) -> ScriptTrial:
    """The trial that a side of an example describes.

    A CPU answers like a GPU with fp16 and bf16; a GPU answers for itself, unless the example names another.
    """
    gpu = find_gpu(case["gpu"]) if "gpu" in case else None
    otherwise = None if has_gpu else True
    packages = {**PACKAGES, **case.get("packages", {})}
    missing = [name for name, state in packages.items() if state == "missing"]
    trial = ScriptTrial(
        files=_files(case),
        script="train.py" if "script" in case else None,
        arguments=tuple(case.get("arguments", ())),
        launcher=case.get("launcher", "accelerate" if "accelerate" in case else "torchrun"),
        gpus=case.get("gpus", SIMULATED_RANKS),
        nodes=case.get("nodes", 1),
        fp16=gpu.fp16 if gpu else otherwise,
        bf16=gpu.bf16 if gpu else otherwise,
        missing=(*missing, *hides),
    )
    plan = planned(case)
    if plan is not None:
        trial = dataclasses.replace(trial, words=plan.words, environment=plan.environment)
    if "before" in case:
        before = script_trial_of({"ranks-are": "real", **case["before"]}, {}, has_gpu=has_gpu, hides=hides)
        trial = dataclasses.replace(trial, before=before)
    if mode_of(case, effect) == "simulated":
        return trial
    ranks = (plan and plan.ranks) or case.get("gpus", REAL_RANKS) * trial.nodes
    return dataclasses.replace(trial, mode="real", gpus=min(ranks, MOST_REAL_RANKS), nodes=1)


def _files(case: Case) -> Mapping[str, str]:
    """Everything that lies beside each other, by the names that examples use."""
    files: dict[str, Any] = dict(case.get("files", {}))
    if "text" in case:
        files["ds_config.json"] = case["text"]
    elif "config" in case:
        files["ds_config.json"] = json.dumps(case["config"], indent=2)
    for key, name in (("script", "train.py"), ("launch", "run.sh"), ("accelerate", "accelerate.yaml")):
        if key in case:
            files[name] = case[key]
    return files

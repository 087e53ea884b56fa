"""What fixes make of the bad examples, on real DeepSpeed: it has to train, or run to its end."""

from __future__ import annotations

import dataclasses
import re

from dslint.rulebook.cases import Example
from dslint.rulebook.loader import RuleFile
from dslint.smoke.proofs import script_evidence
from dslint.smoke.proofs.config_evidence import told
from dslint.smoke.proofs.planning import NoLaunchError
from dslint.smoke.proofs.prover import Proof, Prover
from dslint.smoke.proofs.script_cases import REAL_RANKS, has_script

NOT_HERE = (
    (r"op had not been implemented on CPU backend", "needs a GPU: the CPU has no such op"),
    (r"Error building extension 'dc'", "needs a GPU: DeepCompile's op isn't built without one"),
    (r"Cannot access accelerator device when none is available", "needs a GPU"),
    (r"async_io op", "needs libaio, which the op for NVMe is built with"),
    (r"^NotDeepSpeedError", "is then no run with DeepSpeed, as the fix says"),
    (r"Not able to determine model policy", "needs a model whose layers tensor parallelism knows"),
    (r"no MoE layers detected", "needs a model with experts"),
)
"""Failures that say nothing about a fix: what message and example have, and what is missing here."""

WRONG_SUMS = re.compile(r"index -?\d+ is out of bounds|device-side assert")
"""How ZenFlow fails in a simulated group: it chooses columns by sums, which such a group doesn't have."""


def prove_mended(prover: Prover, file: RuleFile, example: Example) -> Proof:
    """Whether the mended side of an example (in the place of its good one) trains.

    Args:
        prover: runs the trials.
        file: the rule.
        example: one of cases.mended_examples.
    """
    reason = prover.trials.cannot_run(file, example)
    if reason:
        return Proof(file.rule.code, example.name, "", reason, (), None)
    failure = (
        _failure_of_script(prover, file, example) if has_script(example.good) else _failure(prover, file, example)
    )
    missing = next((text for pattern, text in NOT_HERE if re.search(pattern, f"{failure}\n{example.good}")), "")
    complaints = (f"what the fix makes of it fails: {failure}",) if failure and not missing else ()
    shown = "" if failure else "trains"
    return Proof(file.rule.code, example.name, shown, missing, complaints, None)


def _failure(prover: Prover, file: RuleFile, example: Example) -> str:
    trial = prover.trials.of_config(file, example.good)
    verdict = prover.verdict(trial)
    if WRONG_SUMS.search(verdict.message) and "zenflow" in (trial.config or ""):
        verdict = prover.verdict(prover.trials.with_peers(dataclasses.replace(trial, gpus=REAL_RANKS, nodes=1)))
    return "" if verdict.trained else told(verdict)


def _failure_of_script(prover: Prover, file: RuleFile, example: Example) -> str:
    try:
        trial = prover.trials.of_script(file, example.good)
    except NoLaunchError as error:
        return str(error)
    outcome = prover.outcome(trial)
    return "" if outcome.ended else script_evidence.told(outcome)

"""From the sides of a rule's examples to trials on this machine, or to the reason why there can be none."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from importlib.metadata import version

from dslint.lint import facts_of
from dslint.rulebook.cases import Case, Example, run_of
from dslint.rulebook.loader import RuleFile
from dslint.runs.gpus import find_gpu
from dslint.runs.unknown import Unknown
from dslint.smoke.proofs.planning import NoLaunchError, planned
from dslint.smoke.proofs.script_cases import MOST_REAL_RANKS, REAL_RANKS, has_script, script_trial_of
from dslint.smoke.script_trial import ScriptTrial
from dslint.smoke.trial import Trial

RANKS = 8
"""Simulated ranks of an example that does not say."""

MOST_RANKS = 8
"""Real ranks of a tiny model that are started at most."""

SILENCE = 15.0
"""Seconds without any work after which real ranks hang; a rank may wait long for its peers on a busy machine."""


@dataclass(frozen=True)
class Trials:
    """Makes the trials of examples.

    Attributes:
        has_gpu: whether they run on a GPU.
        gpus: number of GPUs here.
        all_real: whether every rank of every example is a process of its own; else only where the example says so,
            or its effect needs peers.
    """

    has_gpu: bool
    gpus: int
    all_real: bool = False

    def cannot_run(self, file: RuleFile, example: Example) -> str:
        """Why an example can't be run here; empty if it can."""
        proof = file.text.data.get("proof", {})
        if "not-run" in proof:
            return str(proof["not-run"])
        if proof.get("needs") == "gpu" and not self.has_gpu:
            return "needs a GPU"
        installed = version("deepspeed")
        for side in (example.bad, example.good):
            if side.get("deepspeed", installed) != installed:
                return f"about DeepSpeed {side['deepspeed']}"
            if reason := self._too_many_ranks(file, side) or self._must_share(file, side):
                return reason
        return ""

    def _too_many_ranks(self, file: RuleFile, side: Case) -> str:
        """Why the ranks of a side can't all be started; empty if they can, or are simulated."""
        if not has_script(side):
            trial = self.of_config(file, side)
            return f"needs {trial.ranks} real ranks" if trial.real and trial.ranks > MOST_RANKS else ""
        if not self.all_real:
            return ""
        try:
            plan = planned(side)
        except NoLaunchError:
            return ""  # told where it is run
        if (plan is not None and plan.ranks is None) or "ranks" in file.text.data["effect"].get("shows", ()):
            return "the launcher alone decides on the number of ranks"
        ranks = (plan and plan.ranks) or side.get("gpus", REAL_RANKS)
        if side.get("nodes", 1) > 1:
            return "needs several nodes"
        return f"needs {ranks} real ranks" if ranks > MOST_REAL_RANKS else ""

    def _must_share(self, file: RuleFile, side: Case) -> str:
        """Why a side can't be run where ranks share a GPU; empty if it can."""
        if file.text.data.get("proof", {}).get("needs") != "own-gpus" or not has_script(side):
            return ""
        try:
            trial = self.of_script(file, side)
        except NoLaunchError:
            return ""  # told where it is run
        return f"needs {trial.ranks} GPUs" if trial.shared else ""

    def of_config(self, file: RuleFile, case: Case) -> Trial:
        """The trial of a side without a script."""
        trial = trial_of(case, has_gpu=self.has_gpu)
        hides = file.text.data.get("proof", {}).get("hides", ())
        trial = dataclasses.replace(trial, missing=(*trial.missing, *hides))
        if not self.all_real and case.get("ranks-are") != "real":
            return trial
        return self.with_peers(dataclasses.replace(trial, gpus=case.get("gpus", REAL_RANKS)))

    def with_peers(self, trial: Trial) -> Trial:
        """The trial with real ranks, which share GPUs where there are not enough of them."""
        shared = self.has_gpu and trial.ranks > self.gpus
        return dataclasses.replace(trial, mode="real", silence=SILENCE, shared=shared)

    def of_script(self, file: RuleFile, case: Case) -> ScriptTrial:
        """The trial of a side with a script.

        Raises:
            NoLaunchError: if its launch command starts no training.
        """
        side = {**case, "ranks-are": "real"} if self.all_real else case
        data = file.text.data
        hides = data.get("proof", {}).get("hides", ())
        return self._shared(script_trial_of(side, data["effect"], has_gpu=self.has_gpu, hides=hides))

    def _shared(self, trial: ScriptTrial) -> ScriptTrial:
        """The trial with ranks that share GPUs where there are not enough of them."""
        before = None if trial.before is None else self._shared(trial.before)
        shared = self.has_gpu and trial.real and trial.ranks > self.gpus
        return dataclasses.replace(trial, before=before, shared=shared)


def trial_of(case: Case, *, has_gpu: bool) -> Trial:
    """The trial that a side of an example describes.

    A CPU answers like a GPU with fp16 and bf16; a GPU answers for itself, unless the example names another.
    """
    run = run_of(case)
    gpu = find_gpu(case["gpu"]) if "gpu" in case else None
    otherwise = None if has_gpu else True
    loader = facts_of(run).loader
    has_config = "accelerate" not in case or "config" in case or "text" in case
    return Trial(
        config=run.config.source.data.decode("utf-8", errors="surrogateescape") if has_config else None,
        accelerate=case.get("accelerate"),
        gpus=case.get("gpus", RANKS),
        nodes=case.get("nodes", 1),
        loader="deepspeed" if isinstance(loader, Unknown) else loader,
        fp16=gpu.fp16 if gpu else otherwise,
        bf16=gpu.bf16 if gpu else otherwise,
        missing=tuple(name for name, state in case.get("packages", {}).items() if state == "missing"),
        detailed=True,
        floats=case.get("inputs") == "floats",
        launcher=case.get("launcher", "torchrun"),
        calls=tuple(case.get("calls", ())),
    )

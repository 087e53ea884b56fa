"""Proofs: the examples of the rules on real DeepSpeed."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from dslint.documents.document import Document, NodePath
from dslint.lint import facts_of
from dslint.rulebook.cases import Case, Example, run_of
from dslint.rulebook.judge import judge as judge_run
from dslint.rulebook.loader import RuleFile
from dslint.runs.gpus import find_gpu
from dslint.runs.unknown import Unknown
from dslint.smoke.client import SmokeServer
from dslint.smoke.proofs import entries, script_evidence, stand_ins
from dslint.smoke.proofs.config_evidence import Effect, Tried, complaints, shown
from dslint.smoke.proofs.planning import NoLaunchError, planned
from dslint.smoke.proofs.script_cases import MOST_REAL_RANKS, REAL_RANKS, has_script, script_trial_of
from dslint.smoke.script_outcome import Outcome, outcome
from dslint.smoke.script_trial import ScriptTrial
from dslint.smoke.trial import Trial
from dslint.smoke.verdict import Verdict, judge

RANKS = 8
"""Simulated ranks of an example that does not say."""

MOST_RANKS = 8
"""Real ranks of a tiny model that are started at most."""

SILENCE = 15.0
"""Seconds without any work after which real ranks hang; a rank may wait long for its peers on a busy machine."""


@dataclass(frozen=True)
class Proof:
    """What came of one example of a rule.

    Attributes:
        code: the rule.
        example: the example's name.
        shown: what was seen, in a few words; empty if it was not run.
        not_run: why it was not run; empty if it was.
        complaints: where what was seen contradicts the claim.
        peak_memory: the most bytes that either side held on the GPU; None without one.
    """

    code: str
    example: str
    shown: str
    not_run: str
    complaints: tuple[str, ...]
    peak_memory: int | None

    @property
    def holds(self) -> bool:
        """Whether it was run and nothing contradicts the claim."""
        return not self.not_run and not self.complaints


class Prover:
    """Runs examples on a server; the same trial is run once only.

    Attributes:
        server: runs the trials.
        has_gpu: whether they run on a GPU.
        all_real: whether every rank of every example is a process of its own; else only where the example says so,
            or its effect needs peers.
    """

    def __init__(self, server: SmokeServer, *, all_real: bool = False) -> None:
        self.server = server
        self.has_gpu = server.hello["device"] == "cuda"
        self.all_real = all_real
        self._known: dict[Trial, Verdict] = {}
        self._known_scripts: dict[str, Outcome] = {}

    def prove_example(self, file: RuleFile, example: Example) -> Proof:
        """The proof of one example."""
        reason = self.cannot_run(file, example)
        if reason:
            return Proof(file.rule.code, example.name, "", reason, (), None)
        if has_script(example.bad) or has_script(example.good):
            return self._prove_scripts(file, example)
        return self._prove_configs(file, example)

    def _prove_configs(self, file: RuleFile, example: Example) -> Proof:
        effect: Effect = file.text.data["effect"]
        tried = Tried(
            bad=self.verdict(self.trial(file, example.bad)),
            good=self.verdict(self.trial(file, example.good)),
            entries=tuple(entries.parsed_names(*_idle(file, example.bad))),
            without=lambda: self._without_the_entries(file, example),
        )
        peaks = [*tried.bad.peak_memory, *tried.good.peak_memory]
        return Proof(
            code=file.rule.code,
            example=example.name,
            shown=shown(effect, tried),
            not_run="",
            complaints=tuple(complaints(effect, tried)),
            peak_memory=max(peaks, default=None),
        )

    def _prove_scripts(self, file: RuleFile, example: Example) -> Proof:
        effect: Effect = file.text.data["effect"]
        try:
            trials = [self.script_trial(file, side) for side in (example.bad, example.good)]
        except NoLaunchError as error:
            return Proof(file.rule.code, example.name, "", "", (str(error),), None)
        bad, good = map(self.outcome, trials)
        tried = script_evidence.TriedScripts(bad, good)
        peaks = [side.peak_memory for side in (bad, good) if side.peak_memory is not None]
        untrue = [
            text
            for trial, side in zip(trials, (bad, good), strict=True)
            for text in stand_ins.complaints(trial, side)
        ]
        return Proof(
            code=file.rule.code,
            example=example.name,
            shown=script_evidence.shown(effect, tried),
            not_run="",
            complaints=tuple(untrue or script_evidence.complaints(effect, tried)),
            peak_memory=max(peaks, default=None),
        )

    def outcome(self, trial: ScriptTrial) -> Outcome:
        """What comes of running a script."""
        key = json.dumps(trial.as_data(), sort_keys=True)
        if key not in self._known_scripts:
            self._known_scripts[key] = outcome(self.server.run_script(trial))
        return self._known_scripts[key]

    def verdict(self, trial: Trial) -> Verdict:
        """What DeepSpeed does with a trial."""
        key = dataclasses.replace(trial, arguments=_Hashable(trial.arguments))
        if key not in self._known:
            self._known[key] = judge(self.server.run_ranks(trial), mode=trial.mode, world=trial.ranks)
        return self._known[key]

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
            trial = self.trial(file, side)
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
        trial = self.script_trial(file, side)
        return f"needs {trial.ranks} GPUs" if trial.shared else ""

    def trial(self, file: RuleFile, case: Case) -> Trial:
        """The trial of a side without a script."""
        trial = trial_of(case, has_gpu=self.has_gpu)
        hides = file.text.data.get("proof", {}).get("hides", ())
        trial = dataclasses.replace(trial, missing=(*trial.missing, *hides))
        if not self.all_real and case.get("ranks-are") != "real":
            return trial
        return self.with_peers(dataclasses.replace(trial, gpus=case.get("gpus", REAL_RANKS)))

    def with_peers(self, trial: Trial) -> Trial:
        """The trial with real ranks, which share GPUs where there are not enough of them."""
        shared = self.has_gpu and trial.ranks > self.server.hello["count"]
        return dataclasses.replace(trial, mode="real", silence=SILENCE, shared=shared)

    def script_trial(self, file: RuleFile, case: Case) -> ScriptTrial:
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
        shared = self.has_gpu and trial.real and trial.ranks > self.server.hello["count"]
        return dataclasses.replace(trial, before=before, shared=shared)

    def _without_the_entries(self, file: RuleFile, example: Example) -> Verdict | None:
        trial = without_entries(self.trial(file, example.bad), file, example.bad)
        return None if trial is None else self.verdict(trial)


class _Hashable(dict[str, Any]):
    """Arguments that can be part of a key."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(json.dumps(self, sort_keys=True, default=str))


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


def without_entries(trial: Trial, file: RuleFile, case: Case) -> Trial | None:
    """The trial of a case without the entries that are said to have no effect; None if there are none."""
    document, paths = _idle(file, case)
    return entries.without(trial, document, paths) if paths else None


def _idle(file: RuleFile, case: Case) -> tuple[Document, list[NodePath]]:
    run = run_of(case)
    named = file.text.data["effect"].get("ignored")
    return entries.idle_entries(run, named, judge_run(facts_of(run), [file.rule]).findings)

"""Proofs: the examples of the rules on real DeepSpeed."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

from dslint.documents.document import Document, NodePath
from dslint.lint import facts_of
from dslint.rulebook.cases import Case, Example, run_of
from dslint.rulebook.judge import judge as judge_run
from dslint.rulebook.loader import RuleFile
from dslint.smoke.client import SmokeServer
from dslint.smoke.proofs import entries, script_evidence, stand_ins
from dslint.smoke.proofs.config_evidence import Effect, Tried, complaints, shown
from dslint.smoke.proofs.planning import NoLaunchError
from dslint.smoke.proofs.script_cases import has_script
from dslint.smoke.proofs.trials import Trials
from dslint.smoke.script_outcome import Outcome, outcome
from dslint.smoke.script_trial import ScriptTrial
from dslint.smoke.trial import Trial
from dslint.smoke.verdict import Verdict, judge


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
        trials: makes them.
    """

    def __init__(self, server: SmokeServer, *, all_real: bool = False) -> None:
        """Makes a prover; see `Trials` for `all_real`."""
        self.server = server
        self.trials = Trials(
            has_gpu=server.hello["device"] == "cuda", gpus=server.hello["count"], all_real=all_real
        )
        self._known: dict[Trial, Verdict] = {}
        self._known_scripts: dict[str, Outcome] = {}

    def prove_example(self, file: RuleFile, example: Example) -> Proof:
        """The proof of one example."""
        reason = self.trials.cannot_run(file, example)
        if reason:
            return Proof(file.rule.code, example.name, "", reason, (), None)
        if has_script(example.bad) or has_script(example.good):
            return self._prove_scripts(file, example)
        return self._prove_configs(file, example)

    def _prove_configs(self, file: RuleFile, example: Example) -> Proof:
        effect: Effect = file.text.data["effect"]
        tried = Tried(
            bad=self.verdict(self.trials.of_config(file, example.bad)),
            good=self.verdict(self.trials.of_config(file, example.good)),
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
            trials = [self.trials.of_script(file, side) for side in (example.bad, example.good)]
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

    def _without_the_entries(self, file: RuleFile, example: Example) -> Verdict | None:
        trial = without_entries(self.trials.of_config(file, example.bad), file, example.bad)
        return None if trial is None else self.verdict(trial)


class _Hashable(dict[str, Any]):
    """Arguments that can be part of a key."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(json.dumps(self, sort_keys=True, default=str))


def without_entries(trial: Trial, file: RuleFile, case: Case) -> Trial | None:
    """The trial of a case without the entries that are said to have no effect; None if there are none."""
    document, paths = _idle(file, case)
    return entries.without(trial, document, paths) if paths else None


def _idle(file: RuleFile, case: Case) -> tuple[Document, list[NodePath]]:
    run = run_of(case)
    named = file.text.data["effect"].get("ignored")
    return entries.idle_entries(run, named, judge_run(facts_of(run), [file.rule]).findings)

"""Confirms findings on the user's own run: does the predicted thing happen, and is it gone with the fix?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from dslint.rulebook.cache import shipped_rule_text
from dslint.rulebook.finding import Finding
from dslint.runs.linking import Pairing
from dslint.smoke.confirm.bench import Bench
from dslint.smoke.confirm.by_config import config_trial, facts_for, try_config
from dslint.smoke.confirm.by_script import try_launch, try_script
from dslint.smoke.confirm.config_sight import ended
from dslint.smoke.confirm.places import as_it_stands
from dslint.smoke.confirm.sight import CONFIRMED, NOT_REPRODUCED, NOT_RUN, SEEN, Answer
from dslint.smoke.confirm.ways import CONFIG, LAUNCH, SCRIPT, other_release, ways_of, why_not
from dslint.smoke.planning import CannotPlanError, SmokeOptions
from dslint.smoke.script_outcome import Outcome
from dslint.smoke.smoking import Begin
from dslint.smoke.verdict import Verdict

__all__ = [
    "CONFIRMED",
    "NOT_REPRODUCED",
    "NOT_RUN",
    "SEEN",
    "Confirmation",
    "Confirmer",
    "Question",
    "RunSmoked",
]


@dataclass(frozen=True)
class Question:
    """Whether a finding comes true.

    Attributes:
        finding: the finding.
        effect: what its rule predicts: the `effect` of the rule's file.
        before: the run with every other fix made, and this finding still in it.
        after: the same run with this finding's fix made too; None where there is no fix.
    """

    finding: Finding
    effect: Mapping[str, Any]
    before: Pairing
    after: Pairing | None


@dataclass(frozen=True)
class Confirmation:
    """What a question came to.

    Attributes:
        verdict: CONFIRMED, SEEN, NOT_REPRODUCED or NOT_RUN.
        told: what happened; for NOT_REPRODUCED what happened instead, for NOT_RUN why.
        before: what the run with the finding came to, where it was tried.
        after: the same for the run with the fix.
    """

    verdict: str
    told: str
    before: Verdict | Outcome | None = None
    after: Verdict | Outcome | None = None


@dataclass(frozen=True)
class RunSmoked:
    """What a whole run came to.

    Attributes:
        path: the file that the run is about.
        verdict: what DeepSpeed did with its config; None where it can't be tried.
        told: what happened, or why it can't be tried.
    """

    path: str
    verdict: Verdict | Outcome | None
    told: str


class Confirmer:
    """Answers questions; as a context manager, since the first trial starts a server that has to be ended.

    A trial is run once only. Whatever keeps trials from being run at all, such as DeepSpeed that isn't installed,
    is a SmokeError of the first `answer` or `smoke` that needs one.

    Args:
        options: how to train.
        begin: called with the path of what is tried next; what it gives hears of the progress.
    """

    def __init__(self, options: SmokeOptions, begin: Begin) -> None:
        self._bench = Bench(options, begin)

    def __enter__(self) -> Confirmer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bench.close()

    def answer(self, question: Question) -> Confirmation:
        """Try the run with the finding and with the fix, as far as that can show the effect.

        Raises:
            SmokeError: if nothing can be tried here.
        """
        text = shipped_rule_text(question.finding.code)
        rule = {} if text is None else text.data
        facts = facts_for(question.before, self._bench)
        reason = why_not(question.effect, rule, facts, self._bench)
        if reason is not None:
            return Confirmation(NOT_RUN, reason)
        finding = as_it_stands(question.finding, question.before, facts)
        ways = ways_of(question.effect, "" if text is None else text.area, finding, question.before)
        confirmation = Confirmation(NOT_RUN, "only the run's script, which isn't there, could show it")
        for way in ways:
            confirmation = self._by(way, finding, question)
            if confirmation.verdict in (CONFIRMED, SEEN):
                break
        return confirmation

    def _by(self, way: str, finding: Finding, question: Question) -> Confirmation:
        try:
            answer = _WAYS[way](finding, question.effect, question.before, question.after, self._bench)
        except CannotPlanError as error:
            return Confirmation(NOT_RUN, str(error))
        verdict, told = _concluded(answer)
        return Confirmation(verdict, told, answer.before, answer.after)

    def smoke(self, pairing: Pairing) -> RunSmoked:
        """Take the config of a run through DeepSpeed with a tiny model; its script is not executed.

        Raises:
            SmokeError: if nothing can be tried here.
        """
        facts = facts_for(pairing, self._bench)
        reason = other_release(facts, self._bench.installed)
        if reason is not None:
            return RunSmoked(pairing.path, None, reason)
        try:
            verdict = self._bench.verdict(config_trial(pairing, facts, self._bench), pairing)
        except CannotPlanError as error:
            return RunSmoked(pairing.path, None, str(error))
        return RunSmoked(pairing.path, verdict, ended(verdict))


_WAYS = {CONFIG: try_config, SCRIPT: try_script, LAUNCH: try_launch}


def _concluded(answer: Answer) -> tuple[str, str]:
    """The verdict on both runs, and what happened in them."""
    sight = answer.sight
    if sight.verdict != SEEN or answer.after is None:
        return sight.verdict, sight.told
    if answer.trouble is not None:
        return SEEN, f"{sight.told}; {answer.trouble}"
    return CONFIRMED, f"{sight.told}; {answer.well}"

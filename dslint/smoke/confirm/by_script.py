"""Tries a question by running the script of both runs, or by giving their commands to the launcher."""

from __future__ import annotations

import ast
import dataclasses
from functools import partial

from dslint.rulebook.finding import Finding
from dslint.runs.linking import Pairing
from dslint.smoke.confirm import script_sight
from dslint.smoke.confirm.bench import Bench
from dslint.smoke.confirm.by_config import facts_for
from dslint.smoke.confirm.places import is_at, is_named
from dslint.smoke.confirm.script_sight import TriedRuns
from dslint.smoke.confirm.script_trials import launch_trial_of, script_trial_of
from dslint.smoke.confirm.sight import SEEN, Answer
from dslint.smoke.proofs.script_evidence import Effect
from dslint.smoke.script_outcome import Outcome

BEHIND_THE_LOOP = ("saves-empty", "saves-nothing")
"""Effects that a script shows once its training is over."""


def try_script(finding: Finding, effect: Effect, before: Pairing, after: Pairing | None, bench: Bench) -> Answer:
    """Execute the scripts for a few optimizer steps.

    Where the finding stands behind the training, and hasn't come true within the steps, they are executed to their
    end, as far as the time of a trial allows.

    Raises:
        CannotPlanError: if that could not show the effect, or can't be done as the user would do it.
    """
    script_sight.refuse_unseen(effect, has_fix=after is not None)
    if any(effect.get(name) for name in BEHIND_THE_LOOP):
        return _try(finding, effect, before, after, bench, to_the_end=True)
    answer = _try(finding, effect, before, after, bench, to_the_end=False)
    was_cut = isinstance(answer.before, Outcome) and answer.before.cut
    if answer.sight.verdict == SEEN or not was_cut or _is_in_a_loop(finding, before):
        return answer
    return _try(finding, effect, before, after, bench, to_the_end=True)


def _try(
    finding: Finding, effect: Effect, before: Pairing, after: Pairing | None, bench: Bench, *, to_the_end: bool
) -> Answer:
    def run(pairing: Pairing, *, again: bool = False) -> Outcome:
        facts, options = facts_for(pairing, bench), bench.options.for_pairing(pairing)
        trial = script_trial_of(pairing, facts, options, effect, here=bench.gpus, to_the_end=to_the_end)
        if trial.fp16 is None and not bench.gpus:  # a CPU answers like a GPU with both
            trial = dataclasses.replace(trial, fp16=True, bf16=True)
        return bench.outcome(trial, pairing, again=again)

    bad = run(before)
    good = None if after is None else run(after)
    tried = TriedRuns(bad, good, lambda: run(before, again=True), partial(is_at, finding))
    trouble = None if good is None else script_sight.trouble_after(effect, good)
    well = "" if good is None else f"with the fix {script_sight.went(good)}"
    return Answer(script_sight.look(effect, tried), bad, good, trouble, well)


def _is_in_a_loop(finding: Finding, pairing: Pairing) -> bool:
    """Whether a finding stands in a loop of the script, whose first rounds would have shown it."""
    script, place = None if pairing.script is None else pairing.script.script, finding.location
    if script is None or script.tree is None or place.source.path != script.source.path:
        return False
    line = place.source.place(place.span.start).line
    loops = (node for node in ast.walk(script.tree) if isinstance(node, (ast.For, ast.AsyncFor, ast.While)))
    return any(loop.lineno <= line <= (loop.end_lineno or loop.lineno) for loop in loops)


def try_launch(finding: Finding, effect: Effect, before: Pairing, after: Pairing | None, bench: Bench) -> Answer:
    """Give the commands to the launcher that they name, up to where it would start the script.

    Raises:
        CannotPlanError: if a part of them is known only when they run.
    """

    def start(pairing: Pairing) -> Outcome:
        options = bench.options.for_pairing(pairing)
        return bench.outcome(launch_trial_of(pairing, facts_for(pairing, bench), options), pairing)

    bad = start(before)
    good = None if after is None else start(after)
    is_why = is_named(finding, f"{bad.message}\n{bad.output}")
    tried = TriedRuns(bad, good, lambda: bad, lambda _: is_why)
    trouble = None if good is None or good.ended else f"with the fix {script_sight.ended(good)}"
    return Answer(script_sight.look(effect, tried), bad, good, trouble, "with the fix the launcher starts it")

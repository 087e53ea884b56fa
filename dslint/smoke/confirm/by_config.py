"""Tries a question with a tiny model through the configs of both runs."""

from __future__ import annotations

import dataclasses

from dslint.lint import facts_of
from dslint.rulebook.cache import shipped_rule_text
from dslint.rulebook.finding import Finding
from dslint.runs.facts import Facts
from dslint.runs.linking import Pairing, run_of
from dslint.smoke.confirm import config_sight
from dslint.smoke.confirm.bench import Bench
from dslint.smoke.confirm.hints import as_in_examples, in_words
from dslint.smoke.confirm.sight import Answer
from dslint.smoke.planning import plan_of
from dslint.smoke.proofs.config_evidence import Effect, Tried
from dslint.smoke.proofs.entries import idle_entries, parsed_names, without
from dslint.smoke.trial import Trial
from dslint.smoke.verdict import Verdict


def facts_for(pairing: Pairing, bench: Bench) -> Facts:
    """The facts of a run, with what the command line says of it."""
    return facts_of(run_of(pairing, bench.options.for_pairing(pairing).of_run()))


def config_trial(pairing: Pairing, facts: Facts, bench: Bench, ranks_of: Trial | None = None) -> Trial:
    """The trial of a run's config, with all that can be told of it.

    Args:
        pairing: the run.
        facts: its facts.
        bench: where it is tried.
        ranks_of: a trial whose ranks it has where nothing but the batch sizes tells another number.

    Raises:
        CannotPlanError: if nobody can tell the config.
    """
    options = bench.options.for_pairing(pairing)
    plan = plan_of(pairing, facts, options)
    trial = plan.trial(options, bench.gpus, answers_like_a_gpu=not bench.gpus)
    if ranks_of is not None and plan.ranks_from in ("", "the batch sizes"):
        trial = dataclasses.replace(trial, gpus=ranks_of.gpus, nodes=ranks_of.nodes)
    return dataclasses.replace(trial, detailed=True)


def try_config(finding: Finding, effect: Effect, before: Pairing, after: Pairing | None, bench: Bench) -> Answer:
    """Train a few steps under both configs, and under the first without the entry that shall have no effect.

    Raises:
        CannotPlanError: if nobody can tell a config.
    """
    facts = facts_for(before, bench)
    text = shipped_rule_text(finding.code)
    rule = {} if text is None else text.data
    trial = as_in_examples(config_trial(before, facts, bench), rule)
    bad = bench.verdict(trial, before)
    good = None
    if after is not None:
        mended = as_in_examples(config_trial(after, facts_for(after, bench), bench, trial), rule)
        good = bench.verdict(mended, after)
    document, paths = idle_entries(facts.run, effect.get("ignored"), [finding])
    entries = tuple(parsed_names(document, paths)) if paths else ()

    def without_them() -> Verdict | None:
        return bench.verdict(without(trial, document, paths), before) if paths else None

    sight = config_sight.look(effect, Tried(bad, good or bad, entries, without_them), has_fix=good is not None)
    sight = dataclasses.replace(sight, told=sight.told + in_words(trial))
    trouble = None if good is None else config_sight.trouble_after(effect, good)
    return Answer(sight, bad, good, trouble, "with the fix it trains, saves and loads")

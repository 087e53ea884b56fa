"""Which trials can show the effect that a finding predicts, or why none can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dslint.documents.document import Document
from dslint.documents.source import Source
from dslint.rulebook.finding import Finding
from dslint.runs.facts import Facts
from dslint.runs.linking import Pairing
from dslint.runs.releases import matches, parse_release
from dslint.smoke.confirm.bench import Bench
from dslint.smoke.proofs.script_evidence import Effect
from dslint.smoke.trial import PHASES

CONFIG, SCRIPT, LAUNCH = "config", "script", "launch"
"""A tiny model through the config; the user's own script; the launch command without the script."""

BEYOND_A_FEW_STEPS = {
    "advice": "it is advice: nothing goes wrong in a few steps",
    "slow": "a few steps don't show how fast a run is",
    "memory": "a tiny model doesn't show what memory a run takes",
}
"""Effects that no trial shows."""

ONLY_IN_A_SCRIPT = ("hangs", "exits", "trains-nothing", "trains-otherwise", "saves-empty", "says")
"""Effects that a config by itself doesn't have."""

ABOUT_SCRIPTS = ("script", "saving", "launch")
"""Areas of rules whose effects come of what a script or a launch command does."""


def why_not(effect: Effect, rule: Mapping[str, Any], facts: Facts, bench: Bench) -> str | None:
    """Why no trial on this machine's DeepSpeed can show an effect; None if one may.

    Args:
        effect: the rule's.
        rule: the rest of the rule's file; empty for a rule that doesn't come with dslint.
        facts: the run's facts.
        bench: what there is to try it on; not asked for before it has to be, since that starts a server.
    """
    if reason := next((text for name, text in BEYOND_A_FEW_STEPS.items() if effect.get(name)), None):
        return reason
    proof = rule.get("proof", {})
    if "not-run" in proof:
        return str(proof["not-run"])
    if proof.get("needs") == "gpu" and not bench.gpus:
        return "only a GPU shows it, and torch sees none here"
    return other_release(facts, bench.installed, str(rule.get("deepspeed", "")))


def other_release(facts: Facts, installed: str, holds_for: str = "") -> str | None:
    """Where the run, or the rule, is about another DeepSpeed than the one that trains here: what differs."""
    version = facts.run.version
    if version is not None and version.exact and version.release.text != installed:
        return f"the run uses DeepSpeed {version.release.text} ({version.where}), and {installed} is installed"
    if holds_for and not _matches(holds_for, installed):
        return f"it is about DeepSpeed {holds_for}, and {installed} is installed"
    return None


def _matches(spec: str, installed: str) -> bool:
    try:
        return matches(spec, parse_release(installed))
    except ValueError:
        return True


def ways_of(effect: Effect, area: str, finding: Finding, pairing: Pairing) -> Sequence[str]:
    """The trials that may show an effect, the cheapest first; none if the run lacks what it takes."""
    during = effect.get("during")
    if during == "launch":
        return [LAUNCH] if pairing.launch is not None else []
    needs_script = during == "script" or any(effect.get(name) for name in ONLY_IN_A_SCRIPT)
    in_config = stands_in_config(finding, pairing)
    is_about_config = area not in ABOUT_SCRIPTS or (in_config and during in PHASES)
    if pairing.script is None:
        if is_about_config and not needs_script:
            return [CONFIG]
        return [LAUNCH] if pairing.launch is not None and area == "launch" else []
    if needs_script:
        return [SCRIPT]
    is_about_config = is_about_config and in_config
    if during in PHASES and (not is_about_config or area == "huggingface"):
        return [CONFIG, SCRIPT]
    return [CONFIG] if is_about_config else [SCRIPT]


def stands_in_config(finding: Finding, pairing: Pairing) -> bool:
    """Whether a finding stands in the run's config, or in the Accelerate file that holds it."""
    config, place = pairing.config, finding.location
    if pairing.accelerate is not None and place.source.path == pairing.accelerate.source.path:
        return True
    if isinstance(config, Source):
        return place.source.path == config.path
    if not isinstance(config, Document) or place.source.path != config.source.path:
        return False
    spans = [config.values[()], *config.keys.values(), *config.values.values()]
    return any(span.start <= place.span.start and place.span.end <= span.end for span in spans)

"""What a rule claims of its example scripts and launch commands, held against what really came of them."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dslint.smoke.script_outcome import Outcome
from dslint.smoke.script_trial import SCRIPT_PHASES

Effect = Mapping[str, Any]
"""The `effect` of a rule file."""

MUST_SHOW = ("ignored", "wrong-result")
"""Effects that are nothing a trial sees by itself: one of SHOWN_BY has to show them."""

SHOWN_BY = (
    "says",
    "shows",
    "like-good",
    "trains-otherwise",
    "trains-nothing",
    "saves-empty",
    "saves-nothing",
    "warns",
)

TOLERANCE = 1e-4
"""Relative difference up to which two sums or norms of parameters count as the same."""


@dataclass(frozen=True)
class TriedScripts:
    """What the sides of an example came to.

    Attributes:
        bad: the outcome of the side that breaks the rule.
        good: the outcome of the side that keeps it.
    """

    bad: Outcome
    good: Outcome


def complaints(effect: Effect, tried: TriedScripts) -> list[str]:
    """Where the trials contradict the effect that a rule claims, or don't show it."""
    found = [*_about_the_end(effect, tried.bad)]
    if not tried.good.ended:
        found.append(f"the good example fails: {told(tried.good)}")
    return found or [*_about_the_training(effect, tried), *_about_the_rest(effect, tried)]


def _about_the_end(effect: Effect, bad: Outcome) -> Iterator[str]:
    """Whether the bad side ended as claimed."""
    if effect.get("hangs"):
        if not bad.hung:
            yield f"the bad example should hang, but {told(bad)}"
    elif "raises" in effect:
        yield from _not_raised(effect["raises"], effect.get("during", "script"), bad)
    elif "exits" in effect:
        if bad.exception != "SystemExit" or bad.code != effect["exits"]:
            yield f"the bad example should exit with {effect['exits']}, but {told(bad)}"
    elif not bad.ended:
        yield f"the bad example should run to its end, but {told(bad)}"
    if "message" in effect and not tells(effect["message"], f"{bad.message}\n{bad.output}"):
        yield f"nothing says {effect['message']!r}: {told(bad)}"


def tells(piece: str, text: str) -> bool:
    """Whether a text holds a piece, or something that it is a regular expression for."""
    with contextlib.suppress(re.error):
        return piece in text or re.search(piece, text) is not None
    return False


def _not_raised(name: str, during: str, bad: Outcome) -> Iterator[str]:
    if not bad.raised(name):
        yield f"the bad example should raise {name}, but {told(bad)}"
    elif during == "launch" and SCRIPT_PHASES.index(bad.phase) > SCRIPT_PHASES.index("launch"):
        yield f"the bad example should fail when it is launched, but {told(bad)}"


def _about_the_training(effect: Effect, tried: TriedScripts) -> Iterator[str]:
    if effect.get("trains-nothing"):
        if not tried.bad.engines or trains(tried.bad):
            yield f"the bad example should train nothing, but {_training(tried.bad)}"
        if not trains(tried.good):
            yield f"the good example should train, but {_training(tried.good)}"
    if effect.get("trains-otherwise") and same_parameters(tried.bad, tried.good) is not False:
        yield "both examples end with the same parameters, or none can be seen"
    if effect.get("like-good") and same_parameters(tried.bad, tried.good) is not True:
        yield "the examples should end with the same parameters, but don't"
    if effect.get("not-deepspeed"):
        if tried.bad.engines:
            yield "the bad example should run without DeepSpeed, but makes an engine"
        if not tried.good.engines:
            yield "the good example should make an engine, but makes none"


def _about_the_rest(effect: Effect, tried: TriedScripts) -> Iterator[str]:
    if effect.get("saves-empty"):
        yield from _not_saved_empty(tried)
    if effect.get("saves-nothing"):
        if saved(tried.bad):
            yield f"the bad example should save nothing, but saves {', '.join(saved(tried.bad))}"
        if not saved(tried.good):
            yield "the good example saves nothing either"
    if effect.get("warns") and not set(tried.bad.warned) - set(tried.good.warned):
        yield "nothing is warned of in the bad example that isn't in the good one"
    for key, value in effect.get("says", {}).items():
        yield from _not_shown("say", key, value, tried.bad.said, tried.good.said)
    for key, value in effect.get("shows", {}).items():
        yield from _not_shown("show", key, value, settings_of(tried.bad), settings_of(tried.good))
    if any(effect.get(name) for name in MUST_SHOW) and not any(name in effect for name in SHOWN_BY):
        yield f"nothing shows the effect: for a script it needs one of {', '.join(SHOWN_BY)}"


def _not_shown(verb: str, key: str, value: Any, bad: Mapping[str, Any], good: Mapping[str, Any]) -> Iterator[str]:
    if bad.get(key) != value:
        yield f"the bad example should {verb} {key} as {value}, but it is {bad.get(key)}"
    if good.get(key) == value:
        yield f"the good example {verb}s {key} as {value} too"


# --- training ---


def trains(one: Outcome) -> bool:
    """Whether an engine took a step that moved what it trains."""
    return any(engine["steps"] > 0 and engine["moved"] for engine in one.engines)


def _training(one: Outcome) -> str:
    if not one.engines:
        return "it makes no engine"
    steps = sum(engine["steps"] for engine in one.engines)
    moved = any(engine["moved"] for engine in one.engines)
    return f"it takes {steps} optimizer steps and its parameters {'' if moved else 'do not '}move"


def same_parameters(one: Outcome, other: Outcome) -> bool | None:
    """Whether all engines of two runs end with the same parameters; None where some can't be seen."""
    pairs = [[engine["fingerprint"] for engine in each.engines] for each in (one, other)]
    if not all(pairs) or None in pairs[0] or None in pairs[1]:
        return None
    left, right = ([number for tensors in side for pair in tensors for number in pair] for side in pairs)
    return len(left) == len(right) and all(
        math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=1e-6) for a, b in zip(left, right, strict=True)
    )


def settings_of(one: Outcome) -> dict[str, Any]:
    """What the first engine tells of itself."""
    return {
        **one.settings,
        **(one.engines[0] if one.engines else {}),
        "ranks": one.ranks,
        "engines": len(one.engines),
    }


# --- files ---


def saved(one: Outcome) -> list[str]:
    """The files with tensors, and the parts of checkpoints."""
    return [name for name, file in one.files.items() if file.get("tensors") or file.get("part_of_checkpoint")]


def _not_saved_empty(tried: TriedScripts) -> Iterator[str]:
    bad, good = (amounts_saved(side) for side in (tried.bad, tried.good))
    if not good["tensors"] or good["empty"]:
        amounts = f"{good['tensors']}, {good['empty']} of them empty"
        yield f"the good example should save whole tensors, but saves {amounts}"
    if not wrote_tensors(tried.bad):
        yield "the bad example writes no file of tensors"
    elif not bad["empty"] and bad["tensors"] >= good["tensors"] and bad["elements"] >= good["elements"]:
        yield f"the bad example should save empty tensors or fewer, but saves {bad['tensors']} whole ones"


def amounts_saved(one: Outcome) -> dict[str, int]:
    """How many tensors its files hold, how many of them are empty, and their elements."""
    files = [file for file in one.files.values() if "tensors" in file]
    return {name: sum(file[name] for file in files) for name in ("tensors", "empty", "elements")}


def wrote_tensors(one: Outcome) -> bool:
    """Whether any of its files is made of tensors."""
    return any("tensors" in file for file in one.files.values())


# --- in words ---


def shown(effect: Effect, tried: TriedScripts) -> str:
    """What was seen, in a few words for a table."""
    bad = tried.bad
    if bad.hung:
        return "hangs"
    if bad.code is not None:
        return f"exits with {bad.code} in {bad.phase}"
    if not bad.ended:
        return f"{bad.exception} in {bad.phase}"
    return "runs; " + (", ".join(_details(effect, bad)) or "so does the good example")


def _details(effect: Effect, bad: Outcome) -> Iterator[str]:
    words = {
        "trains-nothing": "trains nothing",
        "trains-otherwise": "ends with other parameters",
        "like-good": "ends with the parameters of the good example",
        "not-deepspeed": "without DeepSpeed",
        "saves-nothing": "saves nothing",
        "warns": "warns",
    }
    for name, text in words.items():
        if effect.get(name):
            yield text
    if effect.get("saves-empty"):
        amounts = amounts_saved(bad)
        yield f"saves {amounts['tensors']} tensors, {amounts['empty']} of them empty"
    for name in ("says", "shows"):
        for key, value in effect.get(name, {}).items():
            yield f"{key.removeprefix('config.')} is {value}"


def told(one: Outcome) -> str:
    """How it ended, in a line."""
    if one.ended:
        return "it runs to its end"
    if one.hung:
        return f"it hangs in {one.phase}: {one.message[:200]}"
    place = f" at {one.where}" if one.where else ""
    return f"{one.exception} during {one.phase}{place}: {one.message[:500]}"

"""What a rule claims of its example configs, held against what real DeepSpeed did with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dslint.smoke.trial import PHASES
from dslint.smoke.verdict import Verdict

Effect = Mapping[str, Any]
"""The `effect` of a rule file."""

QUIET = ("ignored", "wrong-result", "slow", "memory", "advice")
"""Effects of a config that trains; what is wrong with it must show in what the engine tells."""


NOT_DEEPSPEED = "NotDeepSpeedError"
"""What a trial raises where Accelerate would start the run without DeepSpeed."""


@dataclass(frozen=True)
class Tried:
    """What the sides of an example came to.

    Attributes:
        bad: the verdict on the side that breaks the rule.
        good: the verdict on the side that keeps it.
        entries: names of the entries of the bad side that are said to have no effect, as they are once parsed.
        without: gives the verdict on the bad side without them; None if there are none.
    """

    bad: Verdict
    good: Verdict
    entries: tuple[str, ...]
    without: Callable[[], Verdict | None]


def complaints(effect: Effect, tried: Tried) -> list[str]:
    """Where the trials contradict the effect that a rule claims, or don't show it."""
    return [*_about_the_bad(effect, tried), *_about_the_good(effect, tried.good), *_unshown(effect, tried)]


def _about_the_bad(effect: Effect, tried: Tried) -> Iterator[str]:
    bad, latest = tried.bad, effect.get("during", "done")
    name = NOT_DEEPSPEED if effect.get("not-deepspeed") else effect.get("raises")
    if name is None:
        if not bad.trained:
            yield f"the bad example should train, but fails: {told(bad)}"
    elif bad.trained:
        yield f"the bad example should raise {name}, but trains"
    elif not bad.raised(name):
        yield f"the bad example should raise {name}, but fails otherwise: {told(bad)}"
    elif PHASES.index(bad.phase) > PHASES.index(latest):
        yield f"the bad example should fail during {latest} at the latest: {told(bad)}"


def _about_the_good(effect: Effect, good: Verdict) -> Iterator[str]:
    if not good.trained:
        yield f"the good example fails: {told(good)}"
    elif effect.get("saves-nothing") and not good.seen.get("saved"):
        yield "the good example saves nothing either"


def _unshown(effect: Effect, tried: Tried) -> Iterator[str]:
    if not tried.bad.trained or not tried.good.trained:
        return
    if effect.get("saves-nothing") and tried.bad.seen.get("saved") is not False:
        yield "the bad example does save"
    if effect.get("warns") and not warned_more(tried):
        yield "DeepSpeed warns of nothing in the bad example that it doesn't warn of in the good one"
    for name, value in effect.get("shows", {}).items():
        yield from _not_shown(name, value, tried)
    if effect.get("like-good"):
        yield from _unlike(tried)
    elif any(effect.get(name) for name in QUIET) and "shows" not in effect and not _is_seen(effect, tried):
        yield "nothing shows the effect: " + _difference(tried)


def warned_more(tried: Tried) -> list[str]:
    """What DeepSpeed warns of in the bad example, and not in the good one."""
    known = set(tried.good.seen.get("warned", ()))
    return [text for text in tried.bad.seen.get("warned", ()) if text not in known]


def _not_shown(name: str, value: Any, tried: Tried) -> Iterator[str]:
    bad, good = (behaviour(side).get(name) for side in (tried.bad, tried.good))
    if bad != value:
        yield f"the bad example should show {name} as {value}, but shows {bad}"
    if good == value:
        yield f"the good example shows {name} as {value} too"


def _unlike(tried: Tried) -> Iterator[str]:
    """Where the bad example, which should mean the same as the good one, trains otherwise."""
    if names := differences(tried, tried.good):
        yield f"the bad and the good example should train the same, but differ in {', '.join(names[:5])}"


def _is_seen(effect: Effect, tried: Tried) -> bool:
    return bool(effect.get("memory") and _takes_more_memory(tried)) or _makes_no_difference(tried)


def _takes_more_memory(tried: Tried) -> bool:
    """Whether the bad example holds at least half as much again on the GPU as the good one."""
    bad, good = (max(side.peak_memory, default=0) for side in (tried.bad, tried.good))
    return bad > 1.5 * good > 0


def _makes_no_difference(tried: Tried) -> bool:
    """Whether DeepSpeed trains the bad example in the same way with and without the entry."""
    without = tried.without()
    return without is not None and without.trained and not differences(tried, without)


def _difference(tried: Tried) -> str:
    without = tried.without()
    if without is None:
        return "the finding points at no entry that could be left out"
    if not without.trained:
        return f"without the entry it fails: {told(without)}"
    return f"with and without the entry differ {', '.join(differences(tried, without)[:5])}"


def differences(tried: Tried, other: Verdict) -> list[str]:
    """What differs from the bad training, beside the entry itself where the parsed config echoes it."""
    left, right = (behaviour(verdict) for verdict in (tried.bad, other))
    names = [name for name in sorted({*left, *right}) if left.get(name) != right.get(name)]
    return [
        name
        for name in names
        if not (name.startswith("config.") and any(entry in name for entry in tried.entries))
    ]


BEHAVIOUR = ("losses", "rates", "norm", "moved", "skipped", "saved", "loss_scale", "computed")
"""What of a training must not change where an entry is ignored, beside the settings."""


def behaviour(verdict: Verdict) -> dict[str, Any]:
    """How a training went, by name: the engine's settings, and BEHAVIOUR."""
    seen = verdict.seen
    finite = all(loss is not None for loss in verdict.losses)
    told = {name: seen.get(name) for name in BEHAVIOUR}
    return {**seen.get("settings", {}), **seen.get("traces", {}), **told, "finite": finite}


def shown(effect: Effect, tried: Tried) -> str:
    """What was seen, in a few words for a table."""
    bad = tried.bad
    if effect.get("not-deepspeed"):
        return "Accelerate starts the run without DeepSpeed"
    if not bad.trained:
        return f"{bad.exception} in {bad.phase}"
    if effect.get("saves-nothing"):
        return "trains; save_16bit_model writes nothing"
    if "shows" in effect:
        return "trains; " + ", ".join(f"{_short(name)} is {value}" for name, value in effect["shows"].items())
    if effect.get("warns"):
        return "trains; DeepSpeed warns"
    if effect.get("like-good"):
        return "trains the same as the good example"
    if effect.get("memory") and _takes_more_memory(tried):
        return "trains; holds far more memory on the GPU"
    return "trains the same with and without the entry"


def _short(name: str) -> str:
    return name.removeprefix("config.")


def told(verdict: Verdict) -> str:
    """A failure in a line."""
    return f"{verdict.exception} during {verdict.phase}: {verdict.message[:500]}"

"""What the trial of a config shows of the effect that a finding predicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dslint.smoke.confirm.sight import NOT_REPRODUCED, NOT_RUN, SEEN, Sight, first_line, without_own_folders
from dslint.smoke.proofs.config_evidence import NOT_DEEPSPEED, Effect, Tried, behaviour, differences, warned_more
from dslint.smoke.trial import PHASES
from dslint.smoke.verdict import DIED, HANGS, Verdict


def look(effect: Effect, tried: Tried, *, has_fix: bool) -> Sight:
    """Hold the effect against the run with the finding in it.

    Args:
        effect: the rule's.
        tried: the run with the finding as `bad`; as `good` the run with the fix, or the same where there is none.
        has_fix: whether there is one.
    """
    name = NOT_DEEPSPEED if effect.get("not-deepspeed") else effect.get("raises")
    after = tried.good if has_fix else None
    if name is not None:
        return _look_for_exception(str(name), effect.get("during", "done"), tried, after)
    if not tried.bad.trained:
        return _other_failure("no exception", tried.bad, after)
    sights = list(_look_at_training(effect, tried, after))
    if not sights:
        return Sight(NOT_RUN, "nothing that a few steps show would tell it")
    failed = next((sight for sight in sights if sight.verdict != SEEN), None)
    return failed or Sight(SEEN, ", and ".join(sight.told for sight in sights))


def trouble_after(effect: Effect, after: Verdict) -> str | None:
    """Why the run with the fix is not as it should be; None if it trains, saves and loads."""
    if not after.passed:
        return f"with the fix {ended(after)}"
    if effect.get("saves-nothing") and not after.seen.get("saved"):
        return "with the fix save_16bit_model writes nothing either"
    if "shows" in effect:
        shown = behaviour(after)
        same = [name for name, value in effect["shows"].items() if shown.get(name) == value]
        if same:
            return f"with the fix {_short(same[0])} is still {shown[same[0]]}"
    return None


def ended(one: Verdict) -> str:
    """How a training ended, for the middle of a sentence."""
    if one.passed:
        return "it trains, saves and loads"
    if one.exception is not None and one.exception not in (DIED, HANGS):
        return f"{one.exception} ends it during {one.phase}: {first_line(one.message)}"
    return first_line(one.reason)


# --- exceptions ---


def _look_for_exception(name: str, during: str, tried: Tried, after: Verdict | None) -> Sight:
    bad = tried.bad
    if bad.trained:
        return Sight(NOT_REPRODUCED, f"no {name} comes: {ended(bad)}")
    is_late = during in PHASES and PHASES.index(bad.phase) > PHASES.index(during)
    if is_late:
        return Sight(NOT_REPRODUCED, f"no {name} comes during {during}: {ended(bad)}")
    if not bad.raised(name):
        return _other_failure(name, bad, after)
    if after is not None and same_failure(bad, after):
        return Sight(NOT_RUN, f"something else ends the run, with the fix as well: {ended(bad)}")
    other = tried.without() if after is None else None
    if other is not None and same_failure(bad, other):
        return Sight(NOT_RUN, f"something else ends the run, also without the entry: {ended(bad)}")
    return Sight(SEEN, ended(bad))


def _other_failure(expected: str, bad: Verdict, after: Verdict | None) -> Sight:
    """The run ended in another way than predicted: by another fault, unless it is gone with the fix."""
    if bad.exception == HANGS:
        return Sight(NOT_RUN, ended(bad))
    if after is not None and after.trained:
        return Sight(NOT_REPRODUCED, f"{ended(bad)}, where {expected} was predicted")
    return Sight(NOT_RUN, f"another failure ends the run first: {ended(bad)}")


def same_failure(one: Verdict, other: Verdict) -> bool:
    """Whether two trainings ended at the same place with the same message."""
    left, right = (
        (each.exception, each.phase, without_own_folders(first_line(each.message))) for each in (one, other)
    )
    return one.exception is not None and left == right


# --- trainings ---


def _look_at_training(effect: Effect, tried: Tried, after: Verdict | None) -> Iterator[Sight]:
    if effect.get("saves-nothing"):
        yield _look_at_save(tried.bad)
    for name, value in effect.get("shows", {}).items():
        yield _look_at_setting(name, value, tried.bad, after)
    if effect.get("like-good"):
        yield _look_for_likeness(tried, after)
    if effect.get("warns"):
        yield _look_at_warnings(tried, after)
    if (effect.get("ignored") or effect.get("wrong-result")) and "shows" not in effect:
        yield _look_for_difference(tried, after)


def _look_at_save(bad: Verdict) -> Sight:
    saved = bad.seen.get("saved")
    if saved is False:
        return Sight(SEEN, "it trains, and save_16bit_model writes nothing")
    return Sight(NOT_REPRODUCED, "save_16bit_model writes the weights")


def _look_at_setting(name: str, predicted: Any, bad: Verdict, after: Verdict | None) -> Sight:
    """A setting that a rule's examples show; a number in it may be the example's, and not this run's."""
    value = behaviour(bad).get(name)
    if value == predicted:
        return Sight(SEEN, f"it trains, and {_short(name)} is {value}")
    if isinstance(predicted, bool | str):
        return Sight(NOT_REPRODUCED, f"{_short(name)} is {value}, where {predicted} was predicted")
    fixed = "" if after is None else f" (with the fix {behaviour(after).get(name)})"
    return Sight(NOT_RUN, f"the rule tells {_short(name)} for its example only; in this run it is {value}{fixed}")


def _look_for_likeness(tried: Tried, after: Verdict | None) -> Sight:
    if after is None:
        return Sight(NOT_RUN, "there is no run with a fix to compare it with")
    if not after.trained:
        return Sight(NOT_RUN, f"there is nothing to compare it with: with the fix {ended(after)}")
    names = differences(tried, after)
    if names:
        return Sight(NOT_REPRODUCED, f"with the fix it trains otherwise: {_listed(names)} differ")
    return Sight(SEEN, "it trains the same with the fix")


def _look_at_warnings(tried: Tried, after: Verdict | None) -> Sight:
    if after is None:
        return Sight(NOT_RUN, "only a run with a fix could tell whether a warning is due to it")
    if not after.trained:
        return Sight(NOT_RUN, f"there is nothing to compare it with: with the fix {ended(after)}")
    warned = warned_more(tried)
    if not warned:
        return Sight(NOT_REPRODUCED, "it trains, and nothing is warned of that isn't with the fix too")
    return Sight(SEEN, f"it trains, and warns: {first_line(warned[0])}")


def _look_for_difference(tried: Tried, after: Verdict | None) -> Sight:
    """Whether the training is the same without the entry at which the finding stands."""
    other = tried.without()
    if other is not None:
        if not other.trained:
            return Sight(NOT_RUN, f"there is nothing to compare it with: without the entry {ended(other)}")
        names = differences(tried, other)
        if names:
            return Sight(NOT_REPRODUCED, f"the entry has an effect: without it {_listed(names)} differ")
        return Sight(SEEN, f"it trains the same with and without {_listed(tried.entries)}")
    if after is not None and after.trained and not differences(tried, after):
        return Sight(SEEN, "it trains the same with the fix")
    return Sight(NOT_RUN, "the finding stands at no entry that could be left out to see whether it matters")


def _listed(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(_short(name) for name in list(dict.fromkeys(names))[:3])


def _short(name: str) -> str:
    return name.removeprefix("config.")

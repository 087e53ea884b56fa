"""What the run of a user's script, or of its launch command, shows of the effect that a finding predicts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dslint.smoke.confirm.sight import (
    MIRROR,
    NOT_REPRODUCED,
    NOT_RUN,
    SEEN,
    Sight,
    first_line,
    without_own_folders,
)
from dslint.smoke.peers.in_words import places
from dslint.smoke.planning import CannotPlanError
from dslint.smoke.proofs.script_evidence import (
    Effect,
    amounts_saved,
    same_parameters,
    saved,
    settings_of,
    tells,
    trains,
    wrote_tensors,
)
from dslint.smoke.script_outcome import Outcome
from dslint.smoke.verdict import DIED, HANGS, LONGEST_START


@dataclass(frozen=True)
class TriedRuns:
    """A run of a script with a finding in it, and what it can be compared with.

    Attributes:
        before: the run.
        after: the run with the fix; None where there is none.
        again: gives the first run once more, for what has to be the same each time.
        is_there: whether the place where an exception came out, as Outcome.where tells it, is the finding's.
    """

    before: Outcome
    after: Outcome | None
    again: Callable[[], Outcome]
    is_there: Callable[[str | None], bool]


def look(effect: Effect, tried: TriedRuns) -> Sight:
    """Hold the effect against the run with the finding in it."""
    before = tried.before
    if effect.get("hangs"):
        return _look_for_standstill(tried)
    if "raises" in effect or "exits" in effect:
        return _look_for_failure(effect, tried)
    if not before.ended:
        return _other_failure("no failure", tried)
    sights = list(_look_at_training(effect, tried))
    if not sights:
        return Sight(NOT_RUN, "nothing that a script does by itself would tell it")
    failed = next((sight for sight in sights if sight.verdict != SEEN), None)
    return failed or Sight(SEEN, ", and ".join(sight.told for sight in sights))


SEEN_AT_THE_END = ("hangs", "raises", "exits")
SEEN_ALONE = ("not-deepspeed", "trains-nothing", "saves-empty", "saves-nothing", "shows")
SEEN_BY_COMPARISON = ("trains-otherwise", "like-good", "warns")
"""Effects that a run of a user's script can show: by how it ends, by what it does, beside the run with the fix."""


def refuse_unseen(effect: Effect, *, has_fix: bool) -> None:
    """See that a run can show an effect, before a script is executed for it.

    Raises:
        CannotPlanError: if it can't.
    """
    if any(effect.get(name) for name in SEEN_BY_COMPARISON) and not has_fix:
        raise CannotPlanError("only beside a run with a fix it could be seen")
    if not any(effect.get(name) is not None for name in (*SEEN_AT_THE_END, *SEEN_ALONE, *SEEN_BY_COMPARISON)):
        raise CannotPlanError("nothing that a script does by itself would tell it")


def trouble_after(effect: Effect, after: Outcome) -> str | None:
    """Why the run with the fix is not as it should be; None if it trains."""
    if not after.ended:
        return f"with the fix {ended(after)}"
    stands_still = after.cut and _steps_of(after) >= LONGEST_START and not trains(after)
    if stands_still or (effect.get("trains-nothing") and not trains(after)):
        return f"with the fix {training(after)}"
    if effect.get("not-deepspeed") and not after.engines:
        return "with the fix it makes no engine either"
    if effect.get("saves-empty") and (not wrote_tensors(after) or amounts_saved(after)["empty"]):
        return "with the fix it saves no whole tensors either"
    if effect.get("saves-nothing") and not saved(after):
        return "with the fix it saves nothing either"
    for name, value in effect.get("shows", {}).items():
        if settings_of(after).get(name) == value:
            return f"with the fix {name} is still {value}"
    return None


def went(one: Outcome) -> str:
    """How a run went that ended well, for the middle of a sentence."""
    return f"it takes {_steps(one)}" if one.cut or _steps_of(one) else "it runs to its end"


def ended(one: Outcome) -> str:
    """How a run ended, for the middle of a sentence."""
    if one.cut:
        return f"it goes on after {_steps(one)}"
    if one.ended:
        return "it runs to its end"
    if waits(one):
        return f"its ranks wait for each other{_places(one) or _stand(one)}"
    if one.exception == HANGS:
        return f"it comes to no end in time{_stand(one)}"
    if one.exception == DIED:
        return f"a process dies ({one.message})"
    if one.code is not None:
        return f"it exits with {one.code} during {one.phase}"
    place = f" at {one.where}" if one.where else ""
    outside = " (a script that is only tried may write in its own folder alone)" * one.raised("PermissionError")
    return f"{one.exception} ends it{place}: {first_line(one.message)}{outside}"


def waits(one: Outcome) -> bool:
    """Whether ranks wait for each other, and don't merely take longer than a trial may."""
    return one.hung and (one.exception != HANGS or one.idle)


def _stand(one: Outcome) -> str:
    return " (the launcher)" if one.phase == "launch" else ""


def _places(one: Outcome) -> str:
    """Where its ranks wait, by the user's own paths."""
    told = MIRROR.sub("", places(one.standing)).replace(os.path.join(os.getcwd(), ""), "")
    return f" ({told})" if told else ""


def _steps(one: Outcome) -> str:
    count = _steps_of(one)
    return f"{count} optimizer step{'' if count == 1 else 's'}"


def _steps_of(one: Outcome) -> int:
    return max((engine["steps"] for engine in one.engines), default=0)


# --- the end ---


def _look_for_standstill(tried: TriedRuns) -> Sight:
    before, after = tried.before, tried.after
    if waits(before):
        if after is not None and waits(after):
            return Sight(NOT_RUN, "something else makes its ranks wait for each other, with the fix as well")
        return Sight(SEEN, ended(before))
    if before.cut or before.exception == HANGS:
        return Sight(NOT_RUN, f"no standstill so far: {ended(before)}")
    return _not_come("no standstill", tried)


def _look_for_failure(effect: Effect, tried: TriedRuns) -> Sight:
    before, after = tried.before, tried.after
    name = str(effect.get("raises", f"exit code {effect.get('exits')}"))
    if not _is_predicted(effect, before):
        return _not_come(name, tried)
    if after is not None and same_failure(before, after):
        return Sight(NOT_RUN, f"something else ends the run, with the fix as well: {ended(before)}")
    if after is None and "message" not in effect and not tried.is_there(before.where):
        return Sight(NOT_RUN, f"it can't be told whether this is why it fails: {ended(before)}")
    return Sight(SEEN, ended(before))


def _is_predicted(effect: Effect, before: Outcome) -> bool:
    """Whether a run failed with the exception, or the exit code, and the message that were predicted."""
    if before.ended:
        return False
    if "message" in effect and not tells(effect["message"], f"{before.message}\n{before.output}"):
        return False
    if effect.get("during") == "launch" and before.phase not in ("start", "launch"):
        return False
    if "raises" in effect:
        return before.raised(effect["raises"])
    return before.exception == "SystemExit" and before.code == effect["exits"]


def _not_come(expected: str, tried: TriedRuns) -> Sight:
    """What was predicted of the end didn't come."""
    before = tried.before
    if before.cut:
        return Sight(NOT_RUN, f"no {expected} so far: {ended(before)}".replace("no no ", "no "))
    if before.ended:
        return Sight(NOT_REPRODUCED, f"no {expected} comes: {ended(before)}".replace("no no ", "no "))
    return _other_failure(expected, tried)


def _other_failure(expected: str, tried: TriedRuns) -> Sight:
    """The run ended in another way than predicted: by another fault, unless it is gone with the fix."""
    before, after = tried.before, tried.after
    if before.exception == HANGS and not before.idle:
        return Sight(NOT_RUN, ended(before))
    if after is not None and after.ended:
        return Sight(NOT_REPRODUCED, f"{ended(before)}, where {expected} was predicted")
    return Sight(NOT_RUN, f"another failure ends the run first: {ended(before)}")


def same_failure(one: Outcome, other: Outcome) -> bool:
    """Whether two runs ended with the same exception and message."""
    left, right = ((each.exception, without_own_folders(first_line(each.message))) for each in (one, other))
    return one.exception is not None and left == right and one.code == other.code


# --- what was trained and saved ---


def _look_at_training(effect: Effect, tried: TriedRuns) -> Iterator[Sight]:
    if effect.get("not-deepspeed"):
        yield _is_without_engine(tried.before)
    if effect.get("trains-nothing"):
        yield _look_for_movement(tried)
    if effect.get("trains-otherwise"):
        yield _compare(tried, alike=False)
    if effect.get("like-good"):
        yield _compare(tried, alike=True)
    if effect.get("saves-empty"):
        yield _look_at_tensors(tried)
    if effect.get("saves-nothing"):
        yield _look_at_files(tried.before)
    if effect.get("warns"):
        yield _look_at_warnings(tried)
    for name, value in effect.get("shows", {}).items():
        yield _look_at_setting(name, value, tried.before)


def _is_without_engine(before: Outcome) -> Sight:
    if before.engines:
        return Sight(NOT_REPRODUCED, "it trains with DeepSpeed")
    return Sight(SEEN, "it runs without DeepSpeed")


def training(one: Outcome) -> str:
    """Its steps, and whether they move anything, for the middle of a sentence."""
    moves = any(engine["moved"] for engine in one.engines)
    return f"it takes {_steps(one)}, and its parameters {'' if moves else 'do not '}move"


def _look_for_movement(tried: TriedRuns) -> Sight:
    before = tried.before
    if not before.engines or any(engine["moved"] is None for engine in before.engines):
        return Sight(NOT_RUN, f"{ended(before)}, and whether its parameters move can't be seen")
    if trains(before):
        return Sight(NOT_REPRODUCED, training(before))
    is_short = _steps_of(before) < LONGEST_START
    if before.cut and is_short and (tried.after is None or not trains(tried.after)):
        return Sight(NOT_RUN, f"{training(before)} yet, as in a warm-up")
    return Sight(SEEN, training(before))


def _compare(tried: TriedRuns, *, alike: bool) -> Sight:
    before, after = tried.before, tried.after
    if after is None:
        return Sight(NOT_RUN, "only a run with a fix could tell whether it ends with other parameters")
    if not after.ended:
        return Sight(NOT_RUN, f"there is nothing to compare it with: with the fix {ended(after)}")
    same = same_parameters(before, after)
    if same is None:
        return Sight(NOT_RUN, "the parameters that it ends with can't be seen")
    if same is alike:
        return _compared(tried, alike=alike)
    if before.cut and not alike:
        return Sight(NOT_RUN, f"after {_steps(before)} the parameters are still the same as with the fix")
    return Sight(NOT_REPRODUCED, f"it ends with {'the same' if same else 'other'} parameters, with the fix or not")


def _compared(tried: TriedRuns, *, alike: bool) -> Sight:
    if not alike and same_parameters(tried.before, tried.again()) is not True:
        return Sight(NOT_RUN, "two runs of it don't end alike, so none can be compared with one with the fix")
    which = "the same parameters as" if alike else "other parameters than"
    return Sight(SEEN, f"after {_steps(tried.before)} it has {which} with the fix")


def _look_at_tensors(tried: TriedRuns) -> Sight:
    before, after = tried.before, tried.after
    amounts = amounts_saved(before)
    if amounts["empty"]:
        return Sight(SEEN, f"{amounts['empty']} of the {amounts['tensors']} tensors that it saves are empty")
    if before.cut or not wrote_tensors(before):
        return Sight(NOT_RUN, f"it has saved no tensors: {ended(before)}")
    fewer = after is not None and any(
        amounts[name] < amounts_saved(after)[name] for name in ("tensors", "elements")
    )
    if fewer and after is not None:
        return Sight(SEEN, f"it saves {amounts['elements']} elements of {amounts_saved(after)['elements']}")
    return Sight(NOT_REPRODUCED, f"it saves {amounts['tensors']} tensors, none of them empty")


def _look_at_files(before: Outcome) -> Sight:
    names = saved(before)
    if names:
        return Sight(NOT_REPRODUCED, f"it saves {', '.join(names[:3])}")
    if before.cut:
        return Sight(NOT_RUN, f"it has saved nothing yet: {ended(before)}")
    return Sight(SEEN, "it runs to its end and saves nothing")


def _look_at_warnings(tried: TriedRuns) -> Sight:
    if tried.after is None or not tried.after.ended:
        return Sight(NOT_RUN, "only a run with a fix could tell whether a warning is due to it")
    more = [text for text in tried.before.warned if text not in tried.after.warned]
    if not more:
        return Sight(NOT_REPRODUCED, "nothing is warned of that isn't with the fix too")
    return Sight(SEEN, f"it warns: {first_line(more[0])}")


def _look_at_setting(name: str, predicted: Any, before: Outcome) -> Sight:
    value = settings_of(before).get(name)
    if value == predicted:
        return Sight(SEEN, f"{name} is {value}")
    if isinstance(predicted, bool | str):
        return Sight(NOT_REPRODUCED, f"{name} is {value}, where {predicted} was predicted")
    return Sight(NOT_RUN, f"the rule tells {name} for its example only; in this run it is {value}")

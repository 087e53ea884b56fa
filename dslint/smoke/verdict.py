"""The verdict of a trial: what real DeepSpeed did, and whether that is what one wants."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dslint.smoke.leftovers import about_old_lock
from dslint.smoke.listening import Heard
from dslint.smoke.peers.first_failure import how_well, is_left_alone, standings
from dslint.smoke.peers.in_words import headline, left_behind, line_of
from dslint.smoke.peers.standing import DIED as GONE
from dslint.smoke.peers.standing import ENDED, Standing

DIED, HANGS = "Died", "Timeout"
"""Stand in for an exception class where a rank ended, or had to be ended, without one."""


@dataclass(frozen=True)
class Verdict:
    """What a trial came to.

    Attributes:
        mode: "simulated" (rank 0 of a fake group) or "real".
        ranks: number of ranks.
        failure: what went wrong in one word (see FAILURES), or None if the config trains, saves and loads.
        reason: the failure in a sentence; empty if there is none.
        notes: what to know beside a success or a failure, in sentences.
        phase: where it ended; "done" if it came to the end.
        exception: class of the exception, or DIED or HANGS.
        bases: that class and those it comes from.
        message: the exception's message.
        seen: what rank 0 (of several: the one that failed first) told: losses, rates, batch, zero_stage, ….
        losses: the mean loss of each accumulation cycle; None where it isn't finite.
        peak_memory: the most bytes held on the GPU, by rank; empty without one.
        seconds: how long each phase took.
        built: seconds that each op's build or loading took.
        output: the end of what was printed.
        stacks: where each rank stood when it had to be ended, as it was told.
        standing: where each rank stands, or was left, if one raised, died or had to be ended.
    """

    mode: str
    ranks: int
    failure: str | None
    reason: str
    notes: tuple[str, ...]
    phase: str
    exception: str | None
    bases: tuple[str, ...]
    message: str
    seen: Mapping[str, Any]
    losses: tuple[float | None, ...]
    peak_memory: tuple[int, ...]
    seconds: Mapping[str, float]
    built: Mapping[str, float]
    output: str
    stacks: tuple[str, ...]
    standing: tuple[Standing, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether it trained, saved and loaded as it should."""
        return self.failure is None

    @property
    def trained(self) -> bool:
        """Whether DeepSpeed came to the end without an exception, whatever the result is worth."""
        return self.phase == "done" and self.exception is None

    def raised(self, name: str) -> bool:
        """Whether it ended with this exception class or a subclass of it."""
        return name in self.bases


FAILURES: Mapping[str, str] = {
    "exception": "an exception ended it",
    "died": "a process died",
    "hang": "a process had to be ended",
    "flood": "it printed without end",
    "loss": "a loss isn't finite",
    "unequal": "the ranks' losses differ",
    "overflow": "every step overflowed",
    "standstill": "no parameter moved",
    "weights": "the saved weights are not the model's",
    "restore": "the checkpoint doesn't come back",
}
"""What can go wrong, in one word each."""


def judge(ranks: Sequence[Heard], *, mode: str, world: int, same_batch: bool = True) -> Verdict:
    """The verdict on what the ranks of one trial reported.

    Args:
        ranks: what was heard, by rank; only rank 0 in a simulation.
        mode: "simulated" or "real".
        world: number of ranks that DeepSpeed believed in.
        same_batch: whether every rank got the same data, so that their losses have to agree.
    """
    worst = min(ranks, key=how_well)
    real_sums = mode == "real" or world == 1
    failures = _failures(worst, ranks, real_sums=real_sums, same_batch=same_batch)
    failure, reason = next(failures, (None, ""))
    exception, bases, message = _exception(worst)
    peaks = [one.seen.get("peak_memory") for one in ranks]
    return Verdict(
        mode=mode,
        ranks=world,
        failure=failure,
        reason=reason,
        notes=tuple(_notes(worst, ranks)),
        phase=worst.phase,
        exception=exception,
        bases=bases,
        message=message,
        seen={
            key: value
            for key, value in worst.seen.items()
            if key not in ("phase", "exception", "bases", "message", "trace", "ended_at", "failed_at")
        },
        losses=tuple(_number(loss) for loss in worst.seen.get("losses", ())),
        peak_memory=tuple(peak for peak in peaks if peak is not None),
        seconds=worst.seconds(),
        built=worst.built,
        output=worst.output,
        stacks=tuple(one.stack for one in ranks if one.stack),
        standing=standings(ranks) if failure in ("exception", "died", "hang") else (),
    )


def _exception(one: Heard) -> tuple[str | None, tuple[str, ...], str]:
    if one.seen.get("exception") is not None:
        return one.seen["exception"], tuple(one.seen.get("bases", ())), str(one.seen.get("message", ""))
    if one.finished:
        return None, (), ""
    name = DIED if one.in_time else HANGS
    return name, (name,), one.output


def _failures(
    one: Heard, ranks: Sequence[Heard], *, real_sums: bool, same_batch: bool
) -> Iterator[tuple[str, str]]:
    """What went wrong, the most telling first."""
    seen = one.seen
    name, _, _ = _exception(one)
    if name == DIED:
        who = "the process" if len(ranks) == 1 else f"rank {_number_of(one, ranks)}"
        yield "died", f"{who} died during {one.phase} ({_how_it_ended(one.exit_code)})"
    elif name == HANGS and one.flooded:
        yield "flood", f"it printed without end during {one.phase}"
    elif name == HANGS:
        yield "hang", _about_hang(one, ranks)
    elif name is not None:
        yield "exception", _about_exception(one, ranks)
    if real_sums:
        yield from _loss_failures(ranks, same_batch)
    yield from _step_failures(seen)
    yield from _save_failures(seen)


def _about_hang(one: Heard, ranks: Sequence[Heard]) -> str:
    building = f", while the op {one.building} was being built" if one.building else ""
    where = headline(standings(ranks), still=one.idle)
    why = f"nothing moved for {one.idle_for:g} s" if one.idle_for else "no end in time"
    if not where:
        return f"{why}: it stood in {one.phase}{building}"
    if len(ranks) == 1:
        return f"{why} during {one.phase}{building}: {where}"
    return f"{where} (during {one.phase}{building}; {why})"


def _about_exception(one: Heard, ranks: Sequence[Heard]) -> str:
    """The exception, and of several ranks which one had it first; or which rank was missing there."""
    name, _, message = _exception(one)
    all_of_them = standings(ranks)
    if is_left_alone(one) and any(each.state in (ENDED, GONE) for each in all_of_them):
        return f"{left_behind(all_of_them)}, until the connection was closed (during {one.phase})"
    number = _number_of(one, ranks)
    alike = all((each.seen.get("exception"), each.seen.get("message")) == (name, message) for each in ranks)
    on_rank = "" if alike else f" on rank {number}"
    return f"{name}{on_rank} during {one.phase}{line_of(all_of_them[number])}: {message}"


def _number_of(one: Heard, ranks: Sequence[Heard]) -> int:
    return next(number for number, each in enumerate(ranks) if each is one)


def _how_it_ended(code: int | None) -> str:
    if code is None:
        return "nobody saw how"
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _loss_failures(ranks: Sequence[Heard], same_batch: bool) -> Iterator[tuple[str, str]]:
    losses = [one.seen.get("losses") or [] for one in ranks]
    for rank, each in enumerate(losses):
        for step, loss in enumerate(each):
            if _number(loss) is None:
                yield "loss", f"the loss of step {step + 1} on rank {rank} is {loss}"
    if same_batch and any(each != losses[0] for each in losses):
        yield "unequal", f"every rank got the same batch, but the losses differ: {losses}"


def _step_failures(seen: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    count = len(seen.get("losses") or ()) or seen.get("steps", 0)
    if seen.get("ended_early") and not count:
        yield "standstill", "the script ended by itself without an optimizer step"
    elif count and seen.get("skipped", 0) >= count:
        scale = seen.get("loss_scale")
        scale_told = f"; the loss scale is {scale:g} now" if isinstance(scale, float) else ""
        yield (
            "overflow",
            f"all {count} steps overflowed in fp16 and were skipped, so nothing was trained{scale_told}",
        )
    elif seen.get("moved") is False and not _may_be_warming_up(seen):
        why = " since the learning rate was 0" if _without_rate(seen) else ""
        yield "standstill", f"{count} optimizer steps moved no parameter{why}"


LONGEST_START = 5
"""Steps with a learning rate of 0 at which no warm-up explains it: DeepSpeed's leave it at the third step."""


def _without_rate(seen: Mapping[str, Any]) -> bool:
    return all(rate == 0 for rate in seen.get("rates") or [None])


def _may_be_warming_up(seen: Mapping[str, Any]) -> bool:
    """Whether nothing moved since a warm-up has only begun."""
    taken = len(seen.get("rates") or ()) - seen.get("skipped", 0)
    return _without_rate(seen) and taken < LONGEST_START


def _save_failures(seen: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    weights = seen.get("weights")
    if weights and weights["missing"]:
        yield (
            "weights",
            f"the saved weights lack {len(weights['missing'])} tensors, the first: {weights['missing'][0]}",
        )
    if weights and weights["misshapen"]:
        name, shape = next(iter(weights["misshapen"].items()))
        yield (
            "weights",
            f"{len(weights['misshapen'])} saved tensors have another shape than in the model: {name} {shape}",
        )
    if seen.get("loaded") is False:
        yield "restore", "load_checkpoint found nothing to load"
    if seen.get("restored_steps") is False:
        yield "restore", "the checkpoint came back with another number of steps"
    if seen.get("restored_parameters") is False:
        yield "restore", "the checkpoint came back with other parameters than were saved"


def _notes(one: Heard, ranks: Sequence[Heard]) -> Iterator[str]:
    seen = one.seen
    if all(each.seen.get("saved") is False for each in ranks):
        yield (
            "save_16bit_model wrote nothing: under ZeRO stage 3 it needs "
            "stage3_gather_16bit_weights_on_model_save"
            + ("" if seen.get("checkpoint_skipped") else "; save_checkpoint did write this rank's part")
        )
    taken, skipped = len(seen.get("losses") or ()) or seen.get("steps", 0), seen.get("skipped", 0)
    if 0 < skipped < taken:
        yield f"{skipped} of {taken} steps overflowed while the loss scale came down"
    if seen.get("moved") is False and _may_be_warming_up(seen):
        yield "the learning rate was 0 in all steps: whether they move a parameter was not seen; try more --steps"
    if seen.get("redirected"):
        yield f"{', '.join(sorted(set(seen['redirected'])))}: pointed into a temporary folder for the trial"
    yield from _script_notes(seen)


def _script_notes(seen: Mapping[str, Any]) -> Iterator[str]:
    """What there is to know of a user's own script (told by interception.py)."""
    steps = seen.get("steps", 0)
    if seen.get("ended_early") and steps:
        yield (
            f"the script ended by itself after {steps} of {seen.get('wanted_steps')} optimizer steps, "
            "so saving was not tried"
        )
    if steps and not seen.get("losses"):
        yield "the losses are unknown, since the script doesn't hand them to engine.backward"
    if seen.get("engines", 1) > 1:
        yield f"the script made {seen['engines']} engines; the first to take its steps was judged"
    if seen.get("checkpoint_skipped"):
        yield f"save_checkpoint was not tried: {seen['checkpoint_skipped']}"
    if seen.get("weights_skipped"):
        yield f"the saved weights were not compared: {seen['weights_skipped']}"
    if seen.get("old_lock"):
        yield about_old_lock(seen["old_lock"])


def _number(loss: Any) -> float | None:
    return float(loss) if isinstance(loss, int | float) and math.isfinite(loss) else None

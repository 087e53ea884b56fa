"""Counts the optimizer steps of a user's engine, and notes what each of them came to."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from dslint.smoke.rank.inspection import differ, loss_scale, rate
from dslint.smoke.reporting import Reporter
from dslint.smoke.script.sampling import samples

STEPPING = ("step", "train_batch")
"""What takes an optimizer step: a PipelineEngine knows only the second (deepspeed/runtime/pipe/engine.py)."""


class Counter:
    """Wraps the methods of one engine that a training loop calls.

    Attributes:
        engine: the engine.
        steps: optimizer steps taken, those included that overflowed.
    """

    def __init__(self, engine: Any, reporter: Reporter) -> None:
        self.engine = engine
        self.steps = 0
        self._reporter = reporter
        self._losses: list[Any] = []
        self._rates: list[float | None] = []
        self._micro_losses: list[tuple[Any, bool]] = []
        self._skipped = 0
        self._before_any: Any = None
        self._moved: bool | None = None

    @property
    def all_skipped(self) -> bool:
        """Whether every step overflowed."""
        return self._skipped >= self.steps

    def follow(self, before: Callable[[], None], after: Callable[[Counter], None]) -> None:
        """Wrap the engine's methods.

        Args:
            before: called before each call that may take an optimizer step.
            after: called after each optimizer step; may raise.
        """
        for name in STEPPING:
            if hasattr(type(self.engine), name):  # of the instance, the model's attributes would be seen too
                setattr(self.engine, name, self._counted(getattr(self.engine, name), before, after))
        self.engine.backward = self._heard(self.engine.backward)

    def _heard(self, backward: Callable[..., Any]) -> Callable[..., Any]:
        """Keep the loss that is handed to engine.backward."""

        @functools.wraps(backward)
        def heard(loss: Any, *args: Any, **kwargs: Any) -> Any:
            result = backward(loss, *args, **kwargs)
            if getattr(loss, "numel", lambda: 0)() == 1:
                self._micro_losses.append((loss.detach(), bool(kwargs.get("scale_wrt_gas", True))))
            return result

        return heard

    def _counted(
        self, call: Callable[..., Any], before: Callable[[], None], after: Callable[[Counter], None]
    ) -> Callable[..., Any]:
        @functools.wraps(call)
        def counted(*args: Any, **kwargs: Any) -> Any:
            before()
            if self._before_any is None:  # not at initialize: a script may load a checkpoint afterwards
                self._before_any = samples(self.engine)
            now = rate(self.engine)
            steps, skipped = self._numbers()
            result = call(*args, **kwargs)
            if self._numbers()[0] > steps:
                self._take_step(result, now, self._numbers()[1] - skipped)
                after(self)
            return result

        return counted

    def _numbers(self) -> tuple[int, int]:
        """Steps and skipped steps; both go on where a loaded checkpoint left off."""
        return int(self.engine.global_steps), int(getattr(self.engine, "skipped_steps", 0))

    def _take_step(self, result: Any, learning_rate: float | None, skipped: int) -> None:
        if hasattr(result, "detach"):  # train_batch gives the mean loss
            self._micro_losses.append((result.detach(), True))
        self.steps += 1
        self._skipped += skipped
        self._rates.append(learning_rate)
        if self._micro_losses:
            self._losses.append(_mean(self._micro_losses))
            self._micro_losses = []
        self._compare()
        self._reporter.tell(
            losses=self._losses,
            rates=self._rates,
            steps=self.steps,
            skipped=self._skipped,
            moved=self._moved,
            loss_scale=loss_scale(self.engine),
        )

    def _compare(self) -> None:
        """Whether the parameters have moved since before the first step; once they have, the copies go."""
        if not self._moved:
            self._moved = differ(self._before_any, samples(self.engine))
        if self._moved:
            self._before_any = []


def _mean(losses: list[tuple[Any, bool]]) -> float | str:
    """The mean loss over an accumulation cycle, as text if it isn't finite.

    With scale_wrt_gas=False the caller has divided by the number of micro batches (deepspeed/runtime/engine.py,
    DeepSpeedEngine.backward; so does transformers/trainer.py, Trainer.training_step), and the losses add up to it.
    """
    whole = [float(loss) for loss, scaled in losses if scaled]
    parts = [float(loss) for loss, scaled in losses if not scaled]
    mean = (sum(whole) / len(whole) if whole else 0.0) + sum(parts)
    return round(mean, 6) if math.isfinite(mean) else str(mean)

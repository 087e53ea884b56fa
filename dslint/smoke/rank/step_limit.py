"""Ends a script once one of its engines has taken a number of optimizer steps."""

from __future__ import annotations

import random
import sys
from typing import Any

from dslint.smoke.reporting import Reporter
from dslint.smoke.script import trainer_limits
from dslint.smoke.trial import PATIENCE

SEED = 0
"""Two runs of the same script begin with the same random numbers, so that what they end with can be compared."""


class StepsTakenError(SystemExit):
    """Ends the script, as its own exit would: `finally` blocks run, and `except Exception` doesn't catch it."""


class StepLimit:
    """Counts for all engines of a script.

    Hugging Face's Trainer is told to end by itself instead, so that the script goes on behind its training.

    Args:
        steps: how many.
        reporter: who is told.
        to_the_end: whether a script without a Trainer is left to go on too.
    """

    def __init__(self, steps: int, reporter: Reporter, *, to_the_end: bool) -> None:
        self._steps = steps
        self._reporter = reporter
        self._goes_on = to_the_end

    def begin(self) -> None:
        """Shorten the Trainer, which is imported already where there is one, and fix the random numbers."""
        _seed()
        names = ("transformers.training_args", "transformers.trainer")
        arguments, trainer = (sys.modules.get(name) for name in names)
        if arguments is not None and trainer is not None:
            trainer_limits.keep_quiet(arguments)
            trainer_limits.shorten_trainings(trainer, self._steps, PATIENCE, self)

    def tell(self, **seen: Any) -> None:
        """A Trainer has been told to end by itself, after `max_steps`."""
        self._goes_on = True
        self._reporter.tell(**seen)

    def hear(self, steps: int, skipped: int) -> None:
        """An engine has taken so many steps, of which so many overflowed.

        Raises:
            StepsTakenError: if they are enough.
        """
        patience = PATIENCE if skipped >= steps else 0
        if steps >= self._steps + patience and not self._goes_on:
            self._reporter.tell(cut=True)
            raise StepsTakenError(0)


def _seed() -> None:
    import numpy
    import torch

    random.seed(SEED)
    numpy.random.seed(SEED)
    torch.manual_seed(SEED)

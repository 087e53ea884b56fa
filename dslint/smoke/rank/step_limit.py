"""Ends a script once one of its engines has taken a number of optimizer steps."""

from __future__ import annotations

import random
import sys
from types import ModuleType
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
    """

    def __init__(self, steps: int, reporter: Reporter) -> None:
        self._steps = steps
        self._reporter = reporter
        self._trainer_ends = False

    def begin(self) -> None:
        """Shorten what is imported already, and fix the random numbers."""
        seed()
        arguments, trainer = (
            sys.modules.get(f"transformers.{name}") for name in ("training_args", "trainer")
        )
        if isinstance(arguments, ModuleType) and isinstance(trainer, ModuleType):
            trainer_limits.keep_quiet(arguments)
            trainer_limits.shorten_trainings(trainer, self._steps, PATIENCE, _Listening(self))

    def take_trainer(self, max_steps: int) -> None:
        """A Trainer will end by itself."""
        self._trainer_ends = True
        self._reporter.tell(max_steps=max_steps)

    def hear(self, steps: int, skipped: int) -> None:
        """An engine has taken so many steps, of which so many overflowed.

        Raises:
            StepsTakenError: if they are enough.
        """
        patience = PATIENCE if skipped >= steps else 0
        if steps >= self._steps + patience and not self._trainer_ends:
            self._reporter.tell(cut=True)
            raise StepsTakenError(0)

"""What dslint does inside a user's script: follow `deepspeed.initialize`, count steps, try to save, end it."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dslint.smoke.leftovers import shared_memory
from dslint.smoke.rank.watch import Watch
from dslint.smoke.reporting import Reporter, trace_of
from dslint.smoke.script import trainer_limits
from dslint.smoke.script.import_hook import after_import
from dslint.smoke.script.user_builds import follow_builds
from dslint.smoke.trial import PATIENCE

if TYPE_CHECKING:  # they import torch, which the script shall do
    from dslint.smoke.rank.inspection import Shapes
    from dslint.smoke.script.counting import Counter


UNWINDING = 15.0
"""Seconds that a script may take to end once it has been told to; launch.GRACE, when all are killed, is longer."""


class TrialOverError(SystemExit):
    """Ends the script once dslint has seen enough.

    `finally` blocks and context managers run, as at any exit, and `except Exception` doesn't catch it.
    """


class Interception:
    """One rank's view of the script.

    Attributes:
        over: the exit code, once the script has been told to end.
    """

    def __init__(self, reporter: Reporter, folder: Path, steps: int) -> None:
        self.over: int | None = None
        self._reporter = reporter
        self._folder = folder
        self._steps = steps
        self._engines = 0
        self._watch = Watch(reporter, redirect=False)
        self._following = False
        reporter.tell(wanted_steps=steps, shared_memory=shared_memory(os.environ))

    def begin(self) -> None:
        """Wait for the script to import what dslint follows."""
        after_import(
            {
                "deepspeed": self._take_deepspeed,
                "transformers.training_args": trainer_limits.keep_quiet,
                "transformers.trainer": self._take_trainer,
            }
        )

    # --- the end ---

    def fail(self, error: BaseException) -> None:
        """The script raised."""
        self._summarize()
        self._reporter.fail(error)
        self._reporter.finish()
        end_soon(1)

    def end_early(self, error: BaseException | None = None) -> None:
        """The script came to its own end before it took its steps, maybe by a SystemExit."""
        self._summarize()
        if error is not None:
            self._reporter.tell(ended_at=trace_of(error.__traceback__))
        self._reporter.tell(**({"ended_early": True} if self._engines else {"never_initialized": True}))
        self._reporter.finish()
        end_soon(0)

    def _summarize(self) -> None:
        self._reporter.tell(warned=self._watch.warned)
        if self._engines:
            from dslint.smoke.rank.memory_meter import peak_on_gpu

            self._reporter.tell(peak_memory=peak_on_gpu(), engines=self._engines)

    # --- what the script imports ---

    def _take_deepspeed(self, module: ModuleType) -> None:
        """Follow deepspeed.initialize (deepspeed/__init__.py) and the builds of ops."""
        follow_builds(self._watch, self._reporter, self._folder)
        initialize: Callable[..., Any] = module.initialize

        @functools.wraps(initialize)
        def followed(*args: Any, **kwargs: Any) -> Any:
            return self._initialize(initialize, args, kwargs)

        module.initialize = followed  # type: ignore[attr-defined]

    def _take_trainer(self, module: ModuleType) -> None:
        trainer_limits.shorten_trainings(module, self._steps, PATIENCE, self._reporter)

    # --- what the script does ---

    def _initialize(self, initialize: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call deepspeed.initialize, and count the steps of the engine that comes of it."""
        from dslint.smoke.script.counting import Counter
        from dslint.smoke.script.saving import whole_shapes

        if not self._following:  # not before: an own handler of the root logger would disarm logging.basicConfig
            self._following = True
            self._watch.follow_logs()
            self._watch.follow_phases()
        self._watch.config = None
        self._engines += 1
        self._reporter.enter("parse")
        model = inspect.signature(initialize).bind_partial(*args, **kwargs).arguments.get("model")
        shapes = whole_shapes(model)  # before DeepSpeed partitions it
        made = initialize(*args, **kwargs)
        self._reporter.enter("step")
        self._tell_facts(made[0])
        counter = Counter(made[0], self._reporter)
        counter.follow(before=self._before_call, after=functools.partial(self._after_step, shapes))
        return made

    def _tell_facts(self, engine: Any) -> None:
        from dslint.smoke.rank import inspection

        self._reporter.tell(**inspection.versions())
        try:
            self._reporter.tell(**inspection.engine_facts(engine))
        except (AttributeError, StopIteration):  # without an optimizer, or a pipeline's stage without parameters
            self._reporter.tell(facts_unknown=True)

    def _before_call(self) -> None:
        """A script that goes on although it has been told to end is ended here."""
        if self.over is not None:
            _exit_now(self.over)

    def _after_step(self, shapes: Shapes, counter: Counter) -> None:
        """End the script if it has taken its steps, after one try to save."""
        patience = PATIENCE if counter.all_skipped else 0
        if counter.steps < self._steps + patience:
            return
        self.over = self._try_to_save(counter.engine, shapes)
        self._summarize()
        self._reporter.finish()
        end_soon(self.over)
        raise TrialOverError(self.over)

    def _try_to_save(self, engine: Any, shapes: Shapes) -> int:
        """The exit code."""
        from dslint.smoke.script.saving import try_saves

        self._reporter.enter("save")
        try:
            try_saves(engine, shapes, self._folder, self._reporter)
        except Exception as error:
            traceback.print_exc()
            self._reporter.fail(error)
            return 1
        self._reporter.enter("done")
        return 0


def end_soon(status: int) -> None:
    """End this process later, if it doesn't come to its end: a script may wait, or catch what should end it."""
    watchdog = threading.Timer(UNWINDING, _exit_now, [status])
    watchdog.daemon = True
    watchdog.start()


def _exit_now(status: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)

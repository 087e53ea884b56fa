"""The whole of `dslint doctor`: what the configs need, what is there, what is wrong."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from dslint.doctor.asking import NoAnswerError
from dslint.doctor.checks import troubles_of
from dslint.doctor.environment import Environment
from dslint.doctor.gathering import gather
from dslint.doctor.needs import UnreadableConfigError, needs_of
from dslint.doctor.trouble import Trouble


class CannotExamineError(Exception):
    """The examination could not be done; the message says why."""


@dataclass(frozen=True)
class Diagnosis:
    """What was found, and what is wrong with it."""

    environment: Environment
    troubles: tuple[Trouble, ...]

    @property
    def has_errors(self) -> bool:
        """Whether something would stop a run."""
        return any(trouble.severity == "error" for trouble in self.troubles)


def examine(configs: Sequence[str], python: str | None) -> Diagnosis:
    """Examines an environment.

    Args:
        configs: the configs that will be trained with; their needs alone count if there are any.
        python: the interpreter that will train; None for the one that runs dslint.

    Raises:
        CannotExamineError: a config can't be read, or the interpreter can't be asked.
    """
    try:
        env = gather(python or sys.executable, needs_of(configs))
    except NoAnswerError as error:
        raise CannotExamineError(f"--python {error}" if python else str(error)) from None
    except UnreadableConfigError as error:
        raise CannotExamineError(str(error)) from None
    return Diagnosis(env, troubles_of(env))

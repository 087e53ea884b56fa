"""What is wrong with an environment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from dslint.doctor.environment import Environment

Severity = Literal["error", "warning", "hint"]
Subject = Literal[
    "Python", "torch", "CUDA", "DeepSpeed", "GPU", "build tools", "ops folder", "limits", "Hugging Face"
]
SUBJECTS: tuple[Subject, ...] = get_args(Subject)
"""What troubles are about, in the order in which a report shows them."""

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""The worst first."""


@dataclass(frozen=True)
class Trouble:
    """One thing that is wrong.

    Attributes:
        name: a name to refer to it by: "stale-build-lock".
        severity: an error stops a run or makes it another one than asked; a warning may; a hint is advice.
        subject: what it is about.
        message: the fact, then what follows from it.
        remedy: what to do, with the command.
    """

    name: str
    severity: Severity
    subject: Subject
    message: str
    remedy: str


Check = Callable[[Environment], Iterator[Trouble]]

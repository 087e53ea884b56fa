"""What the options of a check come to, for the commands that carry it out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dslint.rulebook.rule import Rule
from dslint.rulebook.rule_text import RuleText
from dslint.runs.run import Options
from dslint.settings.settings import Settings


@dataclass(frozen=True)
class Job:
    """What the options of a check come to.

    Attributes:
        options: what the command line says about the runs.
        rules: the rules that are wanted.
        settings: the project's settings, where it has any.
    """

    options: Options
    rules: Sequence[Rule | RuleText]
    settings: Settings | None

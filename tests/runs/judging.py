"""Which rules fire for a run whose files are given as text."""

from __future__ import annotations

import textwrap
from functools import cache
from pathlib import Path
from typing import Any

from dslint.data import data_folder
from dslint.lint import facts_of
from dslint.rulebook.cases import run_of
from dslint.rulebook.judge import judge
from dslint.rulebook.loader import load_rules
from dslint.rulebook.rule import Rule


@cache
def rules_of(*codes: str) -> tuple[Rule, ...]:
    """The rules whose codes begin so."""
    return tuple(one.rule for one in load_rules(Path(data_folder("rules"))) if one.rule.code.startswith(codes))


def codes(*among: str, script: str | None = None, launch: str | None = None, **case: Any) -> list[str]:
    """The codes of the findings, once each, among the rules whose codes begin so.

    The keys are those of the rules' examples (schemas/rule.schema.json); script and launch may be indented.
    """
    texts = {"script": script, "launch": launch}
    whole = {name: textwrap.dedent(text) for name, text in texts.items() if text is not None} | case
    found = judge(facts_of(run_of(whole)), rules_of(*among)).findings
    return sorted({one.code for one in found})

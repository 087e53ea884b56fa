"""What the fixes of rules make of files that are given as text."""

from __future__ import annotations

import textwrap
from typing import Any

from dslint.fixes.carrying_out import changed_files
from dslint.fixes.edit import CannotEditError
from dslint.lint import facts_of
from dslint.rulebook.cases import run_of
from dslint.rulebook.finding import FindingFix
from dslint.rulebook.judge import judge
from dslint.rulebook.working_out import changes_of
from tests.runs.judging import rules_of


def ways(
    code: str, *, script: str | None = None, launch: str | None = None, **case: Any
) -> tuple[FindingFix, ...]:
    """The ways that are open to mend a rule's first finding; script and launch may be indented."""
    texts = {"script": script, "launch": launch}
    whole = {name: textwrap.dedent(text) for name, text in texts.items() if text is not None} | case
    rules = [rule for rule in rules_of("DS") if rule.code == code]
    found = judge(facts_of(run_of(whole)), rules, changes_of).findings
    assert found, "no finding"
    return found[0].fixes


def mended(code: str, way: int = 1, **case: Any) -> dict[str, str]:
    """The files that a way of a rule changes, by name; none where it isn't open, or can't be made."""
    fix = next((one for one in ways(code, **case) if one.number == way), None)
    if fix is None or fix.obstacle:
        return {}
    try:
        return {before.path: after.data.decode() for before, after in changed_files(fix.changes)}
    except CannotEditError:
        return {}


def tiers(code: str, **case: Any) -> dict[int, str]:
    """The tier of each way that is open, by its number."""
    return {fix.number: fix.tier for fix in ways(code, **case)}

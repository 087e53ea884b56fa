"""Every fix of a rule mends the rule's own bad examples, as the rule file shows it, and does no harm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dslint.data import data_folder
from dslint.documents.config_reader import read_config
from dslint.documents.source import Source
from dslint.fixes.carrying_out import changed_files
from dslint.fixes.edit import CannotEditError
from dslint.lint import facts_of
from dslint.rulebook.cases import GOOD, WORDS, Case, Example, examples, run_of, with_changes, with_files
from dslint.rulebook.finding import Finding, FindingFix
from dslint.rulebook.judge import judge
from dslint.rulebook.loader import RuleFile, load_rules
from dslint.rulebook.rule import Rule
from dslint.rulebook.working_out import changes_of

FILES = load_rules(Path(data_folder("rules")))
RULES = [one.rule for one in FILES]
FIXABLE = [one for one in FILES if any(fix.is_applicable for fix in one.rule.fixes)]
CASES = [
    pytest.param(one.rule, example, number, id=f"{one.rule.code}-{one.rule.name}-{example.name}-{number}")
    for one in FIXABLE
    for example in examples(one.text)
    for number, fix in enumerate(one.rule.fixes, 1)
    if fix.is_applicable
]


def finding_in(rule: Rule, case: Case) -> Finding:
    return judge(facts_of(run_of(case)), [rule], changes_of).findings[0]


def way_of(finding: Finding, number: int) -> FindingFix | None:
    return next((fix for fix in finding.fixes if fix.number == number), None)


def shown(example: Example, number: int) -> Any:
    """What the rule file says that the fix makes of the bad example."""
    assert len(example.fixed) >= number, "the example doesn't show what the fix makes of it: add `fixed`"
    return example.fixed[number - 1]


def mended_texts(fix: FindingFix) -> dict[str, str]:
    if fix.obstacle:
        raise CannotEditError(fix.obstacle)
    return {before.path: after.data.decode() for before, after in changed_files(fix.changes)}


@pytest.mark.parametrize(("rule", "example", "number"), CASES)
def test_the_fix_makes_of_the_bad_example_what_the_rule_shows(rule: Rule, example: Example, number: int) -> None:
    fix, expected = way_of(finding_in(rule, example.bad), number), shown(example, number)
    if expected is None:
        assert fix is None, "this way is open, though the example says that it isn't"
        return
    assert fix is not None, "this way is not open"
    if expected == WORDS:
        with pytest.raises(CannotEditError):
            mended_texts(fix)
        return
    mended = with_files(example.bad, mended_texts(fix))
    wanted = example.good if expected == GOOD else with_changes(example.bad, expected)
    assert contents(mended) == contents(wanted)


def contents(case: Case) -> dict[str, Any]:
    """The files of a case, configs by value where either side gives them as data."""
    parts = {name: case[name] for name in ("script", "launch", "accelerate") if name in case}
    files = dict(case.get("files", {}))
    if "config" in case:
        return {**parts, **files, "config": case["config"]}
    if "text" in case:
        return {**parts, **files, "config": read_config(Source("ds_config.json", case["text"].encode())).value}
    return {**parts, **files}


@pytest.mark.parametrize(("rule", "example", "number"), CASES)
def test_the_mended_example_is_silent_and_has_no_new_error(rule: Rule, example: Example, number: int) -> None:
    fix = way_of(finding_in(rule, example.bad), number)
    if fix is None or shown(example, number) in (None, WORDS):
        return
    mended = with_files(example.bad, mended_texts(fix))
    count = len(judge(facts_of(run_of(example.bad)), [rule]).findings)
    assert len(judge(facts_of(run_of(mended)), [rule]).findings) < count, json.dumps(contents(mended), indent=1)
    assert errors_in(mended) <= errors_in(example.bad)


def errors_in(case: Case) -> set[str]:
    return {one.code for one in judge(facts_of(run_of(case)), RULES).findings if one.severity == "error"}


@pytest.mark.parametrize("one", [pytest.param(one, id=one.rule.code) for one in FILES])
def test_a_rule_shows_fixes_only_where_it_has_some(one: RuleFile) -> None:
    for example in examples(one.text):
        assert not example.fixed or len(example.fixed) == len(one.rule.fixes)

"""Every rule's examples: the bad one fires at the right place, the good one is silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from dslint.data import data_folder
from dslint.lint import facts_of
from dslint.rulebook.cases import Example, examples, run_of
from dslint.rulebook.finding import Finding
from dslint.rulebook.judge import judge
from dslint.rulebook.loader import load_rules
from dslint.rulebook.rule import Rule
from dslint.runs.run import Run

FILES = load_rules(Path(data_folder("rules")))
RULES = [one.rule for one in FILES]
CASES = [
    pytest.param(one.rule, example, id=f"{one.rule.code}-{one.rule.name}-{example.name}")
    for one in FILES
    for example in examples(one.text)
]


def findings_of(rule: Rule, run: Run) -> tuple[Finding, ...]:
    return judge(facts_of(run), [rule]).findings


@pytest.mark.parametrize(("rule", "example"), CASES)
def test_the_bad_example_fires_at_the_right_place(rule: Rule, example: Example) -> None:
    found = findings_of(rule, run_of(example.bad))
    assert found, "the rule is silent on its bad example"
    location = found[0].location
    assert location.span.end > location.span.start or not location.source.data
    if example.marks is not None:
        assert location.source.slice(location.span) == example.marks
    if example.says is not None:
        assert example.says in found[0].message
    assert "unknown value" not in found[0].message


@pytest.mark.parametrize(("rule", "example"), CASES)
def test_the_good_example_is_silent(rule: Rule, example: Example) -> None:
    found = findings_of(rule, run_of(example.good))
    assert not found, found[0].message


@pytest.mark.parametrize(("rule", "example"), CASES)
def test_the_good_example_brings_no_error_of_another_rule(rule: Rule, example: Example) -> None:
    found = judge(facts_of(run_of(example.good)), RULES).findings
    errors = [f"{finding.code} {finding.message}" for finding in found if finding.severity == "error"]
    assert not errors


def test_codes_are_unique_and_areas_are_folders() -> None:
    assert len({rule.code for rule in RULES}) == len(RULES)
    assert all(one.text.area for one in FILES)

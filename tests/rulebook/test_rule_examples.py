"""Every rule's examples: the bad one fires at the right place, the good one is silent, the fix helps."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from dslint.data import data_folder
from dslint.documents.config_reader import read_config
from dslint.documents.source import Source
from dslint.lint import facts_of
from dslint.rulebook.cases import Example, examples, run_of
from dslint.rulebook.expression import evaluate
from dslint.rulebook.finding import Finding
from dslint.rulebook.judge import judge
from dslint.rulebook.loader import load_rules
from dslint.rulebook.rule import Rule
from dslint.runs.facts import Facts
from dslint.runs.run import Run
from dslint.runs.unknown import Unknown

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


@pytest.mark.parametrize(
    ("rule", "example"),
    [case for case in CASES if case.values[0].fix and case.values[0].fix.tier != "display"],
)
def test_the_fix_silences_the_rule(rule: Rule, example: Example) -> None:
    assert rule.fix is not None
    if not (rule.fix.set or rule.fix.delete or rule.fix.rename) or "accelerate" in example.bad:
        pytest.skip("the fix is in words only")
    run = run_of(example.bad)
    mended = apply_to_value(rule, facts_of(run))
    document = read_config(Source("ds_config.json", _as_json(mended).encode()))
    again = findings_of(rule, Run(document, run.accelerate, run.options, run.version))
    assert not again, _as_json(mended)


def _as_json(value: Any) -> str:
    import json

    return json.dumps(value, indent=2)


def apply_to_value(rule: Rule, facts: Facts) -> Any:
    """The config's value after the fix; the text-preserving edits come with `check --fix`."""
    assert rule.fix is not None
    value = deepcopy(facts.document.value)
    for path in _targets(rule, facts, list(rule.fix.delete)):
        _parent(value, path).pop(path[-1], None)
    for name, new in rule.fix.rename.items():
        for path in _targets(rule, facts, [name]):
            section = _parent(value, path)
            section[new] = section.pop(path[-1])
    for name, tree in rule.fix.set.items():
        items = facts.value(rule.each[0]) if rule.each else [None]
        for item in items:
            new = evaluate(tree, facts, item.fields if item else None)
            assert not isinstance(new, Unknown)
            for path in _targets(rule, facts, [name]):
                _parent(value, path)[path[-1]] = new
    return value


def _targets(rule: Rule, facts: Facts, names: list[str]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name in names:
        if rule.each is not None and name == rule.each[1]:
            for item in facts.value(rule.each[0]):
                found += [
                    tuple(map(str, path))
                    for path, span in facts.document.keys.items()
                    if span.start == item.span.start
                ]
        else:
            found.append(tuple(name.split(".")[1:]))
    return found


def _parent(value: Any, path: tuple[str, ...]) -> Any:
    for name in path[:-1]:
        value = value.setdefault(name, {})
    return value


def test_codes_are_unique_and_areas_are_folders() -> None:
    assert len({rule.code for rule in RULES}) == len(RULES)
    assert all(one.text.area for one in FILES)

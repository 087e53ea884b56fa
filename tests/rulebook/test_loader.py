"""Mistakes of a rule's author come out when the rule is loaded, with file, line and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from dslint.rulebook.loader import RuleError, load_rules, rule_from_text

GOOD = """\
code: DS998
name: something-wrong
severity: warning
summary: Something is wrong with the config.
why: DeepSpeed does something that nobody would expect here.
when: zero_stage == 3
at: config.zero_optimization.stage
message: "the stage is {zero_stage}, which is {{odd}}"
effect: {advice: true}
source: deepspeed/runtime/config.py, somewhere
examples:
  - name: one
    bad: {config: {zero_optimization: {stage: 3}}}
    good: {config: {}}
"""


def error_of(text: str) -> str:
    with pytest.raises(RuleError) as caught:
        rule_from_text(text, "rules/x/rule.yaml")
    return str(caught.value)


def test_a_good_rule_is_loaded_and_doubled_braces_are_text() -> None:
    rule = rule_from_text(GOOD).rule
    assert rule.message == ("the stage is ", ["fact", "zero_stage"], ", which is ", "{", "odd", "}")


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        (
            "when: zero_stage == 3",
            "when: zero_stege == 3",
            "6:7:",
            "no fact `zero_stege`: did you mean `zero_stage`?",
        ),
        ("when: zero_stage == 3", "when: zero_stage ==", "6:", "not an expression"),
        ("when: zero_stage == 3", "when: exec('x') == 3", "6:7:", "no function `exec`"),
        (
            "zero_stage == 3",
            "zero_stage == 3 and config.fp16.enabeld",
            "6:27:",
            "did you mean `config.fp16.enabled`?",
        ),
        ("{zero_stage}", "{zero_stag}", "8:25:", "no fact `zero_stag`"),
        ("{{odd}}", "{odd", "8:", "a brace without its partner"),
        ("at: config.zero_optimization.stage", "at: config.zero.stage", "7:5:", "no fact `config.zero.stage`"),
        ("code: DS998", "code: X1", "1:1:", "does not match"),
        ("severity: warning", "severity: fatal", "3:1:", "'fatal' is not one of"),
        ("effect: {advice: true}", "effect: {}", "9:1:", "effect"),
        ("source:", "sauce:", "1:1:", "'source' is a required property"),
        ("summary: Something", "summary: Something\nsummary: Something", "5:1:", "the key `summary` stands twice"),
        (
            "when: zero_stage == 3",
            "when: key.name\neach: keys.unknown as key",
            "6:7:",
            "`key` has no field `name`",
        ),
        (
            "when: zero_stage == 3",
            "when: true\neach: zero_stage as key",
            "7:",
            "is not a list that rules can go through",
        ),
        ("effect:", "deepspeed: latest\neffect:", "9:", "latest"),
        ("when: zero_stage == 3", "when: [", "8:", "not valid YAML"),
    ],
)
def test_a_mistake_is_reported_with_its_place(old: str, new: str, place: str, words: str) -> None:
    assert old in GOOD
    message = error_of(GOOD.replace(old, new, 1))
    assert message.startswith(f"rules/x/rule.yaml:{place}"), message
    assert words in message


def write(folder: Path, name: str, text: str) -> None:
    (folder / "area").mkdir(exist_ok=True)
    (folder / "area" / name).write_text(text)


def test_a_code_that_is_taken_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "DS998-something-wrong.yaml", GOOD)
    write(tmp_path, "DS998-other.yaml", GOOD.replace("name: something-wrong", "name: other"))
    with pytest.raises(RuleError, match=r"DS998 is taken by area/DS998-other\.yaml"):
        load_rules(tmp_path)


def test_a_file_must_be_called_after_its_rule(tmp_path: Path) -> None:
    write(tmp_path, "rule.yaml", GOOD)
    with pytest.raises(RuleError, match=r"must be called DS998-something-wrong\.yaml"):
        load_rules(tmp_path)

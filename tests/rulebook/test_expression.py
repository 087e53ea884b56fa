"""The rule language: its subset of Python, its checks, and Kleene's logic."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dslint.rulebook.expression import ExpressionError, evaluate
from dslint.rulebook.expression_parser import parse
from dslint.runs.unknown import UNDECIDABLE, Unknown, needs

TRUE, FALSE, UNKNOWN = True, False, needs("the number of GPUs (--gpus)")


class FewFacts:
    """A vocabulary and its values in one."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    def is_fact(self, name: str) -> bool:
        return name in self.values

    def near(self, name: str) -> str | None:
        return "stage" if name == "stege" else None

    def value(self, name: str) -> Any:
        return self.values[name]

    def given(self, name: str) -> bool | Unknown:
        return self.values[name] is not None

    def written(self, name: str) -> Any:
        return f"written {name}"


def result(text: str, **values: Any) -> Any:
    facts = FewFacts(**values)
    return evaluate(parse(text, facts), facts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3 - 4", 3),
        ("7 // 2 + 7 % 2", 4),
        ("-stage", -3),
        ("stage == 3 and not name == 'x'", True),
        ("1 < stage <= 3", True),
        ("3 < stage <= 9", False),
        ("name in ['a', 'b']", True),
        ("name not in ('a', 'b')", False),
        ("nothing is None", True),
        ("nothing is not None", False),
        ("lower('ABC')", "abc"),
        ("len('abc') + max(1, 2) + min(1, 2)", 6),
        ("is_number(1) and is_text('x') and is_bool(True) and is_list([1]) and is_whole(2.0)", True),
        ("is_number(True) or is_whole(2.5)", False),
        ("given(stage)", True),
        ("given(nothing)", False),
        ("written(stage)", "written stage"),
    ],
)
def test_expressions_of_known_facts_have_their_python_value(text: str, expected: Any) -> None:
    assert result(text, stage=3, name="a", nothing=None) == expected


TRUTHS = st.sampled_from([TRUE, FALSE, UNKNOWN])


@given(TRUTHS, TRUTHS)
def test_and_or_not_follow_kleene(a: Any, b: Any) -> None:
    order = {False: 0, None: 1, True: 2}

    def rank(value: Any) -> int:
        return order[None if isinstance(value, Unknown) else value]

    assert rank(result("a and b", a=a, b=b)) == min(rank(a), rank(b))
    assert rank(result("a or b", a=a, b=b)) == max(rank(a), rank(b))
    assert rank(result("not a", a=a)) == 2 - rank(a)


@given(TRUTHS, TRUTHS)
def test_order_of_operands_does_not_matter(a: Any, b: Any) -> None:
    assert result("a and b", a=a, b=b) == result("b and a", a=a, b=b)
    assert result("a or b", a=a, b=b) == result("b or a", a=a, b=b)


def test_unknown_operands_make_everything_else_unknown_and_keep_what_is_needed() -> None:
    other = needs("the type of GPU (--gpu)")
    assert result("a * b == 8", a=UNKNOWN, b=other) == UNKNOWN | other
    assert result("a in [1]", a=UNKNOWN) == UNKNOWN


@pytest.mark.parametrize(
    "text", ["'x' < 1", "1 % 0", "1 / 0", "'a' * 3", "len(1)", "lower(1)", "1 in 2", "'a' + 'b'"]
)
def test_operations_that_the_values_do_not_allow_are_undecidable(text: str) -> None:
    assert result(text) == UNDECIDABLE


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("stage == stege", "no fact `stege`: did you mean `stage`?", 10),
        ("stage == )", "not an expression", 10),
        ("stage and missing.name", "no fact `missing.name`", 11),
        ("eval('1')", "no function `eval`", 1),
        ("stage ** 2", "not part of the rule language", 1),
        ("[x for x in stage]", "not part of the rule language", 1),
        ("lambda: 1", "not part of the rule language", 1),
        ("stage.real()", "only plain functions", 1),
        ("given(1)", "takes the name of a fact", 1),
        ("given(stage, stage)", "takes one fact", 1),
        ("b'x'", "can stand for themselves", 1),
        ("stage if stage else 1", "not part of the rule language", 1),
        ("f'{stage}'", "not part of the rule language", 1),
        ("(stage)[0]", "not part of the rule language", 1),
        ("~1", "not part of the rule language", 1),
    ],
)
def test_everything_outside_the_language_is_refused_with_its_column(text: str, message: str, column: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text, FewFacts(stage=1))
    assert message in caught.value.message
    assert caught.value.column == column


def test_fields_of_the_item_are_known_by_its_name() -> None:
    facts = FewFacts(stage=1)
    tree = parse("save.what == 'state_dict'", facts, ("save", frozenset({"what"})))
    assert evaluate(tree, facts, {"what": "state_dict"}) is True
    with pytest.raises(ExpressionError, match="`save` has no field `when`; it has what"):
        parse("save.when", facts, ("save", frozenset({"what"})))


@given(st.text(max_size=40))
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        parse(text, FewFacts(stage=1))
    except ExpressionError as error:
        column = error.column
    else:
        column = 1
    assert column >= 1

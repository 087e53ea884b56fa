"""Mutants: the same everywhere for the same seed, and hurt in every way that is promised."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.realworld.mutations import MISTAKES, Breeder, Mutant, read_section, written

TEXTS = {
    "large.json": json.dumps(
        {
            "train_batch_size": 32,
            "optimizer": {"type": "AdamW", "params": {"lr": 0.001, "betas": [0.9, 0.999]}},
            "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu", "pin_memory": True}},
        }
    ),
    "small.json": '{"train_batch_size": 8, "zero_optimization": {"stage": 1}} // a remark',
    "template.json": '{"train_batch_size": ${BATCH}}',
    "list.json": "[1, 2]",
}


def mutants(count: int = 400) -> Iterator[Mutant]:
    return Breeder(TEXTS).mutants(count)


def test_the_same_seed_makes_the_same_mutants() -> None:
    assert list(mutants()) == list(mutants())
    assert Breeder(TEXTS).mutant("large.json", 7) == Breeder(dict(reversed(TEXTS.items()))).mutant("large.json", 7)


def test_mutants_do_not_change_over_time() -> None:
    mutant = Breeder(TEXTS).mutant("small.json", 8)
    assert mutant.name == "small.json#8"
    assert mutant.mistakes == ("move zero_optimization.stage: to zero_optimization",)
    assert Breeder(TEXTS).mutant("small.json", 7).text == (
        '{\n  "train_batch_size": 0,\n  "zero_optimization": {\n    "stage": 1\n  }\n}\n'
    )


def test_a_mutant_does_not_depend_on_those_made_before() -> None:
    breeder = Breeder(TEXTS)
    list(breeder.mutants(50))
    assert breeder.mutant("large.json", 3) == Breeder(TEXTS).mutant("large.json", 3)


def test_only_configs_have_mutants() -> None:
    assert {mutant.base for mutant in mutants()} == {"large.json", "small.json"}


def test_bases_can_be_chosen() -> None:
    chosen = Breeder(TEXTS, bases={"small.json", "template.json"})
    assert {mutant.base for mutant in chosen.mutants(50)} == {"small.json"}


def test_every_mutant_is_json_with_one_or_two_mistakes() -> None:
    for mutant in mutants(5_000):
        assert isinstance(json.loads(mutant.text), dict)
        assert 1 <= len(mutant.mistakes) <= 2


@pytest.mark.parametrize("kind", [*MISTAKES, "swap", "add"])
def test_every_kind_of_mistake_is_made(kind: str) -> None:
    assert any(mistake.startswith(f"{kind} ") for mutant in mutants() for mistake in mutant.mistakes)


def test_a_duplicated_key_stands_twice_in_the_text() -> None:
    for mutant in mutants():
        if [mistake.split(":")[0] for mistake in mutant.mistakes] == ["duplicate zero_optimization.stage"]:
            assert mutant.text.count('"stage"') == 2
            return
    pytest.fail("no such mutant")


def test_a_swapped_value_is_that_of_another_file() -> None:
    stages = {
        mistake
        for mutant in mutants()
        for mistake in mutant.mistakes
        if mistake.startswith("swap zero_optimization.stage")
    }
    assert stages == {"swap zero_optimization.stage: 1", "swap zero_optimization.stage: 3"}


def test_what_is_read_is_written_again() -> None:
    section = read_section(TEXTS["large.json"])
    assert json.loads(written(section)) == json.loads(TEXTS["large.json"])

"""dslint and real DeepSpeed on public configs and on mutants of them: where they disagree, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from dslint.documents.source import Source, Span
from dslint.rulebook.finding import Finding, Location
from dslint.smoke.client import SmokeServer
from dslint.smoke.listening import Heard
from dslint.smoke.verdict import judge
from tests.realworld.corpus import CONFIGS, CORPUS, CORRECTED_LABELS, trains_by_label
from tests.realworld.differential import EXCUSES, Comparison, Excuse, Subject, compare, subjects_in
from tests.realworld.mutations import Breeder

FEW, MANY = 60, 2_000

needs_corpus = [
    pytest.mark.corpus,
    pytest.mark.deepspeed,
    pytest.mark.skipif(not CONFIGS, reason="no corpus of configs here"),
]


FALSE_ALARMS: Mapping[str, str] = {}
"""Errors that are right though the trial trains: by the name of the subject, the reason."""


def unexplained(comparisons: Iterable[Comparison]) -> list[str]:
    """A line for each disagreement for which the lists above have no reason."""
    return [
        one.told()
        for one in comparisons
        if (one.is_false_alarm and one.subject.name not in FALSE_ALARMS)
        or (one.is_missed and not any(excuse.holds_for(one) for excuse in EXCUSES))
    ]


def print_disagreements(comparisons: Iterable[Comparison]) -> None:
    """All of them, the milder ones too, for `pytest -s`."""
    for one in comparisons:
        kinds = {
            "false alarm": one.is_false_alarm,
            "missed": one.is_missed,
            "without error": one.is_only_warned_of,
            "not decided": one.unfinished,
        }
        for kind in (kind for kind, holds in kinds.items() if holds):
            print(f"{kind}: {one.told()}")


# --- on the corpus ---


@pytest.fixture(scope="module")
def hugging_face(server: SmokeServer) -> SmokeServer:
    """The server, if it can be what reads a config with "auto"."""
    if not server.hello["transformers"]:
        pytest.skip("Transformers is not installed")
    return server


@pytest.fixture(scope="module")
def public(hugging_face: SmokeServer) -> list[Comparison]:
    return list(compare(hugging_face, subjects_in(CORPUS / "configs")))


@pytest.fixture(scope="module")
def many_mutants(hugging_face: SmokeServer, public: list[Comparison]) -> list[Comparison]:
    trained = {one.subject.name for one in public if one.trains}
    return list(compare(hugging_face, mutants(MANY, trained)))


def mutants(count: int, bases: set[str] | None = None) -> list[Subject]:
    breeder = Breeder({subject.name: subject.text for subject in subjects_in(CORPUS / "configs")}, bases)
    return [Subject(one.name, one.text, one.mistakes) for one in breeder.mutants(count)]


class TestOnTheCorpus:
    pytestmark = needs_corpus

    def test_sixty_mutants_bring_no_unexplained_disagreement(self, hugging_face: SmokeServer) -> None:
        comparisons = list(compare(hugging_face, mutants(FEW)))
        assert not unexplained(comparisons)
        assert any(one.trains for one in comparisons)
        assert any(one.refused for one in comparisons)

    @pytest.mark.long
    def test_public_configs_bring_no_unexplained_disagreement(self, public: list[Comparison]) -> None:
        print_disagreements(public)
        assert not unexplained(public)

    @pytest.mark.long
    def test_labels_are_wrong_only_where_that_is_explained(self, public: list[Comparison]) -> None:
        labelled = trains_by_label()
        wrong = {one.subject.name for one in public if labelled.get(one.subject.name, one.trains) != one.trains}
        assert wrong == set(CORRECTED_LABELS)

    @pytest.mark.long
    def test_two_thousand_mutants_bring_no_unexplained_disagreement(self, many_mutants: list[Comparison]) -> None:
        print_disagreements(many_mutants)
        assert len(many_mutants) == MANY
        assert not unexplained(many_mutants)

    @pytest.mark.long
    def test_every_explanation_explains_something(
        self, public: list[Comparison], many_mutants: list[Comparison]
    ) -> None:
        missed = [one for one in (*public, *many_mutants) if one.is_missed]
        assert all(any(excuse.holds_for(one) for one in missed) for excuse in EXCUSES)
        false = {one.subject.name for one in (*public, *many_mutants) if one.is_false_alarm}
        assert set(FALSE_ALARMS) <= false


# --- what counts as a disagreement, on made-up comparisons ---


def comparison(*severities: str, code: str = "DS201", **heard: object) -> Comparison:
    place = Location(Source("made-up.json", b"{}"), Span(0, 1))
    findings = tuple(Finding(code, "made-up", severity, "made up", place) for severity in severities)
    verdict = judge([Heard(seen=dict(heard), finished=True)], mode="simulated", world=8)
    return Comparison(Subject("made-up.json", "{}"), "deepspeed", findings, verdict)


TRAINED = {"phase": "done"}
REFUSED = {
    "phase": "parse",
    "exception": "AssertionError",
    "bases": ["AssertionError"],
    "message": "no batch size",
}


def test_an_error_that_claims_a_refusal_is_false_where_it_trains() -> None:
    assert comparison("error", **TRAINED).is_false_alarm
    assert not comparison("error", **REFUSED).is_false_alarm
    assert not comparison("warning", **TRAINED).is_false_alarm


def test_an_error_about_a_wrong_result_is_right_where_it_trains() -> None:
    assert not comparison("error", code="DS011", **TRAINED).is_false_alarm


def test_a_refusal_is_missed_where_nothing_is_said() -> None:
    assert comparison(**REFUSED).is_missed
    assert not comparison("hint", **REFUSED).is_missed
    assert not comparison(**TRAINED).is_missed


def test_a_refusal_without_an_error_is_told_apart() -> None:
    assert comparison("hint", "warning", **REFUSED).is_only_warned_of
    assert not comparison("hint", "error", **REFUSED).is_only_warned_of
    assert not comparison(**REFUSED).is_only_warned_of


def test_a_trial_that_ran_out_of_time_is_no_refusal() -> None:
    late = comparison(**TRAINED)
    late = replace(late, verdict=judge([Heard(in_time=False)], mode="simulated", world=8))
    assert late.unfinished
    assert not late.refused


def test_a_trial_that_was_killed_is_no_refusal() -> None:
    killed = replace(comparison(), verdict=judge([Heard(exit_code=-9)], mode="simulated", world=8))
    assert killed.unfinished
    crashed = replace(comparison(), verdict=judge([Heard(exit_code=-11)], mode="simulated", world=8))
    assert crashed.refused


def test_an_excuse_must_fit_the_exception_and_the_message() -> None:
    excuse = Excuse("AssertionError", "no batch", "made up")
    assert excuse.holds_for(comparison(**REFUSED))
    assert not excuse.holds_for(comparison(**{**REFUSED, "message": "another"}))
    assert not excuse.holds_for(comparison(**{**REFUSED, "exception": "ValueError"}))
    assert unexplained([comparison(**REFUSED)]) == [
        "made-up.json [deepspeed]: DeepSpeed: AssertionError in parse no batch size | dslint: nothing"
    ]

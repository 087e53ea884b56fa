"""Fixes on public configs and on seeded mutants of them: they help, touch nothing else, and come to an end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dslint.smoke.client import SmokeServer
from tests.realworld.corpus import CONFIGS
from tests.realworld.differential import EXCUSES, Subject, claims_refusal, compare, subjects_in
from tests.realworld.mending import MendedSubject, mend_subject
from tests.realworld.mutations import Breeder

pytestmark = [pytest.mark.corpus, pytest.mark.skipif(not CONFIGS, reason="no corpus of configs here")]

EVERY = 8
"""One public config of so many is mended in the usual tests; benchmarks/fixes.py mends all."""

MUTANTS = 60
FIRST_SEED = 900_000
TRIED_ON_DEEPSPEED = 24


@pytest.fixture(scope="module")
def mended() -> list[MendedSubject]:
    return [mend_subject(subject) for subject in subjects()]


def subjects() -> Iterator[Subject]:
    public = list(subjects_in(CONFIGS[0].parent))
    yield from public[::EVERY]
    breeder = Breeder({subject.name: subject.text for subject in public})
    for mutant in breeder.mutants(MUTANTS, FIRST_SEED):
        yield Subject(mutant.name, mutant.text, mutant.mistakes)


def test_fixes_change_nothing_beside_what_they_are_about(mended: list[MendedSubject]) -> None:
    assert {one.subject.name: one.bytes_outside() for one in mended if one.bytes_outside()} == {}


def test_mending_twice_changes_nothing_the_second_time(mended: list[MendedSubject]) -> None:
    again = {one.subject.name: mend_subject(one.now) for one in mended if one.changed}
    assert {
        name: [fix.fix.title for fix in one.mended.applied] for name, one in again.items() if one.changed
    } == {}


def test_no_fix_brings_an_error_that_was_not_hidden_by_another(mended: list[MendedSubject]) -> None:
    for one in mended:
        before = {finding.code for finding in one.before if finding.severity == "error"}
        after = {finding.code for finding in one.after if finding.severity == "error"}
        mended_errors = {fix.finding.code for fix in one.mended.applied if fix.finding.severity == "error"}
        assert after <= before or mended_errors, one.subject.name


@pytest.mark.deepspeed
def test_what_fixes_leave_without_an_error_trains_on_deepspeed(mended: list[MendedSubject]) -> None:
    clean = [one for one in mended if one.changed and not any(map(claims_refusal, one.after))]
    chosen = clean[:: max(1, len(clean) // TRIED_ON_DEEPSPEED)]
    with SmokeServer(device="cpu") as server:
        trials = list(compare(server, [one.now for one in chosen]))
    assert len(trials) >= min(TRIED_ON_DEEPSPEED, len(clean))
    refused = [one for one in trials if one.refused and not any(excuse.holds_for(one) for excuse in EXCUSES)]
    assert [one.told() for one in refused] == []

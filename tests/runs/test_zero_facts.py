"""Facts about ZeRO that more than one key decides."""

from __future__ import annotations

from typing import Any

import pytest

from dslint.lint import facts_of
from dslint.rulebook.cases import run_of
from dslint.runs.facts import Facts
from dslint.runs.unknown import Unknown


def facts(**zero: Any) -> Facts:
    return facts_of(run_of({"config": {"train_micro_batch_size_per_gpu": 1, "zero_optimization": zero}}))


def in_text(zero: str) -> Facts:
    return facts_of(run_of({"text": f'{{"zero_optimization": {zero}}}'}))


def test_two_spellings_of_one_key_are_found_at_the_one_without_the_prefix() -> None:
    found = facts(prefetch_bucket_size=1, stage3_prefetch_bucket_size=2, max_live_parameters=3)
    (twin,) = found.value("zero.double_spellings")
    assert (twin.fields["key"], twin.fields["other_key"]) == (
        "prefetch_bucket_size",
        "stage3_prefetch_bucket_size",
    )
    assert twin.source.slice(twin.span) == '"prefetch_bucket_size": 1'
    assert twin.source.slice(twin.fields["other"]) == '"stage3_prefetch_bucket_size": 2'


@pytest.mark.parametrize(("value", "is_same"), [(7, True), (8, False)])
def test_it_is_told_whether_both_say_the_same(value: int, is_same: bool) -> None:
    (twin,) = facts(max_reuse_distance=7, stage3_max_reuse_distance=value).value("zero.double_spellings")
    assert twin.fields["same"] is is_same


def test_nobody_knows_whether_a_placeholder_says_the_same() -> None:
    found = in_text('{"max_reuse_distance": 7, "stage3_max_reuse_distance": "${REUSE}"}')
    (twin,) = found.value("zero.double_spellings")
    assert isinstance(twin.fields["same"], Unknown)


@pytest.mark.parametrize("value", ["auto", None])
def test_what_says_nothing_is_no_second_spelling(value: object) -> None:
    assert facts(max_reuse_distance=value, stage3_max_reuse_distance=7).value("zero.double_spellings") == ()


def test_names_that_deepspeed_does_not_have_are_no_spellings() -> None:
    assert facts(speed=1, stage3_speed=1).value("zero.double_spellings") == ()
    assert in_text("true").value("zero.double_spellings") == ()


def test_a_path_beside_the_cpu_is_idle_in_each_section_by_itself() -> None:
    found = facts(
        offload_optimizer={"device": "cpu", "nvme_path": "/nvme"},
        offload_param={"device": "nvme", "nvme_path": "/nvme"},
    )
    (path,) = found.value("offload.idle_paths")
    assert (path.fields["section"], path.source.slice(path.span)) == ("offload_optimizer", '"nvme_path": "/nvme"')


@pytest.mark.parametrize("path", [None, "", "none"])
def test_no_path_is_not_idle(path: object) -> None:
    assert facts(offload_param={"device": "cpu", "nvme_path": path}).value("offload.idle_paths") == ()

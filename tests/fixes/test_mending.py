"""Fixes are applied one by one, kept where they help, and taken back where they don't."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from dslint.documents.config_reader import read_config
from dslint.documents.source import Source, Span
from dslint.fixes.mending import Mended, mend
from dslint.fixes.policy import Policy
from dslint.fixing import Fixed, fix
from dslint.inputs import Reading, read
from dslint.readings import together
from dslint.rulebook.cache import shipped_rules
from dslint.rulebook.change import DeleteKey, SetKey
from dslint.rulebook.finding import Finding, FindingFix, Location
from dslint.runs.releases import parse_release
from dslint.runs.run import Options

EIGHT = Options(gpus=8, deepspeed=parse_release("0.19.8"))


def fixed(folder: Path, policy: Policy, options: Options = EIGHT, **texts: str) -> Fixed:
    for name, text in texts.items():
        (folder / f"{name}.json").write_text(text)
    return fix(read([str(folder / f"{name}.json") for name in texts]), options, shipped_rules(), None, policy)


def text_of(result: Fixed) -> str:
    return result.files[0][1].data.decode()


def test_a_safe_fix_is_applied_and_an_unsafe_one_is_not(tmp_path: Path) -> None:
    text = '{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3}, "_comment": 1, "amp": {"enabled": false}}'
    result = fixed(tmp_path, Policy(), ds=text)
    assert "amp" not in text_of(result)
    assert "stage3_gather" not in text_of(result)
    assert {one.fix.tier for one in result.applied} == {"safe"}


def test_nothing_changes_the_second_time(tmp_path: Path) -> None:
    text = '{\n  "train_batch_size": 30,\n  "amp": {"enabled": false},\n  "zero_optimization": {"stage": 3}\n}\n'
    first = fixed(tmp_path, Policy(unsafe=True), ds=text)
    assert first.files
    assert not fixed(tmp_path, Policy(unsafe=True), ds=text_of(first)).files


def test_files_that_have_nothing_to_do_with_each_other_are_mended_each_by_itself(tmp_path: Path) -> None:
    text = '{"train_micro_batch_size_per_gpu": 1, "amp": {"enabled": false}}'
    result = fixed(tmp_path, Policy(), first=text, second=text)
    assert len(result.files) == 2
    assert len(result.applied) == 2


def test_findings_of_rules_that_are_not_selected_are_not_mended(tmp_path: Path) -> None:
    path = tmp_path / "ds.json"
    path.write_text('{"train_micro_batch_size_per_gpu": 1, "amp": {"enabled": false}}')
    only = [rule for rule in shipped_rules() if rule.code == "DS201"]
    assert not fix(read([str(path)]), EIGHT, only, None, Policy(unsafe=True)).files


def test_the_report_is_about_the_mended_files(tmp_path: Path) -> None:
    text = '{"train_micro_batch_size_per_gpu": 1, "amp": {"enabled": false}}'
    result = fixed(tmp_path, Policy(), ds=text)
    codes = {one.code for one in result.report.findings}
    assert not codes & {one.finding.code for one in result.applied}


# The rest holds the loop against findings made for the purpose.

START = '{"a": 1, "b": 2}'


def reading_of(text: str) -> Reading:
    return Reading((Source("ds.json", text.encode()),), (), (), (), (), frozenset(), 1)


def one_finding(
    reading: Reading,
    code: str,
    fix: Callable[[Source], tuple[object, ...]],
    severity: str = "error",
    tier: str = "unsafe",
) -> Finding:
    source = reading.configs[0]
    ways = (FindingFix(tier, f"mend {code}", 1, True, fix(source), tier == "safe"),)  # type: ignore[arg-type]
    return Finding(code, code.lower(), severity, f"{code} holds", Location(source, Span(0, 1)), (), ways)


def value_in(reading: Reading) -> dict[str, int]:
    value: dict[str, int] = read_config(reading.configs[0]).value
    return value


def setting(name: str, value: int) -> Callable[[Source], tuple[object, ...]]:
    return lambda source: (SetKey(read_config(source), (name,), value),)


def mended(judge: Callable[[Reading], Sequence[Finding]]) -> Mended:
    return mend(reading_of(START), judge, Policy(unsafe=True))


def test_a_fix_that_leaves_its_finding_is_taken_back() -> None:
    result = mended(lambda reading: [one_finding(reading, "DS001", setting("a", 5))])
    assert result.reading.sources[0].data.decode() == START
    assert "the finding stays" in result.not_applied[0].reason


def test_a_fix_that_brings_a_new_error_is_taken_back() -> None:
    def judge(reading: Reading) -> Sequence[Finding]:
        code = "DS001" if value_in(reading)["a"] == 1 else "DS002"
        return [one_finding(reading, code, setting("a", 5))]

    result = mended(judge)
    assert value_in(result.reading) == {"a": 1, "b": 2}
    assert "it brings DS002 in ds.json: DS002 holds" in result.not_applied[0].reason


def test_an_error_that_a_safe_fix_of_another_error_brings_to_light_was_there_before() -> None:
    def judge(reading: Reading) -> Sequence[Finding]:
        code = "DS001" if value_in(reading)["a"] == 1 else "DS002"
        return [one_finding(reading, code, setting("a", 5), tier="safe")]

    assert value_in(mended(judge).reading) == {"a": 5, "b": 2}


def test_a_safe_fix_of_a_warning_may_bring_no_error() -> None:
    def judge(reading: Reading) -> Sequence[Finding]:
        if value_in(reading)["a"] == 1:
            return [one_finding(reading, "DS001", setting("a", 5), "warning", "safe")]
        return [one_finding(reading, "DS002", setting("a", 5))]

    assert value_in(mended(judge).reading) == {"a": 1, "b": 2}


def test_a_fix_that_brings_a_new_warning_is_kept() -> None:
    def judge(reading: Reading) -> Sequence[Finding]:
        if value_in(reading)["a"] == 1:
            return [one_finding(reading, "DS001", setting("a", 5))]
        return [one_finding(reading, "DS002", setting("a", 5), "warning")]

    assert value_in(mended(judge).reading)["a"] == 5


def test_fixes_that_undo_each_other_come_to_an_end() -> None:
    def judge(reading: Reading) -> Sequence[Finding]:
        if value_in(reading)["a"] == 1:
            return [one_finding(reading, "DS001", setting("a", 2), "warning")]
        return [one_finding(reading, "DS002", setting("a", 1), "warning")]

    result = mended(judge)
    assert value_in(result.reading)["a"] == 2
    assert "brings back" in result.not_applied[0].reason


def test_fixes_that_overlap_are_applied_in_turn() -> None:
    def judge(reading: Reading) -> Sequence[Finding]:
        value = value_in(reading)
        found = []
        if value.get("a") == 1:
            found.append(one_finding(reading, "DS001", setting("a", 2)))
        if value.get("a") in (1, 2):
            found.append(one_finding(reading, "DS002", lambda source: (DeleteKey(read_config(source), ("a",)),)))
        return found

    result = mended(judge)
    assert value_in(result.reading) == {"b": 2}
    assert [one.finding.code for one in result.applied] == ["DS001", "DS002"]


def test_a_fix_for_a_file_that_is_not_among_those_to_check_is_not_made() -> None:
    def other(source: Source) -> tuple[object, ...]:
        return (SetKey(read_config(Source("other.json", b"{}")), ("a",), 1),)

    result = mended(lambda reading: [one_finding(reading, "DS001", other)])
    assert "other.json, which is not among the files to check" in result.not_applied[0].reason


def test_a_fix_that_can_not_be_made_says_why() -> None:
    def broken(source: Source) -> tuple[object, ...]:
        return (SetKey(read_config(Source(source.path, b"{")), ("a",), 1),)

    result = mended(lambda reading: [one_finding(reading, "DS001", broken)])
    assert not result.applied
    assert result.not_applied[0].reason


@pytest.mark.parametrize(
    ("finding_fixes", "policy", "picked"),
    [
        ([("safe", 1)], Policy(), 1),
        ([("unsafe", 1)], Policy(), None),
        ([("unsafe", 1)], Policy(unsafe=True), 1),
        ([("unsafe", 1), ("unsafe", 2)], Policy(unsafe=True), None),
        ([("unsafe", 1), ("unsafe", 2)], Policy(choices={"DS001": 2}), 2),
        ([("unsafe", 1), ("unsafe", 2)], Policy(choices={"DS001": 3}), None),
        ([("display", 1)], Policy(unsafe=True), None),
    ],
)
def test_what_a_policy_picks(finding_fixes: list[tuple[str, int]], policy: Policy, picked: int | None) -> None:
    ways = tuple(FindingFix(tier, "t", number, tier != "display") for tier, number in finding_fixes)
    finding = Finding("DS001", "x", "error", "m", Location(Source("a", b""), Span(0, 0)), (), ways)
    chosen = policy.pick(finding)
    assert (chosen.number if chosen else None) == picked


def test_files_of_runs_that_share_one_belong_together() -> None:
    sources = [Source(f"{name}.json", b"{}") for name in "abcd"]
    reading = Reading(tuple(sources), (), (), (), (), frozenset(), 4)
    groups = together(reading, [[sources[0], sources[1]], [sources[1], sources[2]]])
    assert sorted(map(len, groups)) == [1, 3]


def test_a_way_that_is_safe_only_since_it_is_left_over_may_bring_no_error() -> None:
    """The facts left one of several unsafe ways: it needs no choice, but its meaning is not the old one."""

    def judge(reading: Reading) -> Sequence[Finding]:
        code = "DS001" if value_in(reading)["a"] == 1 else "DS002"
        finding = one_finding(reading, code, setting("a", 5), tier="safe")
        return [replace(finding, fixes=tuple(replace(way, keeps_meaning=False) for way in finding.fixes))]

    assert value_in(mended(judge).reading) == {"a": 1, "b": 2}

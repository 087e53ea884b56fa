from __future__ import annotations

import pytest

from dslint.runs.releases import KNOWN_RELEASES, NEWEST, check_spec, matches, parse_release


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("0.19.8", (0, 19, 8)),
        ("v0.19.8", (0, 19, 8)),
        ("0.19.8+cu121", (0, 19, 8)),
        ("0.16.4.dev1", (0, 16, 4)),
        ("0.17.0rc2", (0, 17, 0)),
        (" 0.9.3 ", (0, 9, 3)),
        ("0.19", (0, 19, 0)),
        ("0.14.1+unknown", (0, 14, 1)),
    ],
)
def test_a_release_is_read_however_it_is_written(text: str, key: tuple[int, ...]) -> None:
    assert parse_release(text).key == key


@pytest.mark.parametrize(
    "text", ["", "latest", "19", "0.", "0.19.8.", ">=0.19", "0.19.8 or so", "0." + "9" * 9999]
)
def test_text_that_is_no_release_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a DeepSpeed release: write it like 0\.19\.8"):
        parse_release(text)


def test_releases_are_ordered_by_number_and_not_by_text() -> None:
    assert parse_release("0.9.5") < parse_release("0.10.0") < parse_release("v0.19.8")
    assert parse_release("v0.19.8") == NEWEST


def test_known_releases_ascend_to_the_newest() -> None:
    assert list(KNOWN_RELEASES) == sorted(KNOWN_RELEASES)
    assert KNOWN_RELEASES[-1] == NEWEST
    assert {parse_release(text) for text in ("0.9.0", "0.12.6", "0.16.9", "0.18.9")} <= set(KNOWN_RELEASES)


@pytest.mark.parametrize(
    ("spec", "yes", "no"),
    [
        (">=0.19.7", "0.19.7 0.19.8 0.20.0", "0.19.6 0.9.9"),
        (">=0.18,<0.19.3", "0.18.0 0.19.2", "0.17.6 0.19.3"),
        ("==0.14.*", "0.14.0 0.14.5", "0.13.5 0.15.0"),
        ("!=0.14.*", "0.13.5", "0.14.0"),
        ("~=0.16.0", "0.16.0 0.16.9", "0.17.0 0.15.4"),
        ("~=0.16", "0.16.0 0.19.8", "1.0.0 0.15.4"),
        ("!=0.16.1", "0.16.0", "0.16.1"),
        ("==0.19", "0.19.0", "0.19.1"),
        ("===0.19.8", "0.19.8", "0.19.7"),
        ("<= 0.9.5 , > 0.9.2", "0.9.3 0.9.5", "0.9.2 0.10.0"),
        ("<1", "0.19.8", "1.0.0"),
        ("", "0.1.0", ""),
        (">=0.16.4.dev1", "0.16.4", "0.16.3"),
    ],
)
def test_a_specifier_separates_releases(spec: str, yes: str, no: str) -> None:
    check_spec(spec)
    assert all(matches(spec, parse_release(text)) for text in yes.split())
    assert not any(matches(spec, parse_release(text)) for text in no.split())


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ("0.19.7", "'0.19.7' is not a version condition"),
        (">=0.18,<", "'<' in '>=0.18,<' is not a version condition"),
        ("=>0.18", "is not a version condition"),
        (">=0.18.x", "is not a version condition"),
        (">=latest", "is not a version condition"),
        (">=0.14.*", r"\.\* goes with == and != only"),
        ("~=1", "~= needs two numbers"),
        (",", "is not a version condition"),
    ],
)
def test_a_malformed_specifier_is_refused_with_its_fault(spec: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        check_spec(spec)

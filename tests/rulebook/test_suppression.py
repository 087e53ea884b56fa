"""Findings that comments and settings silence, and what is said about comments of no use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dslint.documents.comments import Kind, marked_comments
from dslint.documents.source import Source
from dslint.lint import Report, check
from dslint.rulebook.cache import shipped_rules
from dslint.rulebook.finding import Finding, Location
from dslint.rulebook.own_rules import OWN_RULES
from dslint.rulebook.selection import select
from dslint.rulebook.suppression import Outcome, Suppressions, apply, kind_of
from dslint.runs.run import Options
from dslint.settings.loading import load_settings
from dslint.settings.settings import Ignore, Settings


@dataclass(frozen=True)
class Label:
    code: str
    name: str


KNOWN = [Label("DS201", "one"), Label("DS202", "two"), Label("DS612", "three"), *OWN_RULES]


def finding(source: Source, at: str, code: str = "DS201") -> Finding:
    """A finding at the first place of a text."""
    name = next(rule.name for rule in KNOWN if rule.code == code)
    start = source.text.index(at)
    return Finding(code, name, "error", "message", Location(source, source.span(start, start + len(at))))


def silence(text: str, at: str, path: str = "train.py", code: str = "DS201") -> Outcome:
    source = Source(path, text.encode())
    return apply([finding(source, at, code)], [source], None, KNOWN, KNOWN)


def complaints(text: str, path: str = "train.py") -> list[tuple[str, str]]:
    """Codes of what is said about the comments of a file without findings, and the text under each."""
    source = Source(path, text.encode())
    outcome = apply([], [source], None, KNOWN, KNOWN)
    return [(one.code, source.slice(one.location.span)) for one in outcome.complaints]


# Which lines a comment speaks about

SILENT = [
    ("train.py", "x = HERE  # dslint: ignore[DS201] a reason"),
    ("train.py", "x = HERE  # noqa  # dslint: ignore[DS201]"),
    ("train.py", "x = HERE  #dslint:ignore[DS201]"),
    ("train.py", "x = f(  # dslint: ignore[DS201]\n  HERE,\n)"),
    ("train.py", "x = HERE(\n  1,\n)  # dslint: ignore[DS201]"),
    ("train.py", "x = HERE(\n  # dslint: ignore[DS201]\n  1,\n)"),
    ("train.py", "# dslint: ignore[DS201]\nx = HERE"),
    ("train.py", "# dslint: ignore[DS201]\n# more words\n\nx = f(\n  HERE)"),
    ("train.py", "def f():\n    # dslint: ignore[DS201]\n    x = HERE"),
    ("train.py", "\ufeffx = HERE  # dslint: ignore[DS201]"),
    ("train.py", "é = 'ü'\r\nx = HERE  # dslint: ignore[DS201]\r\n"),
    ("train.py", '"""text\n# dslint: nothing\n"""\nx = HERE  # dslint: ignore[DS201]'),
    ("run.sh", "deepspeed HERE  # dslint: ignore[DS201]"),
    ("run.sh", "# dslint: ignore[DS201]\ndeepspeed \\\n  --x HERE"),
    ("run.sh", "deepspeed HERE \\\n  --x # dslint: ignore[DS201]"),
    ("run.sh", "echo 'a # b' \"it's\"\ndeepspeed HERE # dslint: ignore[DS201]"),
    ("run.sh", "cat > HERE <<EOF # dslint: ignore[DS201]\n{}\nEOF\n"),
    ("run.sh", "cat <<-'EOF' > x\n  it's\n\tEOF\ndeepspeed HERE # dslint: ignore[DS201]"),
    ("run.sh", "x=$((1<<y))\ncat <<< word\ndeepspeed HERE # dslint: ignore[DS201]"),
    ("acc.yaml", "a: 1\nb: HERE  # dslint: ignore[DS201]"),
    ("acc.yaml", "# dslint: ignore[DS201]\nb: HERE"),
    ("ds.json", '{\n"HERE": 1, // dslint: ignore[DS201]\n"b": 2}'),
    ("ds.json", '{\n"HERE": 1, # dslint: ignore[DS201]\n"b": 2}'),
    ("ds.json", '{\n"HERE": 1, /* dslint: ignore[DS201] */ "b": 2}'),
    ("ds.json", '{\n// dslint: ignore[DS201]\n\n"HERE": 1}'),
    ("ds.json", '{ // dslint: ignore-file[DS201]\n\n"HERE": 1}'),
    ("train.py", "# dslint: ignore-file[DS2]\n\n\nx = HERE"),
    ("train.py", "x = HERE  # dslint: ignore[DS2]"),
    ("train.py", "x = HERE  # dslint: ignore[ds201]"),
    ("train.py", "x = HERE  # dslint: ignore[DS612, one]"),
    ("nb.ipynb", "x = HERE  # dslint: ignore[DS201]"),
]
HEARD = [
    ("train.py", "x = HERE  # dslint: ignore[DS202]"),
    ("train.py", "x = HERE  # dslint: ignore"),
    ("train.py", "x = HERE\n# dslint: ignore[DS201]"),
    ("train.py", "x = 1  # dslint: ignore[DS201]\ny = HERE"),
    ("train.py", "for x in HERE:\n    # dslint: ignore[DS201]\n    pass"),
    ("train.py", "with f(  # dslint: ignore[DS201]\n  1):\n  HERE"),
    ("train.py", "x = HERE, '# dslint: ignore[DS201]'"),
    ("train.py", "x = HERE  # see dslint: ignore[DS201]"),
    ("run.sh", "deepspeed HERE '# dslint: ignore[DS201]'"),
    ("run.sh", "deepspeed HERE x# dslint: ignore[DS201]"),
    ("run.sh", "cat <<EOF\n# dslint: ignore[DS201]\nEOF\ndeepspeed HERE"),
    ("acc.yaml", "a: |\n  # dslint: ignore[DS201]\nHERE: 1"),
    ("acc.yaml", "a: '# dslint: ignore[DS201]' \nHERE: 1"),
    ("ds.json", '{"x": "# dslint: ignore[DS201]", "HERE": 1}'),
    ("ds.hjson", "{\n  HERE: abc # dslint: ignore[DS201]\n}"),
    ("train.py", "\n" * 10 + "# dslint: ignore-file[DS201]\nx = HERE"),
]


@pytest.mark.parametrize(("path", "text"), SILENT)
def test_a_comment_silences_its_statement(path: str, text: str) -> None:
    outcome = silence(text, "HERE", path)
    assert (outcome.kept, outcome.suppressed) == ((), 1)
    assert all("DS612" in text for _ in outcome.complaints)


@pytest.mark.parametrize(("path", "text"), HEARD)
def test_a_comment_silences_nothing_else(path: str, text: str) -> None:
    outcome = silence(text, "HERE", path)
    assert (len(outcome.kept), outcome.suppressed) == (1, 0)


def test_a_comment_is_about_its_own_file() -> None:
    marked = Source("a.py", b"x = HERE  # dslint: ignore[DS201]")
    other = Source("b.py", b"x = HERE")
    outcome = apply([finding(other, "HERE")], [marked, other], None, KNOWN, KNOWN)
    assert outcome.suppressed == 0


# What is said about the comments


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1  # dslint: ignore[DS201]", [("DS061", "DS201")]),
        ("x = 1  # dslint: ignore[DS201, two]", [("DS061", "DS201"), ("DS061", "two")]),
        ("x = 1  # dslint: ignore", [("DS062", "# dslint: ignore")]),
        ("x = 1  # dslint: ignore[]", [("DS062", "# dslint: ignore[]")]),
        ("x = 1  # dslint: ignore[ , ]", [("DS062", "# dslint: ignore[ , ]")]),
        ("x = 1  # dslint: ignore[DS201", [("DS062", "# dslint: ignore[DS201")]),
        ("x = 1  # dslint: ignore because", [("DS062", "# dslint: ignore because")]),
        ("x = 1  # dslint: disable=DS201", [("DS062", "# dslint: disable=DS201")]),
        ("x = 1  # dslint: ignores[DS201]", [("DS062", "# dslint: ignores[DS201]")]),
        ("x = 1  # dslint:", [("DS062", "# dslint:")]),
        ("é = 1  # dslint: ignore[DS999]", [("DS063", "DS999")]),
        ("\n" * 10 + "# dslint: ignore-file[DS201]", [("DS061", "# dslint: ignore-file[DS201]")]),
        ("# dslint: ignore-file[DS061]\nx = 1  # dslint: ignore[DS201]", []),
        ("x = 1  # dslint: ignore[DS061]", []),
    ],
)
def test_comments_of_no_use_are_told(text: str, said: list[tuple[str, str]]) -> None:
    assert complaints(text) == said


def test_an_unknown_rule_is_told_with_the_near_one() -> None:
    source = Source("a.py", b"x = 1  # dslint: ignore[thre]")
    (complaint,) = apply([], [source], None, KNOWN, KNOWN).complaints
    assert "did you mean three?" in complaint.message
    assert complaint.severity == "warning"


def test_an_ignore_of_a_rule_that_had_no_say_is_not_called_unused() -> None:
    source = Source("a.py", b"x = 1  # dslint: ignore[DS201, DS2]")
    only_other = [rule for rule in KNOWN if rule.code != "DS201"]
    assert apply([], [source], None, only_other, KNOWN).complaints == ()
    assert apply([], [source], None, KNOWN, KNOWN, undecided={"DS201"}).complaints == ()


def test_comments_are_not_judged_where_those_rules_are_not_wanted() -> None:
    source = Source("a.py", b"x = 1  # dslint: ignore[DS201]")
    wanted = [rule for rule in KNOWN if rule.code != "DS061"]
    assert apply([], [source], None, wanted, KNOWN).complaints == ()


def test_files_without_a_run_are_not_looked_into() -> None:
    assert apply([], [], None, KNOWN, KNOWN) == Outcome((), 0, ())


# Settings


def by_settings(text: str, path: str, at: str, **entries: tuple[Ignore, ...]) -> int:
    source = Source(path, text.encode())
    settings = Settings("dslint.toml", str(Path.cwd()), **entries)  # type: ignore[arg-type]
    return apply([finding(source, at)], [source], settings, KNOWN, KNOWN).suppressed


@pytest.mark.parametrize(
    ("key", "labels", "at", "suppressed"),
    [
        ("zero_optimization.stage", ("DS201",), '"stage"', 1),
        ("zero_optimization.stage", ("all",), "3", 1),
        ("zero_optimization.stage", ("DS202",), "3", 0),
        ("zero_optimization", ("DS2",), '"stage"', 1),
        ("zero_optimization", ("one",), '"zero_optimization"', 1),
        ("zero_optimization.*", ("DS2",), '"stage"', 1),
        ("*.stage", ("DS2",), '"stage"', 1),
        ("*", ("DS2",), '"stage"', 1),
        ("zero_optimization.*", ("DS2",), '"zero_optimization"', 0),
        ("stage", ("DS2",), '"stage"', 0),
        ("zero_optimization.stag", ("DS2",), '"stage"', 0),
        ("_note", ("DS2",), '"stage"', 0),
    ],
)
def test_a_config_key_is_silenced_with_what_is_in_it(
    key: str, labels: tuple[str, ...], at: str, suppressed: int
) -> None:
    text = '{"_note": 1, "zero_optimization": {"stage": 3}}'
    assert by_settings(text, "ds.json", at, ignore_keys=(Ignore(key, labels),)) == suppressed


def test_keys_of_an_accelerate_file_have_both_names() -> None:
    text = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\n"
    for key in ("zero_optimization.stage", "deepspeed_config.zero_stage", "deepspeed_config"):
        assert by_settings(text, "acc.yaml", "3", ignore_keys=(Ignore(key, ("DS201",)),)) == 1
    assert by_settings(text, "acc.yaml", "3", ignore_keys=(Ignore("zero_stage", ("DS201",)),)) == 0


@pytest.mark.parametrize(("pattern", "suppressed"), [("conf/*.json", 1), ("*.json", 1), ("other", 0)])
def test_files_are_silenced_by_pattern(pattern: str, suppressed: int) -> None:
    assert by_settings("{}", "conf/a.json", "{", per_file_ignores=(Ignore(pattern, ("DS201",)),)) == suppressed


def test_a_comment_that_the_settings_make_needless_is_not_called_unused() -> None:
    source = Source("a.py", b"x = 1  # dslint: ignore[DS201]")
    settings = Settings("dslint.toml", str(Path.cwd()), per_file_ignores=(Ignore("*.py", ("DS201",)),))
    outcome = apply([finding(source, "x")], [source], settings, KNOWN, KNOWN)
    assert outcome == Outcome((), 1, ())


# The whole check


def checked(*paths: str, select_: str | None = None) -> Report:
    known = [*shipped_rules(), *OWN_RULES]
    return check(paths, Options(gpus=8), select(known, select_, None), load_settings(paths, known))


def test_a_check_counts_what_is_silenced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    Path("ds.json").write_text(
        '{\n"train_micro_batch_size_per_gpu": 1,\n"gradient_cliping": 1, // dslint: ignore[DS011] on purpose\n'
        '"zero_optimisation": {}, // dslint: ignore[DS012]\n}'
    )
    report = checked("ds.json", select_="DS011,DS06,DS012")
    assert [one.code for one in report.findings] == ["DS011", "DS061"]
    assert report.suppressed == 1
    Path("dslint.toml").write_text('[ignore-keys]\nzero_optimisation = ["misspelt-key"]\n')
    report = checked("ds.json", select_="DS011,DS012")
    assert (report.findings, report.suppressed) == ((), 2)


def test_files_of_others_in_a_folder_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("other.json").write_text('{"x": "train_batch_size" } // dslint: ignore[DS201]')
    assert checked(".").findings == ()


# Any text

KINDS: list[Kind] = ["python", "shell", "yaml", "config"]
PIECES = st.sampled_from(
    [
        "# dslint: ignore[DS201]",
        "// dslint:",
        "/* dslint: ignore[",
        "]",
        "'",
        '"',
        "'''",
        '"""',
        "\\",
        "\n",
        "\r",
        " ",
        "<<EOF",
        "EOF",
        "(",
        ")",
        "{",
        "}",
        "x: |",
        "def f():",
        "  ",
        "\t",
        "é",
        "\ufeff",
        "\x00",
        "$",
        "&",
        "*",
        "%",
        "`",
    ]
)


@given(st.lists(PIECES | st.text(max_size=3), max_size=30).map("".join))
def test_no_text_breaks_the_search_for_comments(text: str) -> None:
    try:
        source = Source("x", text.encode())
    except UnicodeEncodeError:
        return
    for kind in KINDS:
        for comment in marked_comments(source, kind, "dslint:"):
            assert source.text[comment.start :].startswith(comment.text)
            assert "dslint:" in source.slice(comment.span)
            assert comment.covers
        Suppressions.of(source, kind)


def test_many_comments_are_read_in_no_time() -> None:
    import time

    for path, line in [("a.py", "x = 1"), ("a.sh", "ls"), ("a.json", ""), ("a.yaml", "")]:
        source = Source(path, (f"{line}  # dslint: ignore[DS201]\n" * 5_000).encode())
        started = time.process_time()
        Suppressions.of(source, kind_of(path))
        assert time.process_time() - started < 5

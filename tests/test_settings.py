"""Settings files: found, read, checked; every mistake is a message with its line."""

from __future__ import annotations

import json
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from dslint.lint import check
from dslint.rulebook.cache import shipped_rules
from dslint.runs.releases import parse_release
from dslint.runs.run import Options
from dslint.settings import reader
from dslint.settings.globs import glob_matches, is_glob
from dslint.settings.loading import SettingsError, load_settings
from dslint.settings.settings import Settings
from dslint.settings.toml_lines import line_of, toml_lines

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RULES = shipped_rules()
SCHEMA = json.loads((Path(__file__).parent.parent / "schemas" / "settings.schema.json").read_text("utf-8"))


@pytest.fixture(autouse=True)
def _in_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a repository of its own, and stands in it."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)


def load(text: str, *paths: str, name: str = "dslint.toml") -> Settings | None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text, "utf-8")
    return load_settings(paths or ["."], RULES)


def loaded(text: str) -> Settings:
    settings = load(text)
    assert settings is not None
    return settings


# Where settings come from


def test_the_table_in_pyproject_is_read() -> None:
    settings = load('[project]\nname = "x"\n[tool.dslint]\ngpus = 8\n', name="pyproject.toml")
    assert settings is not None
    assert (settings.file, settings.hardware.gpus) == ("pyproject.toml", 8)


def test_a_pyproject_without_the_table_is_passed_over() -> None:
    assert load("[tool.other]\nx = 1 # tool.dslint\n", name="pyproject.toml") is None
    assert load("this is not TOML", name="pyproject.toml") is None


def test_the_nearest_file_above_the_common_folder_wins() -> None:
    load("gpus = 1", name="dslint.toml")
    load("gpus = 2", name="a/dslint.toml")
    load("gpus = 3", name="a/b/dslint.toml")
    for paths, gpus in [(["a/b"], 3), (["a/b/x.json"], 3), (["a/b/x.json", "a/y.json"], 2), (["a", "c"], 1)]:
        settings = load_settings(paths, RULES)
        assert settings is not None
        assert settings.hardware.gpus == gpus, paths


def test_dslint_toml_goes_before_pyproject() -> None:
    load("[tool.dslint]\ngpus = 1", name="pyproject.toml")
    assert loaded("gpus = 2").hardware.gpus == 2


def test_the_search_ends_at_the_top_of_the_repository() -> None:
    load("gpus = 1")
    Path("inner/.git").mkdir(parents=True)
    assert load_settings(["inner"], RULES) is None


def test_a_named_file_stands_instead_of_the_search(tmp_path: Path) -> None:
    load("gpus = 1")
    for text in ("gpus = 2", "[tool.dslint]\ngpus = 2"):
        (tmp_path / "other.toml").write_text(text)
        settings = load_settings(["."], RULES, "other.toml")
        assert settings is not None
        assert settings.hardware.gpus == 2


def test_a_named_file_must_exist_and_have_settings() -> None:
    with pytest.raises(SettingsError, match=r"none\.toml: no such file"):
        load_settings(["."], RULES, "none.toml")
    Path("pyproject.toml").write_text("[project]\n")
    with pytest.raises(SettingsError, match="has no table"):
        load_settings(["."], RULES, "pyproject.toml")


# What they say


def test_every_key_is_read() -> None:
    for name in ("ds.json", "train.py", "run.sh", "acc.yaml"):
        Path(name).write_text("")
    settings = loaded("""
        select = ["DS2", "fp16-and-bf16"]
        ignore = ["DS203"]
        fail-on = "warning"
        gpus = 8
        nodes = 2
        gpu = "a100-80g"
        deepspeed = "0.16.4"
        loader = "hf"
        exclude = ["third_party"]
        [per-file-ignores]
        "conf/*.json" = ["DS201"]
        [ignore-keys]
        "zero_optimization.*" = ["all"]
        [[runs]]
        name = "small"
        config = "ds.json"
        script = "train.py"
        launch = "run.sh"
        accelerate = "acc.yaml"
        gpus = 4
        """)
    assert settings.select == ("DS2", "fp16-and-bf16")
    assert settings.ignore == ("DS203",)
    assert (settings.fail_on, settings.loader, settings.exclude) == ("warning", "hf", ("third_party",))
    assert [(entry.pattern, entry.labels) for entry in settings.per_file_ignores] == [("conf/*.json", ("DS201",))]
    assert [(entry.pattern, entry.labels) for entry in settings.ignore_keys] == [("zero_optimization.*", ("all",))]
    (run,) = settings.runs
    assert (run.name, run.config, run.script, run.launch, run.accelerate) == (
        "small",
        "ds.json",
        "train.py",
        "run.sh",
        "acc.yaml",
    )
    assert (run.hardware.gpus, run.line, run.lines["script"]) == (4, 15, 18)


def test_the_files_of_a_run_are_beside_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a/sub").mkdir(parents=True)
    Path("a/ds.json").write_text("{}")
    settings = load('[[runs]]\nconfig = "ds.json"', "a", name="a/dslint.toml")
    assert settings is not None
    assert settings.runs[0].config == str(Path("a/ds.json"))
    monkeypatch.chdir("a/sub")
    again = load_settings(["."], RULES)
    assert again is not None
    assert again.runs[0].config is not None
    assert Path(again.runs[0].config).is_file()


def test_the_command_line_wins_then_the_run_then_the_settings() -> None:
    Path("ds.json").write_text("{}")
    settings = loaded(
        'gpus = 1\nnodes = 2\ndeepspeed = "0.16.4"\nloader = "hf"\n'
        '[[runs]]\nconfig = "ds.json"\nnodes = 3\ngpu = "v100"\ndeepspeed = "0.17.0"'
    )
    given_ = Options(deepspeed=parse_release("0.18.0"))
    alone, in_run = settings.options(given_), settings.options(given_, settings.runs[0])
    assert (alone.gpus, alone.nodes, alone.gpu, alone.loader) == (1, 2, None, "hf")
    assert (in_run.gpus, in_run.nodes) == (1, 3)
    assert in_run.gpu is not None
    assert alone.deepspeed == in_run.deepspeed == parse_release("0.18.0")
    assert settings.options(Options(), settings.runs[0]).deepspeed == parse_release("0.17.0")


def test_excluded_files_are_not_found_but_may_be_named() -> None:
    for folder in ("conf", "old/conf"):
        Path(folder).mkdir(parents=True)
        Path(folder, "ds_config.json").write_text('{"gradient_cliping": 1, "zero_optimization": {}}')
    settings = loaded('exclude = ["old"]')

    def files(*paths: str) -> set[str]:
        report = check(paths, Options(), RULES, settings)
        return {finding.location.source.path for finding in report.findings}

    assert files(".") == {"conf/ds_config.json"}
    assert files("old/conf/ds_config.json") == {"old/conf/ds_config.json"}


# What is wrong with them

MISTAKES = [
    ("gpuss = 8", 1, "did you mean `gpus`?"),
    ("\nfail_on = 'error'", 2, "did you mean `fail-on`?"),
    ("zzz = 1", 1, "there are select, ignore"),
    ("gpus = 0", 1, "at least 1, not 0"),
    ("gpus = true", 1, "not true"),
    ("nodes = '2'", 1, 'not "2"'),
    ("gpu = 'b9000'", 1, "b9000"),
    ("deepspeed = 'latest'", 1, "latest"),
    ("deepspeed = 0.16", 1, "must be a text, not 0.16"),
    ("loader = 'json'", 1, "must be one of hf, deepspeed"),
    ("fail-on = 'errors'", 1, "must be one of hint, warning, error, never"),
    ("select = 'DS2'", 1, 'must be a list of texts, not "DS2"'),
    ("select = [\n  'DS201',\n  'DS999',\n]", 3, "there is no rule `DS999`"),
    ("ignore = ['batch-size-mismach']", 1, "did you mean batch-size-mismatch?"),
    ("ignore = ['']", 1, "must be a list of texts"),
    ("ignore = ['all']", 1, "there is no rule `all`"),
    ("exclude = ['[z-a]']", 1, "is not a pattern"),
    ("exclude = [1]", 1, "has 1"),
    ("per-file-ignores = ['x']", 1, "must be a table of lists"),
    ("[per-file-ignores]\n'*.json' = 'DS2'", 2, "must be a list of texts"),
    ("[per-file-ignores]\n'*.json' = [\n'DS2',\n'DS998']", 4, "there is no rule `DS998`"),
    ("[ignore-keys]\nzero_optimization.stage = ['DS2']", 2, "write a key with dots in quotes"),
    ("[ignore-keys]\n'a..b' = ['DS2']", 2, "must be a dotted config key"),
    ("runs = 1", 1, "write [[tool.dslint.runs]]"),
    ("runs = [1]", 1, "must be a table"),
    ("[[runs]]\nname = 'x'", 1, "names no file"),
    ("[[runs]]\nconfig = 'there.json'\n[[runs]]\nconfig = 'gone.json'", 4, 'there is no file "gone.json"'),
    ("[[runs]]\nconfigs = 'there.json'", 2, "did you mean `config`?"),
    ("gpus = 8\ngpus = 9", 2, "not valid TOML"),
    ("gpus =", 1, "not valid TOML"),
]


@pytest.mark.parametrize(("text", "line", "message"), MISTAKES)
def test_a_mistake_is_told_with_its_line(text: str, line: int, message: str) -> None:
    Path("there.json").write_text("{}")
    with pytest.raises(SettingsError) as caught:
        load(text)
    assert str(caught.value).startswith(f"dslint.toml:{line}: ")
    assert message in str(caught.value)


def test_lines_are_those_of_pyproject() -> None:
    with pytest.raises(SettingsError, match=r"^pyproject\.toml:4: gpus: "):
        load('[project]\nname = "x"\n[tool.dslint]\ngpus = -1\n', name="pyproject.toml")
    with pytest.raises(SettingsError, match=r"^pyproject\.toml:2: \[tool\.dslint\]: must be a table"):
        load("[tool]\ndslint = 1 # tool.dslint", name="pyproject.toml")


def test_a_folder_or_bytes_that_are_no_text_are_no_settings() -> None:
    Path("dslint.toml").write_bytes(b"gpus = 1\nx = '\xff'")
    with pytest.raises(SettingsError, match="not UTF-8"):
        load_settings(["."], RULES)
    with pytest.raises(SettingsError, match="folder"):
        load_settings(["."], RULES, ".")


@given(
    st.binary(max_size=300)
    | st.text(alphabet="[]{}=\"'\\.#,\n tool.dslintgpus_runs01", max_size=200).map(str.encode)
)
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_bytes_give_anything_but_settings_or_a_message(data: bytes) -> None:
    for name in ("dslint.toml", "pyproject.toml", "x.toml"):
        with suppress(SettingsError):
            reader.read_settings(name, data, RULES)


def test_deep_nesting_and_huge_numbers_are_told() -> None:
    for value in ("[" * 50_000, "[" * 50_000 + "]" * 50_000, "1" * 10_000, "{a=" * 20_000):
        with pytest.raises(SettingsError):
            load(f"gpus = {value}")


VALUES = st.recursive(
    st.booleans()
    | st.integers(-2, 9)
    | st.floats(allow_nan=False)
    | st.sampled_from(["", "DS2", "hf", "*.json", "x"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["a", "a.b", "config", "gpus", "*"]), inner, max_size=2)
    ),
    max_leaves=4,
)
FIXED = {"gpu": st.just("a100") | st.integers(), "deepspeed": st.just("0.16.4") | st.booleans()}


# The schema says the same


def test_schema_and_reader_know_the_same_keys() -> None:
    assert set(SCHEMA["properties"]) == set(reader.KEYS)
    assert set(SCHEMA["$defs"]["run"]["properties"]) == set(reader.RUN_KEYS)
    assert SCHEMA["properties"]["fail-on"]["enum"] == list(reader.FAIL_ON)
    assert SCHEMA["properties"]["loader"]["enum"] == list(reader.LOADERS)
    assert [one["required"] for one in SCHEMA["$defs"]["run"]["anyOf"]] == [[key] for key in reader.RUN_FILES]


BEYOND_A_SCHEMA = ("no rule", "not a pattern", "no file", "b9000", "latest", "not valid TOML")
"""What only dslint itself can tell: the names of rules, GPUs, files and releases."""


@pytest.mark.parametrize(("text", "line", "message"), MISTAKES)
def test_the_schema_refuses_what_the_reader_refuses(text: str, line: int, message: str) -> None:
    if any(word in message for word in (*BEYOND_A_SCHEMA, "batch-size-mismatch?")):
        return
    assert list(Draft202012Validator(SCHEMA).iter_errors(tomllib.loads(text)))


@given(st.data())
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300)
def test_schema_and_reader_agree_on_shapes(data: Any) -> None:
    key = data.draw(st.sampled_from(reader.KEYS))
    value = data.draw(FIXED.get(key, VALUES))
    Path("x").write_text("{}")
    table = {key: value}
    maker = reader._Reader("dslint.toml", str(Path.cwd()), "", (), RULES)
    try:
        maker.settings(table)
        refusal = None
    except SettingsError as error:
        refusal = str(error)
    if refusal is not None and re.search("no rule|no file|not a pattern|GPU|release|version", refusal):
        return
    assert (refusal is None) == Draft202012Validator(SCHEMA).is_valid(table), (table, refusal)


# Patterns


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*.json", "a.json", True),
        ("*.json", "conf/a.json", True),
        ("conf", "conf/a.json", True),
        ("conf/", "x/conf/a.json", True),
        ("conf/*.json", "conf/a.json", True),
        ("conf/*.json", "x/conf/a.json", False),
        ("conf/*.json", "conf/b/a.json", False),
        ("conf/**", "conf/b/a.json", True),
        ("**/b/*.json", "conf/b/a.json", True),
        ("**/b/*.json", "b/a.json", True),
        ("conf/**/a.json", "conf/a.json", True),
        ("/a.json", "a.json", True),
        ("/a.json", "x/a.json", False),
        ("./conf", "conf/a.json", True),
        ("ds_[ab].json", "ds_a.json", True),
        ("ds_[!ab].json", "ds_a.json", False),
        ("ds_?.json", "ds_a.json", True),
        ("a.json", "axjson", False),
        ("onf", "conf/a.json", False),
    ],
)
def test_patterns(pattern: str, path: str, matches: bool) -> None:
    assert glob_matches(pattern, path) is matches


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_text_is_a_pattern_or_not(pattern: str, path: str) -> None:
    if is_glob(pattern):
        glob_matches(pattern, path)


def test_files_outside_of_the_folder_are_never_meant() -> None:
    settings = load("exclude = ['**']", "a", name="a/dslint.toml")
    assert settings is not None
    assert settings.excludes("a/x.json")
    assert not settings.excludes("x.json")


# Lines of TOML


def test_lines_of_values() -> None:
    text = '''a = 1 # [x]
b = """
[not.a.table]
k = 1
"""
c.d = ["x", # one
  "y", [1,
  2]]
[t."q.r"]
k = { l = 1, "m" = ['n'] }

[[e]]
k = 1
[[e]]
[e.f]
k = 2
'''
    tomllib.loads(text)
    lines = toml_lines(text)
    expected = {
        ("a",): 1, ("b",): 2, ("c",): 6, ("c", "d"): 6, ("c", "d", 1): 7, ("c", "d", 2, 1): 8, ("t", "q.r"): 9,
        ("t", "q.r", "k", "m", 0): 10, ("e", 0, "k"): 13, ("e", 1): 14, ("e", 1, "f", "k"): 16,
    }  # fmt: skip
    assert {path: lines[path] for path in expected} == expected
    assert line_of(lines, ("e", 1, "nothing", 3)) == 14


@given(st.text(alphabet="[]{}=\"'\\.#,\n ab1", max_size=80))
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_lines_never_fail_on_valid_toml(text: str) -> None:
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    lines = toml_lines(text)
    assert all(("\\" in key or (key,) in lines) for key in content)

"""The promises of the command line that scenarios don't show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dslint import __version__

ROOT = Path(__file__).parent.parent
CLEAN = (
    '{"train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": true}, '
    '"optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}, "zero_optimization": {"stage": 2}}'
)
HEAVY = ("torch", "deepspeed", "transformers", "accelerate", "libcst", "jsonschema", "yaml", "importlib.metadata")


def modules_after(folder: Path, *arguments: str) -> set[str]:
    """The modules that a command has loaded when it ends."""
    code = (
        "import sys\nfrom dslint.cli import main\n"
        f"try:\n    main({list(arguments)!r})\nexcept SystemExit:\n    pass\n"
        "print('\\n' + '\\x1f'.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.splitlines()[-1].split("\x1f"))


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        (["--version"], set()),
        (["--help"], set()),
        (["explain", "DS201"], set()),
        (["rules"], set()),
        (["schema"], set()),
        (["check", "ds_config.json", "--gpus", "8", "--gpu", "a100"], set()),
        (["check", "wrong.json"], {"jsonschema"}),
        (["check", "accelerate.yaml"], {"yaml"}),
        (["check", "ds_config.json", "--fix", "--unsafe-fixes"], set()),
        (["modernise", "ds_config.json"], set()),
        (["doctor", "ds_config.json"], set()),
    ],
)
def test_heavy_modules_are_loaded_only_where_they_are_needed(
    tmp_path: Path, arguments: list[str], allowed: set[str]
) -> None:
    (tmp_path / "ds_config.json").write_text(CLEAN)
    (tmp_path / "wrong.json").write_text('{"train_batch_size": "8"}')
    (tmp_path / "accelerate.yaml").write_text("distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 2}\n")
    modules_after(tmp_path, "rules")  # fills the cache of rules, which takes a YAML reader once
    loaded = modules_after(tmp_path, *arguments)
    assert {name for name in HEAVY if name in loaded} <= allowed
    if "--fix" not in arguments and arguments[0] != "modernise":
        assert not any(name.startswith("dslint.fix") for name in loaded)


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_what_needs_no_work_loads_nothing_that_is_slow_to_import(tmp_path: Path, option: str) -> None:
    assert not {"dataclasses", "inspect", "json", "dslint.runs", "dslint.rulebook"} & modules_after(
        tmp_path, option
    )


@pytest.mark.parametrize("command", [[sys.executable, "-m", "dslint"]])
def test_version(command: list[str]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*command, "--version"], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"dslint {__version__}\n"


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dslint", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_json_report_keeps_its_contract(tmp_path: Path) -> None:
    from jsonschema import Draft202012Validator

    schema = json.loads((ROOT / "schemas" / "report.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    (tmp_path / "a.json").write_text(
        '{"train_batch_size": 7, "train_micro_batch_size_per_gpu": 2, "fp16": {"x": 1}}'
    )
    (tmp_path / "b.json").write_text('{"train_batch_size": 8}')
    done = run(tmp_path, "check", "a.json", "b.json", "missing.json", "--format", "json", "--deepspeed", "0.19.8")
    report = json.loads(done.stdout)
    Draft202012Validator(schema).validate(report)
    assert report["findings"]
    assert report["undecided"]
    assert report["errors"]


def test_columns_count_characters(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(
        '{"_ü": "ä😀", "zero_optimisation": {}, "train_micro_batch_size_per_gpu": 1}'
    )
    report = json.loads(run(tmp_path, "check", "ds.json", "--format", "json").stdout)
    finding = report["findings"][0]
    assert (finding["column"], finding["end_column"]) == (14, 37)


def test_colour_is_for_terminals_and_no_color_is_respected(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text("{}")
    assert "\033[" not in run(tmp_path, "check", "ds.json").stdout
    assert "\033[" in run(tmp_path, "check", "ds.json", FORCE_COLOR="1", NO_COLOR="").stdout
    assert "\033[" not in run(tmp_path, "check", "ds.json", FORCE_COLOR="1", NO_COLOR="1").stdout


def test_the_schema_of_a_release_is_printed(tmp_path: Path) -> None:
    new = json.loads(run(tmp_path, "schema").stdout)
    old = json.loads(run(tmp_path, "schema", "--deepspeed", "0.16.9").stdout)
    assert new["properties"]["gradient_clipping"]["default"] == 1.0
    assert old["properties"]["gradient_clipping"]["default"] == 0.0
    assert "not" in new["properties"]["amp"]
    assert "not" not in old["properties"]["amp"]


def test_rules_as_json(tmp_path: Path) -> None:
    rules = json.loads(run(tmp_path, "rules", "--format", "json").stdout)
    assert len(rules) > 45
    assert {"code", "name", "area", "severity", "summary", "why", "deepspeed", "fix", "source"} == set(rules[0])


def test_fail_on_never_is_always_fine(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text("{}")
    assert run(tmp_path, "check", "ds.json").returncode == 1
    assert run(tmp_path, "check", "ds.json", "--fail-on", "never").returncode == 0


def test_nothing_is_written_beside_the_checked_files(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(CLEAN)
    run(tmp_path, "check", ".")
    assert [path.name for path in tmp_path.iterdir()] == ["ds.json"]


def test_a_cache_that_cannot_be_written_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "ds.json").write_text("{}")
    done = run(tmp_path, "check", "ds.json", XDG_CACHE_HOME=str(tmp_path / "file"))
    assert done.returncode == 1
    assert done.stderr == ""


def test_a_broken_cache_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text("{}")
    cache = tmp_path / "cache" / "dslint"
    cache.mkdir(parents=True)
    for text in ("not json", '{"fingerprint": "x"}', "[]", "{}"):
        (cache / f"rules-{__version__}.json").write_text(text)
        assert run(tmp_path, "check", "ds.json", XDG_CACHE_HOME=str(tmp_path / "cache")).returncode == 1


def test_gitignored_files_are_not_searched(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("build/\n")
    for folder in ("build", "conf"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "ds_config.json").write_text('{"gradient_clipping": 1}')
    done = run(tmp_path, "check")
    assert "conf/ds_config.json" in done.stdout
    assert "build/ds_config.json" not in done.stdout

"""`check --fix`, `--diff` and `modernise` as a user runs them, beside the scenarios."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import validate

from dslint import fix_commands
from dslint.cli import main
from dslint.documents.source import Source

ROOT = Path(__file__).resolve().parents[2]
AMP = b'\xef\xbb\xbf{\r\n\t"train_micro_batch_size_per_gpu" : 1, // a rank\r\n\t"amp": {"enabled": false}\r\n}'
WITHOUT_AMP = b'\xef\xbb\xbf{\r\n\t"train_micro_batch_size_per_gpu" : 1 // a rank\r\n}'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_line_ends_tabs_comments_and_byte_order_mark_stay(folder: Path) -> None:
    (folder / "ds.json").write_bytes(AMP)
    assert main(["check", "ds.json", "--fix", "--deepspeed", "0.19.8"]) == 0
    assert (folder / "ds.json").read_bytes() == WITHOUT_AMP


def test_the_second_time_nothing_changes(folder: Path) -> None:
    (folder / "ds.json").write_bytes(AMP)
    main(["check", "ds.json", "--fix", "--deepspeed", "0.19.8"])
    status = (folder / "ds.json").stat()
    main(["check", "ds.json", "--fix", "--deepspeed", "0.19.8"])
    assert (folder / "ds.json").stat().st_mtime_ns == status.st_mtime_ns


def test_diff_writes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "ds.json").write_bytes(AMP)
    assert main(["check", "ds.json", "--diff", "--deepspeed", "0.19.8"]) == 1
    assert (folder / "ds.json").read_bytes() == AMP
    assert '-\t"amp"' in capsys.readouterr().out


def test_diff_of_a_right_file_is_empty(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "ds.json").write_bytes(WITHOUT_AMP)
    assert main(["check", "ds.json", "--diff", "--deepspeed", "0.19.8"]) == 0
    assert capsys.readouterr().out == ""


def test_a_file_that_changes_meanwhile_is_left_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "ds.json").write_bytes(AMP)
    writes = fix_commands.write

    def interrupted(before: Source, after: Source) -> None:
        (folder / "ds.json").write_bytes(b"somebody else's")
        writes(before, after)

    monkeypatch.setattr(fix_commands, "write", interrupted)
    assert main(["check", "ds.json", "--fix", "--deepspeed", "0.19.8"]) == 2
    assert (folder / "ds.json").read_bytes() == b"somebody else's"
    assert "ds.json: changed since dslint read it" in capsys.readouterr().err


def test_two_names_of_one_file_are_mended_once(folder: Path) -> None:
    (folder / "ds.json").write_bytes(AMP)
    (folder / "link.json").symlink_to("ds.json")
    assert main(["check", "ds.json", "link.json", "--fix", "--deepspeed", "0.19.8"]) == 0
    assert (folder / "link.json").is_symlink()
    assert (folder / "ds.json").read_bytes() == WITHOUT_AMP


def test_files_that_can_not_be_read_do_not_keep_others_from_being_mended(folder: Path) -> None:
    (folder / "ds.json").write_bytes(AMP)
    (folder / "other.json").write_bytes(b"\xff\xfe\x00")
    assert main(["check", "ds.json", "other.json", "gone.json", "--fix", "--deepspeed", "0.19.8"]) == 2
    assert (folder / "ds.json").read_bytes() == WITHOUT_AMP
    assert (folder / "other.json").read_bytes() == b"\xff\xfe\x00"


@pytest.mark.parametrize("options", [["--fix"], ["--fix", "--unsafe-fixes"], []])
def test_the_json_report_keeps_its_contract(
    folder: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "ds.json").write_text('{"amp": {"enabled": false}, "fp16": {"enabled": true, "no_key": 1}}')
    main(["check", "ds.json", "--format", "json", *options])
    report = json.loads(capsys.readouterr().out)
    validate(report, json.loads((ROOT / "schemas" / "report.schema.json").read_text("utf-8")))
    assert ("fixes" in report) == bool(options)


def test_a_config_that_nobody_named_is_not_changed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """run.sh leads to the config, but --fix was asked for run.sh alone."""
    (folder / "ds.json").write_bytes(AMP)
    (folder / "train.py").write_text(
        "import deepspeed\n\nengine, *_ = deepspeed.initialize(model=None, config='ds.json')\n"
    )
    (folder / "run.sh").write_text("deepspeed --num_gpus 8 train.py\n")
    main(["check", "run.sh", "--fix", "--deepspeed", "0.19.8"])
    assert (folder / "ds.json").read_bytes() == AMP
    assert (
        "not fixed ds.json:3:2: DS048 delete amp: it changes ds.json, which is not among"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize("choice", ["DS101", "DS101=x", "DS999=1", "=1", "DS101=0", "DS007=1"])
def test_a_choice_that_makes_no_sense_is_refused(
    folder: Path, choice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "ds.json").write_bytes(AMP)
    assert main(["check", "ds.json", "--fix", "--choose", choice]) == 2
    assert f"--choose {choice}: " in capsys.readouterr().err
    assert (folder / "ds.json").read_bytes() == AMP


@pytest.mark.parametrize(
    "options",
    [["--unsafe-fixes"], ["--choose", "DS101=1"], ["--smoke-timeout", "5"], ["--unsafe-fixes", "--smoke"]],
)
def test_an_option_that_would_do_nothing_is_refused(folder: Path, options: list[str]) -> None:
    (folder / "ds.json").write_bytes(AMP)
    assert main(["check", "ds.json", *options]) == 2


def test_a_choice_may_name_the_rule(folder: Path) -> None:
    (folder / "ds.json").write_text(
        '{"train_micro_batch_size_per_gpu": 1, "fp16": {"enabled": true}, "bf16": {"enabled": true}}'
    )
    main(["check", "ds.json", "--fix", "--choose", "fp16-and-bf16=2"])
    assert json.loads((folder / "ds.json").read_text())["bf16"] == {"enabled": False}


def test_modernise_writes_the_file_and_says_what_is_left(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "ds.json").write_text('{"train_batch_size": 8, "bfloat16": {"enabled": true}, "grad_clip": 1}')
    main(["modernise", "ds.json", "--format", "json"])
    (result,) = json.loads(capsys.readouterr().out)
    assert result["changed"]
    assert "bf16" in json.loads((folder / "ds.json").read_text())


def test_modernise_looks_into_folders_for_configs_only(folder: Path) -> None:
    (folder / "ds_config.json").write_text('{"train_batch_size": 8, "zero_optimization": true}')
    (folder / "package.json").write_text('{"zero_optimization": true}')
    assert main(["modernise", "."]) == 0
    assert json.loads((folder / "ds_config.json").read_text())["zero_optimization"] == {"stage": 1}
    assert json.loads((folder / "package.json").read_text()) == {"zero_optimization": True}


def test_a_script_without_a_word_of_deepspeed_is_mended_where_a_command_in_the_folder_leads_to_it(
    folder: Path,
) -> None:
    (folder / "ds_config.json").write_text(
        '{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3}}'
    )
    (folder / "train.py").write_text(
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments, HfArgumentParser\n\n"
        "args = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()[0]\n"
        'model = AutoModelForCausalLM.from_pretrained("gpt2", device_map="auto")\n'
        "Trainer(model=model, args=args).train()\n"
    )
    (folder / "run.sh").write_text(
        "torchrun --nproc_per_node 8 train.py --output_dir out --deepspeed ds_config.json\n"
    )
    main(["check", ".", "--fix", "--unsafe-fixes", "--deepspeed", "0.19.8"])
    assert "device_map" not in (folder / "train.py").read_text()

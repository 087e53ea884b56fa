"""`dslint check --smoke` from the command line, on real DeepSpeed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import validate

pytestmark = pytest.mark.deepspeed

ROOT = Path(__file__).resolve().parents[2]
WRONG = """{
  "train_micro_batch_size_per_gpu": 4,  // a rank
  "fp16": {"enabled": true},
  "bf16": {"enabled": true},
  "zero_optimization": {"stage": 2, "stage3_max_live_parameters": 100000}
}
"""
RIGHT = '{"train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}}\n'


def check(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dslint", "check", "--gpus", "8", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_each_finding_carries_what_deepspeed_did(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(WRONG)
    done = check(tmp_path, "ds.json", "--smoke", "--format", "json")
    report: dict[str, Any] = json.loads(done.stdout)
    validate(report, json.loads((ROOT / "schemas" / "report.schema.json").read_text("utf-8")))
    said = {one["code"]: one["smoke"] for one in report["findings"]}
    assert said["DS101"]["verdict"] == "confirmed"
    assert "AssertionError" in said["DS101"]["told"]
    assert said["DS307"]["verdict"] == "confirmed"
    assert done.returncode == 1
    assert (tmp_path / "ds.json").read_text() == WRONG


def test_a_fix_is_written_where_the_mended_run_passes(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(WRONG)
    done = check(tmp_path, "ds.json", "--smoke", "--fix", "--choose", "DS101=1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "(confirmed: AssertionError" in done.stdout
    assert (tmp_path / "ds.json").read_text() == WRONG.replace(
        '"fp16": {"enabled": true}', '"fp16": {"enabled": false}'
    ).replace(', "stage3_max_live_parameters": 100000', "")


def test_no_fix_is_written_where_the_mended_run_still_fails(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(WRONG)
    done = check(tmp_path, "ds.json", "--smoke", "--fix")
    assert "the mended run of ds.json doesn't pass: AssertionError" in done.stdout
    assert (tmp_path / "ds.json").read_text() == WRONG
    assert done.returncode == 1


def test_runs_without_findings_are_tried_when_asked_for(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(RIGHT)
    done = check(tmp_path, "ds.json", "--smoke=all")
    assert "smoke ds.json: passes" in done.stdout
    assert done.returncode == 0


def test_a_run_that_fails_though_nothing_was_found_fails_the_step(tmp_path: Path) -> None:
    """What no rule knows: here the rule that does is not selected."""
    (tmp_path / "ds.json").write_text(WRONG)
    done = check(tmp_path, "ds.json", "--smoke=all", "--select", "DS9")
    assert "smoke ds.json: fails" in done.stdout
    assert done.returncode == 1


def test_a_python_without_deepspeed_is_said_to_have_none(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(WRONG)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    done = check(tmp_path, "ds.json", "--smoke", "--smoke-python", str(tmp_path / "bare" / "bin" / "python"))
    assert done.returncode == 2
    assert "not installed" in done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_is_started_where_nothing_has_to_be_tried(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(RIGHT)
    done = check(tmp_path, "ds.json", "--smoke", "--smoke-python", "/nowhere/python")
    assert "Smoke: nothing to try." in done.stdout
    assert done.returncode == 0

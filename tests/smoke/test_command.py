"""`dslint smoke` as a user meets it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dslint.smoke.processes import MARK

ROOT = Path(__file__).parents[2]
GOOD = {"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": True}, "zero_optimization": {"stage": 2}}
BAD = {**GOOD, "fp16": {"enabled": True}}

pytestmark = pytest.mark.deepspeed


def dslint(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dslint", "smoke", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def write(folder: Path, content: Any, name: str = "ds_config.json") -> None:
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))


def test_a_config_that_trains_and_one_that_does_not(tmp_path: Path) -> None:
    write(tmp_path, GOOD, "good.json")
    write(tmp_path, BAD, "bad.json")
    done = dslint(tmp_path, "good.json", "bad.json", "--gpus", "8")
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == (
        "passed good.json: 8 simulated ranks (from --gpus) on CPU, answering like a GPU with fp16 and bf16"
    )
    assert (
        lines[1] == "  ZeRO stage 2, bfloat16, AdamW, 16 samples a step (2 a rank and forward pass, 1 accumulated)"
    )
    assert "  AssertionError during parse: " in done.stdout
    assert lines[-1] == "1 passed, 1 failed"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.json", "good.json"]


def test_json_output_fits_its_schema(tmp_path: Path) -> None:
    write(tmp_path, GOOD, "good.json")
    write(tmp_path, BAD, "bad.json")
    done = dslint(tmp_path, "good.json", "bad.json", "--format", "json", "--gpus", "64")
    report = json.loads(done.stdout)
    jsonschema.validate(report, json.loads((ROOT / "schemas" / "smoke.schema.json").read_text()))
    good, bad = report["results"]
    assert (good["outcome"], good["ended_in"], good["batch"]["train"]) == ("passed", "done", 128)
    assert (bad["outcome"], bad["ended_in"], bad["exception"]) == ("failed", "parse", "AssertionError")


def test_real_ranks_on_the_cpu_agree(tmp_path: Path) -> None:
    write(tmp_path, {**GOOD, "zero_optimization": {"stage": 3}})
    done = dslint(tmp_path, "ds_config.json", "--real", "--device", "cpu", "--gpus", "2", "--format", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = json.loads(done.stdout)["results"]
    assert (result["mode"], result["ranks"], result["restored"]) == ("real", 2, True)
    assert result["notes"]
    assert len(result["peak_memory_bytes"]) == 2
    assert (
        min(result["peak_memory_bytes"]) > 2 * 500_000_000
    )  # the bucket that DeepSpeed takes where nothing is said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a DeepSpeed config to try, or a script with --script"),
        (["nowhere.json"], "nowhere.json: "),
        (["ds_config.json", "--real"], "--real: torch sees no GPU here; --real --device cpu trains real ranks"),
        (["ds_config.json", "--device", "cuda"], "--device cuda: torch sees no GPU here"),
        (["ds_config.json", "--real", "--device", "cpu", "--nodes", "2"], "--nodes needs --simulate"),
        (["ds_config.json", "--real", "--device", "cpu", "--gpu", "v100"], "--gpu needs --simulate"),
        (["ds_config.json", "--real", "--simulate"], "not allowed with"),
        (["ds_config.json", "--share-gpus"], "--share-gpus goes with --real and configs"),
        (["--script", "train.py", "--real", "--share-gpus"], "--share-gpus goes with --real and configs"),
        (["ds_config.json", "--gpu", "nonsense"], "--gpu nonsense: "),
        (["ds_config.json", "--timeout", "-1"], "'-1' is not a number of seconds"),
        (["ds_config.json", "--script", "train.py"], "a config or --script, not both"),
        (["ds_config.json", "--", "x"], "arguments after -- belong to a script"),
        (["--script", "nowhere.py"], "nowhere.py: no such script"),
        (["ds_config.json", "--python", "/nowhere/python"], "can't start /nowhere/python"),
        (["package.json"], "none of its keys is one of DeepSpeed's"),
    ],
)
def test_what_can_not_be_done_is_said_with_exit_code_2(tmp_path: Path, arguments: list[str], message: str) -> None:
    write(tmp_path, GOOD)
    write(tmp_path, {"name": "x"}, "package.json")
    done = dslint(tmp_path, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_python_without_deepspeed_is_told_what_to_install(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    done = dslint(tmp_path, "ds_config.json", "--python", str(tmp_path / "bare" / "bin" / "python"))
    assert done.returncode == 2
    assert "torch and deepspeed not installed" in done.stderr
    assert "pip install 'deepspeed-lint[smoke]'" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "arguments", [[], ["--real", "--device", "cpu", "--gpus", "2"]], ids=["simulated", "real"]
)
def test_an_interrupt_leaves_nothing_behind(tmp_path: Path, number: signal.Signals, arguments: list[str]) -> None:
    write(tmp_path, GOOD)
    places = tmp_path / "tmp"
    places.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "dslint", "smoke", "ds_config.json", *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "", "TMPDIR": str(places)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
    )
    deadline = time.monotonic() + 60
    while not (left := _of_this_smoke(places)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left
    time.sleep(2)
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert "Traceback" not in errors
    assert not _of_this_smoke(places)
    assert list(places.iterdir()) == []


def _of_this_smoke(places: Path) -> list[int]:
    """Processes with a smoke's mark whose temporary files lie in a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            content = entry.read_bytes()
        except OSError:
            continue
        if MARK.encode() + b"=" in content and str(places).encode() in content:
            found.append(int(entry.parent.name))
    return found

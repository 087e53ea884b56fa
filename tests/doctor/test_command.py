"""`dslint doctor` from end to end, on the machine that runs the tests."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TORCH_EXTENSIONS_DIR": str(folder / "ops"), "PYTHONPATH": str(ROOT), **variables}
    environment.pop("TORCH_CUDA_ARCH_LIST", None) if "TORCH_CUDA_ARCH_LIST" not in variables else None
    return subprocess.run(
        [sys.executable, "-m", "dslint", "doctor", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


@pytest.fixture
def bare_python(tmp_path: Path) -> str:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    return str(tmp_path / "bare" / "bin" / "python")


def test_a_python_without_torch_gets_the_extra_named(tmp_path: Path, bare_python: str) -> None:
    done = run(tmp_path, "--python", bare_python)
    assert done.returncode == 1
    assert "pip install 'deepspeed-lint[smoke]'" in done.stdout
    assert "[no-torch]" in done.stdout
    assert "[no-deepspeed]" in done.stdout
    assert "Found 2 errors in this environment." in done.stdout
    assert done.stderr == ""


def test_the_text_is_plain_unless_colour_is_asked_for(tmp_path: Path, bare_python: str) -> None:
    assert "\033[" not in run(tmp_path, "--python", bare_python).stdout
    assert "\033[" in run(tmp_path, "--python", bare_python, FORCE_COLOR="1", NO_COLOR="").stdout


def test_the_json_holds_facts_and_troubles(tmp_path: Path, bare_python: str) -> None:
    done = run(tmp_path, "--python", bare_python, "--format", "json")
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert set(report) == {"version", "troubles", "environment"}
    assert report["environment"]["python"]["path"] == bare_python
    assert {trouble["name"] for trouble in report["troubles"]} == {"no-torch", "no-deepspeed"}
    assert {"name", "severity", "subject", "message", "remedy"} == set(report["troubles"][0])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--python", "/no/such/python"], "--python /no/such/python: no such program"),
        (["missing.json"], "missing.json: no such file"),
        (["broken.json"], "broken.json:1:"),
        (["--python", "false"], "--python false: gives no answer"),
    ],
)
def test_what_cannot_be_examined_is_exit_code_2(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "broken.json").write_text("{")
    done = run(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_torch_stays_out_of_the_commands_own_process(tmp_path: Path, bare_python: str) -> None:
    code = (
        "import sys\nfrom dslint.cli import main\n"
        f"main(['doctor', '--python', {bare_python!r}])\n"
        "assert not {'torch', 'deepspeed', 'transformers', 'accelerate', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)


@pytest.mark.deepspeed
def test_a_stale_lock_and_a_bad_arch_list_are_found_with_the_real_deepspeed(tmp_path: Path) -> None:
    lock = tmp_path / "ops" / "fused_adam" / "lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    os.utime(lock, (time.time() - 86400,) * 2)
    done = run(tmp_path, "--format", "json", TORCH_CUDA_ARCH_LIST="9.0a")
    report = json.loads(done.stdout)
    troubles = {trouble["name"]: trouble for trouble in report["troubles"]}
    assert done.returncode == 1
    assert troubles["stale-build-lock"]["remedy"] == f"rm {lock}"
    assert "ValueError" in troubles["arch-list-refused"]["message"]
    assert report["environment"]["python"]["versions"]["deepspeed"] == importlib.metadata.version("deepspeed")
    assert report["environment"]["ops_folder"]["path"] == str(tmp_path / "ops")
    assert lock.exists()


@pytest.mark.deepspeed
def test_a_config_narrows_the_ops_and_nothing_is_built(tmp_path: Path) -> None:
    config = {"train_micro_batch_size_per_gpu": 1, "optimizer": {"type": "Adam"}}
    config["zero_optimization"] = {"stage": 2, "offload_optimizer": {"device": "cpu"}}
    (tmp_path / "ds.json").write_text(json.dumps(config))
    report = json.loads(run(tmp_path, "ds.json", "--format", "json").stdout)
    names = {op["name"] for op in report["environment"]["deepspeed"]["ops"]}
    assert "cpu_adam" in names
    assert "fused_adam" not in names
    assert not (tmp_path / "ops").exists()

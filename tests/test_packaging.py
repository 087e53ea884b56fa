"""The wheel, installed elsewhere, and the pre-commit hook in a consumer's repository: with the real tools."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BAD = '{"train_micro_batch_size_per_gpu": 1, "fp16": {"enabled": true}, "bf16": {"enabled": true}}\n'


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**clean, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a new environment that has only the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    built = run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder / "dist", ROOT, cwd=folder)
    assert built.returncode == 0, built.stderr
    (wheel,) = (folder / "dist").glob("deepspeed_lint-*.whl")
    venv.create(folder / "env", with_pip=True)
    programs = folder / "env" / "bin"
    done = run(programs / "python", "-m", "pip", "install", "-q", wheel, cwd=folder)
    assert done.returncode == 0, done.stderr
    return programs


def test_the_wheel_works_away_from_the_checkout(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "ds_config.json").write_text(BAD)
    done = run(installed / "dslint", "check", ".", cwd=tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert "DS101" in done.stdout
    assert done.returncode == 1
    assert run(installed / "dslint", "explain", "DS101", cwd=tmp_path).returncode == 0
    assert '"zero_optimization"' in run(installed / "dslint", "schema", cwd=tmp_path).stdout
    assert run(installed / "python", "-m", "dslint", "--version", cwd=tmp_path).stdout.startswith("dslint ")


def test_without_an_installed_deepspeed_the_version_is_assumed_and_said(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "ds_config.json").write_text('{"train_micro_batch_size_per_gpu": 1, "amp": {"enabled": true}}\n')
    done = run(installed / "dslint", "check", ".", cwd=tmp_path)
    assert "warning DS035" in done.stdout
    assert "(from DeepSpeed 0.19.8 on)" in done.stdout
    assert "no DeepSpeed version found: checked for 0.19.8" in done.stdout
    assert done.returncode == 0


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.invalid"]
    done = run("git", *identity, *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
def test_the_pre_commit_hook_works_for_a_consumer(tmp_path: Path) -> None:
    consumer = tmp_path / "consumer"
    (consumer / "conf").mkdir(parents=True)
    git(consumer, "init", "-q")
    (consumer / "conf" / "ds_config_zero2.json").write_text(BAD)
    (consumer / "conf" / "accelerate.yaml").write_text(
        "distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 2, offload_param_device: cpu}\nnum_processes: 8\n"
    )
    (consumer / "chart.yaml").write_text("{{- if .Values.x }}\na: [\n")
    (consumer / "package.json").write_text("{}\n")
    (consumer / "train.py").write_text("import deepspeed\n")
    (consumer / "run.sh").write_text("deepspeed train.py\n")
    git(consumer, "add", "-A")
    done = run(
        sys.executable, "-m", "pre_commit", "try-repo", ROOT, "dslint", "--all-files", "--verbose",
        cwd=consumer, PRE_COMMIT_HOME=str(tmp_path / "pre-commit"), XDG_CACHE_HOME=str(tmp_path / "cache"),
    )  # fmt: skip
    output = done.stdout + done.stderr
    assert "conf/ds_config_zero2.json:1:75: error DS101" in output, output
    assert "conf/accelerate.yaml:2:35: warning DS401" in output, output
    assert "package.json" not in output
    assert "chart.yaml" not in output
    assert "- exit code: 1" in output
    assert done.returncode == 1

    (consumer / "conf" / "ds_config_zero2.json").write_text(BAD.replace('"fp16": {"enabled": true}, ', ""))
    git(consumer, "add", "-A")
    done = run(
        sys.executable, "-m", "pre_commit", "try-repo", ROOT, "dslint", "--all-files",
        cwd=consumer, PRE_COMMIT_HOME=str(tmp_path / "pre-commit"), XDG_CACHE_HOME=str(tmp_path / "cache"),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr

    (consumer / "conf" / "ds_config_zero2.json").write_text(
        '{"train_micro_batch_size_per_gpu": 1, "amp": {"enabled": false}}\n'
    )
    git(consumer, "add", "-A")
    done = run(
        sys.executable, "-m", "pre_commit", "try-repo", ROOT, "dslint-fix", "--all-files",
        cwd=consumer, PRE_COMMIT_HOME=str(tmp_path / "pre-commit"), XDG_CACHE_HOME=str(tmp_path / "cache"),
    )  # fmt: skip
    assert "files were modified by this hook" in done.stdout + done.stderr
    assert (consumer / "conf" / "ds_config_zero2.json").read_text() == '{"train_micro_batch_size_per_gpu": 1}\n'

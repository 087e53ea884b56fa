"""The GitHub Action: its form, and its scripts, executed as GitHub's runner executes them."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
STEPS: dict[str, dict[str, Any]] = {step["id"]: step for step in ACTION["runs"]["steps"]}
BAD = '{"train_micro_batch_size_per_gpu": 1, "fp16": {"enabled": true}, "bf16": {"enabled": true}}\n'
GOOD = BAD.replace('"fp16": {"enabled": true}, ', "")
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")


def test_the_action_is_composite_and_uses_nobody_elses() -> None:
    assert ACTION["runs"]["using"] == "composite"
    assert ACTION["name"] == "dslint"
    assert ACTION["description"]
    for step in ACTION["runs"]["steps"]:
        assert step["shell"] == "bash"
        assert "uses" not in step


def test_nothing_is_pasted_into_a_script() -> None:
    for step in STEPS.values():
        assert "${{" not in step["run"]


def test_every_input_is_declared_described_and_used() -> None:
    used = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text("utf-8")))
    assert used == set(ACTION["inputs"])
    for declared in ACTION["inputs"].values():
        assert declared["description"]
        assert isinstance(declared["default"], str)


def test_every_output_of_a_step_that_is_used_is_written() -> None:
    used = re.findall(r"steps\.(\w+)\.outputs\.([\w-]+)", (ROOT / "action.yml").read_text("utf-8"))
    assert used
    for step, output in used:
        assert f'echo "{output}=' in STEPS[step]["run"]


@pytest.mark.parametrize("step", STEPS.values(), ids=lambda step: str(step["id"]))
def test_a_script_reads_the_variables_that_its_step_sets(step: dict[str, Any]) -> None:
    read = set(re.findall(r"\$\{?((?:INPUT_|DSLINT)[A-Z_]*)", step["run"]))
    assert read == set(step["env"])


@dataclass(frozen=True)
class Outcome:
    """What a step did."""

    code: int
    output: str
    outputs: dict[str, str]


@dataclass(frozen=True)
class Runner:
    """As much of GitHub's runner as executes one step.

    Attributes:
        workspace: the checkout of the repository that is checked.
        temp: the folder for temporary files.
        programs: a folder of programs that stand before all others.
    """

    workspace: Path
    temp: Path
    programs: Path | None = None

    def run(self, step: str, inputs: dict[str, str], **outputs: str) -> Outcome:
        """Executes the script of a step; `outputs` are those of earlier steps."""
        known = {f"inputs.{name}": declared["default"] for name, declared in ACTION["inputs"].items()}
        known |= {f"inputs.{name}": value for name, value in inputs.items()}
        known |= {f"steps.install.outputs.{name}": value for name, value in outputs.items()}
        script, told = self.temp / "step.sh", self.temp / "outputs"
        script.write_text(STEPS[step]["run"])
        told.write_text("")
        own = {name: evaluated(value, known) for name, value in STEPS[step]["env"].items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
            cwd=self.workspace / evaluated(STEPS[step].get("working-directory", "."), known),
            env={**self.environment(), "GITHUB_OUTPUT": str(told), **own},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=600,
        )
        written = dict(line.split("=", 1) for line in told.read_text().splitlines())
        return Outcome(done.returncode, done.stdout, written)

    def environment(self) -> dict[str, str]:
        """The variables of a job."""
        left_out = ("PYTHONPATH", "VIRTUAL_ENV", "FORCE_COLOR")
        path = [str(self.programs)] if self.programs else []
        return {
            **{key: value for key, value in os.environ.items() if key not in left_out},
            "PATH": os.pathsep.join([*path, os.environ["PATH"]]),
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_ACTION_PATH": str(ROOT),
            "RUNNER_TEMP": str(self.temp),
        }

    def check(self, **inputs: str) -> Outcome:
        """The step that checks, with the dslint of this checkout instead of an installed one."""
        command = f'PYTHONPATH="{ROOT}" exec "{sys.executable}" -m dslint "$@"'
        return self.run("check", with_dashes(inputs), dslint=str(program(self.temp / "dslint", command)))

    def arguments(self, **inputs: str) -> list[str]:
        """What the step that checks hands to dslint."""
        seen = self.temp / "arguments"
        recorder = program(self.temp / "recorder", f'printf "%s\\0" "$@" > "{seen}"')
        assert self.run("check", with_dashes(inputs), dslint=str(recorder)).code == 0
        return seen.read_text().split("\0")[:-1]


def evaluated(text: str, known: dict[str, str]) -> str:
    """A text of the action with its expressions replaced by their values."""
    return EXPRESSION.sub(lambda match: known[match[1]], text)


def with_dashes(inputs: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in inputs.items()}


def program(path: Path, command: str) -> Path:
    path.write_text(f"#!/usr/bin/env bash\n{command}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """A runner whose checkout has a bad config and a good one."""
    for folder in ("work/conf", "temp"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "work" / "conf" / "bad.json").write_text(BAD)
    (tmp_path / "work" / "good.json").write_text(GOOD)
    return Runner(tmp_path / "work", tmp_path / "temp")


@needs_bash
def test_a_bad_config_fails_the_step_and_is_annotated(runner: Runner) -> None:
    done = runner.check(paths="conf/bad.json")
    assert done.code == 1
    assert done.outputs == {"exit-code": "1"}
    assert "::error file=conf/bad.json,line=1,endLine=1,col=" in done.output
    assert ",title=DS101 " in done.output
    assert done.output.splitlines()[-1].startswith("Found 1 error in 1 file")


@needs_bash
def test_a_good_config_passes(runner: Runner) -> None:
    done = runner.check(paths="good.json", deepspeed="0.19.8")
    assert (done.code, done.outputs) == (0, {"exit-code": "0"})
    assert "::" not in done.output


@needs_bash
def test_a_file_that_is_not_there_is_an_error_of_the_step(runner: Runner) -> None:
    done = runner.check(paths="gone.json")
    assert (done.code, done.outputs) == (2, {"exit-code": "2"})
    assert "::error file=gone.json,title=not checked::gone.json: no such file" in done.output


@needs_bash
def test_a_bad_option_is_an_error_of_the_step(runner: Runner) -> None:
    done = runner.check(gpus="many")
    assert (done.code, done.outputs) == (2, {"exit-code": "2"})
    assert "'many' is not a whole number" in done.output


@needs_bash
def test_findings_that_shall_not_fail_the_step_are_annotated(runner: Runner) -> None:
    done = runner.check(paths="conf/bad.json", fail_on="never")
    assert (done.code, done.outputs) == (0, {"exit-code": "0"})
    assert "::error file=conf/bad.json," in done.output


@needs_bash
def test_places_are_as_seen_from_the_checkout_whatever_the_working_folder(runner: Runner) -> None:
    done = runner.check(paths="bad.json", working_directory="conf")
    assert done.code == 1
    assert "::error file=conf/bad.json,line=1," in done.output


@needs_bash
def test_paths_stand_one_a_line_and_may_have_spaces(runner: Runner) -> None:
    (runner.workspace / "with space").mkdir()
    (runner.workspace / "with space" / "ds $x.json").write_text(BAD)
    done = runner.check(paths="good.json\n\nwith space/ds $x.json\n")
    assert done.code == 1
    assert "::error file=with space/ds $x.json,line=1," in done.output
    assert "in 2 files" in done.output


@needs_bash
def test_without_inputs_the_folder_is_checked(runner: Runner) -> None:
    assert runner.arguments() == ["check", "--format=github", "--", "."]
    assert runner.arguments(paths="") == ["check", "--format=github", "--"]
    assert runner.check(paths="").code == runner.check().code


@needs_bash
def test_inputs_become_options(runner: Runner) -> None:
    given = {
        **{"gpus": "8", "nodes": "2", "gpu": "NVIDIA A100-SXM4-80GB", "deepspeed": "0.19.8", "loader": "hf"},
        **{"select": "DS2,DS101", "ignore": "DS201", "fail_on": "warning"},
    }
    options = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    assert runner.arguments(**given) == ["check", "--format=github", *options, "--", "."]


@needs_bash
@pytest.mark.parametrize(
    ("inputs", "options"),
    [
        ({"smoke": "false", "smoke_timeout": "60"}, []),
        ({"smoke": "true"}, ["--smoke"]),
        ({"smoke": "all", "smoke_timeout": "60"}, ["--smoke=all", "--smoke-timeout=60"]),
    ],
)
def test_smoke_is_asked_for(runner: Runner, inputs: dict[str, str], options: list[str]) -> None:
    assert runner.arguments(**inputs) == ["check", "--format=github", *options, "--", "."]


@needs_bash
@pytest.mark.parametrize(
    "text", ["$(touch pwned)", "`touch pwned`", "'; touch pwned; '", '"; touch pwned; "', "*", "-x", "$HOME", "\\"]
)
def test_no_input_is_executed_or_taken_apart(runner: Runner, text: str) -> None:
    names = [
        "paths",
        "gpus",
        "nodes",
        "gpu",
        "deepspeed",
        "loader",
        "select",
        "ignore",
        "fail_on",
        "smoke_timeout",
    ]
    seen = runner.arguments(smoke="all", **dict.fromkeys(names, text))
    options = [f"--{name.replace('_', '-')}={text}" for name in names[1:-1]]
    assert seen == ["check", "--format=github", *options, "--smoke=all", f"--smoke-timeout={text}", "--", text]
    assert not (runner.workspace / "pwned").exists()


@needs_bash
def test_the_package_is_the_action_s_own_unless_a_version_is_named(runner: Runner) -> None:
    assert packages(runner) == str(ROOT)
    assert packages(runner, version="0.1.0") == "deepspeed-lint==0.1.0"
    assert packages(runner, smoke="true") == f"{ROOT}[smoke]"
    assert packages(runner, smoke="all", version="0.1.0") == "deepspeed-lint[smoke]==0.1.0"


def packages(runner: Runner, **inputs: str) -> str:
    """What the step that installs asks pip for, with a Python that only writes its arguments down."""
    seen = runner.temp / "arguments"
    programs = runner.temp / "dslint" / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    shims = runner.temp / "shims"
    shims.mkdir(exist_ok=True)
    program(shims / "python", "exit 0")
    program(programs / "python", f'printf "%s\\n" "$@" > "{seen}"')
    done = replace(runner, programs=shims).run("install", inputs)
    assert done.code == 0, done.output
    assert done.outputs == {"dslint": f"{programs}/dslint"}
    *command, package = seen.read_text().splitlines()
    assert command[:4] == ["-I", "-m", "pip", "install"]
    return package


@needs_bash
def test_a_python_that_is_too_old_is_said(runner: Runner) -> None:
    shims = runner.temp / "shims"
    shims.mkdir()
    program(shims / "python", "exit 1")
    done = replace(runner, programs=shims).run("install", {})
    assert done.code == 2
    assert "::error title=dslint::dslint needs Python 3.10 or newer" in done.output
    assert not (runner.temp / "dslint").exists()


@needs_bash
def test_another_word_for_smoke_is_an_error_before_anything_is_installed(runner: Runner) -> None:
    done = runner.run("install", {"smoke": "yes"})
    assert done.code == 2
    assert done.output == "::error title=dslint::smoke must be false, true or all\n"
    assert not (runner.temp / "dslint").exists()


@needs_bash
@pytest.mark.long
def test_the_action_installs_itself_and_checks(runner: Runner) -> None:
    for name in ("venv", "pip", "sys"):  # modules of the repository that is checked are not imported
        (runner.workspace / f"{name}.py").write_text("open('imported', 'w')\n")
    installed = runner.run("install", {})
    assert installed.code == 0, installed.output
    done = runner.run("check", {"paths": "conf/bad.json"}, **installed.outputs)
    assert (done.code, done.outputs) == (1, {"exit-code": "1"})
    assert "::error file=conf/bad.json,line=1," in done.output
    assert not (runner.workspace / "imported").exists()

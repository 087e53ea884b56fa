from __future__ import annotations

import json
from dataclasses import replace

from dslint.doctor.checks import troubles_of
from dslint.doctor.environment import BuildLock, Environment, Gpu, Interpreter, Limits
from dslint.doctor.examination import Diagnosis
from dslint.reports.doctor_report import doctor_json, doctor_text
from dslint.reports.style import Style

PLAIN = Style(colour=False)


def text(env: Environment) -> str:
    return doctor_text(Diagnosis(env, troubles_of(env)), PLAIN)


def test_a_machine_that_is_fine_is_shown_as_a_table(gpu_machine: Environment) -> None:
    assert text(replace(gpu_machine, gpus=gpu_machine.gpus * 8)).splitlines() == [
        "Python        fine     3.11.7 (/env/bin/python)",
        "torch         fine     2.11.0+cu130, built for CUDA 13.0",
        "CUDA          fine     nvcc 13.0 (/usr/local/cuda/bin/nvcc)",
        "DeepSpeed     fine     0.19.8, trains on cuda here",
        "GPU           fine     8 × NVIDIA H200, driver 580.159 (CUDA 13.0)",
        "build tools   fine     c++ 13.2.0, ninja, Python.h",
        "ops folder    fine     /home/me/.cache/torch_extensions/py311_cu130 (nothing built yet)",
        "limits        fine     /dev/shm 16 GiB, locked memory unlimited",
        "Hugging Face  fine     transformers 5.17.0, accelerate 1.15.0",
        "",
        "Nothing wrong with this environment.",
    ]


def test_a_trouble_marks_its_row_and_says_what_to_do(gpu_machine: Environment) -> None:
    shown = text(replace(gpu_machine, limits=Limits(64 * 1024**2, 8 * 1024**2)))
    assert "limits        warning  /dev/shm 64 MiB, locked memory 8 MiB" in shown
    assert "\nwarning /dev/shm has 64 MiB" in shown
    assert "\n  = do: docker run --shm-size=16g" in shown
    assert shown.endswith("Found 1 warning in this environment.")


def test_a_build_at_work_is_a_fact_and_no_trouble(gpu_machine: Environment) -> None:
    assert gpu_machine.ops_folder is not None
    locks = (BuildLock("/x/fused_adam/lock", 130.0, "ninja (4711)"),)
    shown = text(replace(gpu_machine, ops_folder=replace(gpu_machine.ops_folder, locks=locks)))
    assert "ninja (4711) builds since 2 minutes" in shown
    assert "Nothing wrong" in shown


def test_what_is_missing_is_said(cpu_machine: Environment) -> None:
    bare = Environment(python=Interpreter("/usr/bin/python3", "3.12.1"))
    shown = text(bare)
    assert "torch         error    not installed" in shown
    assert "Hugging Face" not in shown
    assert "ops folder" not in shown


def test_different_gpus_are_counted_apart(gpu_machine: Environment) -> None:
    gpus = (Gpu("NVIDIA A100", (8, 0)), Gpu("NVIDIA H100", (9, 0)), Gpu("NVIDIA A100", (8, 0)))
    assert "2 × NVIDIA A100, NVIDIA H100" in text(replace(gpu_machine, gpus=gpus))


def test_the_json_is_plain_data(gpu_machine: Environment) -> None:
    assert gpu_machine.ops_folder is not None
    env = replace(gpu_machine, ops_folder=replace(gpu_machine.ops_folder, built=frozenset({"b", "a"})))
    report = json.loads(doctor_json(Diagnosis(env, troubles_of(env))))
    assert report["troubles"] == []
    assert report["environment"]["ops_folder"]["built"] == ["a", "b"]
    assert report["environment"]["gpus"] == [{"name": "NVIDIA H200", "capability": [9, 0]}]

"""Facts about the GPUs of a run."""

from __future__ import annotations

from typing import Any

import pytest

from dslint.lint import facts_of
from dslint.rulebook.cases import run_of
from dslint.runs.unknown import Unknown

FILE = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 2\n"


def per_node(**case: Any) -> Any:
    return facts_of(run_of(case)).value("gpu.per_node")


def test_the_gpus_of_a_node_are_told_by_an_option() -> None:
    assert per_node(config={}, gpus=4, nodes=2) == 4


def test_the_launch_command_goes_before_the_option() -> None:
    script = "import deepspeed\ndeepspeed.initialize(config='ds_config.json')\n"
    launch = "deepspeed --num_gpus 2 train.py\n"
    assert per_node(config={}, script=script, launch=launch) == 2
    assert per_node(config={}, script=script, launch=launch, gpus=8) == 2


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        ("num_processes: 8\n", 8),
        ("num_processes: 8\nnum_machines: 2\n", 4),
        ("num_processes: 8\nnum_machines: 3\n", None),
        ("num_processes: 8\nnum_machines: many\n", None),
        ("", None),
    ],
)
def test_an_accelerate_file_shares_its_processes_out_among_machines(lines: str, count: int | None) -> None:
    found = per_node(accelerate=FILE + lines)
    assert isinstance(found, Unknown) if count is None else found == count


def test_nobody_knows_the_gpus_of_a_config_alone() -> None:
    assert isinstance(per_node(config={}), Unknown)

"""How many ranks a command starts."""

from __future__ import annotations

from typing import Any

import pytest

from dslint.lint import facts_of
from dslint.rulebook.cases import run_of
from dslint.runs.unknown import Unknown

SCRIPT = "import deepspeed\nengine, *_ = deepspeed.initialize(model=net, config='ds_config.json')\n"
CONFIG = {"train_micro_batch_size_per_gpu": 1}
HOSTS = {"hostfile": "a slots=8\nb slots=8\nc slots=4\n"}


def extent(launch: str, script: str = SCRIPT, **case: Any) -> tuple[int | None, int | None, int | None]:
    """Ranks, ranks a node, nodes; None for what can't be told."""
    facts = facts_of(run_of({"config": CONFIG, "script": script, "launch": launch, **case}))
    values = [facts.value(name) for name in ("ranks", "launch.gpus", "launch.nodes")]
    ranks, per_node, nodes = (None if isinstance(value, Unknown) else value for value in values)
    return ranks, per_node, nodes


@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        ("deepspeed --num_gpus 4 train.py", (4, 4, 1)),
        ("N=4\ndeepspeed --num_gpus=$N train.py", (4, 4, 1)),
        ("deepspeed --num_gpus $N train.py", (None, None, 1)),
        ("deepspeed $OPTIONS train.py", (None, None, None)),
        ("deepspeed train.py", (None, None, 1)),
        ("deepspeed --num_gpus -1 train.py", (None, None, 1)),
        ("deepspeed --include localhost:4,5,6 train.py", (3, 3, 1)),
        ("deepspeed --include localhost train.py", (None, None, 1)),
        ("deepspeed --exclude localhost:0 train.py", (None, None, 1)),
        ("CUDA_VISIBLE_DEVICES=2,3 deepspeed train.py", (2, 2, 1)),
        ("CUDA_VISIBLE_DEVICES=2,3 deepspeed --num_gpus 4 train.py", (4, 4, 1)),
        ("export CUDA_VISIBLE_DEVICES=$IDS\ndeepspeed train.py", (None, None, 1)),
        ("deepspeed --num_nodes 2 --num_gpus 8 train.py", (16, 8, 2)),
        ("deepspeed --hostfile elsewhere --num_gpus 8 train.py", (None, 8, None)),
        ("torchrun train.py", (1, 1, 1)),
        ("torchrun --nproc-per-node=8 --nnodes=2 train.py", (16, 8, 2)),
        ("torchrun --nproc_per_node gpu train.py", (None, None, 1)),
        ("torchrun --nnodes 1:4 --nproc_per_node 8 train.py", (None, 8, None)),
        ("torchrun --nproc_per_node 8 --nnodes $NODES train.py", (None, 8, None)),
        ("torchrun $MORE train.py", (None, None, None)),
        ("python -m torch.distributed.launch --nproc_per_node=2 train.py", (2, 2, 1)),
        ("accelerate launch --num_processes 16 --num_machines 2 train.py", (16, 8, 2)),
        ("accelerate launch --num_processes 7 --num_machines 2 train.py", (6, 3, 2)),
        ("accelerate launch train.py", (None, None, 1)),
        ("python train.py", (1, 1, 1)),
        ("WORLD_SIZE=2 RANK=0 python train.py", (None, None, None)),
        ("docker run --gpus all image python train.py", (None, None, None)),
        ("srun -n 16 python train.py", (16, None, None)),
        ("srun --nodes=2 --ntasks-per-node=4 python train.py", (8, 4, 2)),
        ("#!/bin/bash\n#SBATCH --ntasks=8\nsrun python train.py", (8, None, None)),
        ("mpirun -np 4 python train.py", (4, None, None)),
    ],
)
def test_by_the_command_alone(launch: str, expected: tuple[int | None, ...]) -> None:
    assert extent(launch) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", (20, None, 3)),
        ("--num_nodes 2", (16, 8, 2)),
        ("--num_gpus 2", (6, 2, 3)),
        ("--include a:0,1@c", (6, None, 2)),
        ("--exclude b@c:0,1", (10, None, 2)),
        ("--include d", (None, None, None)),
        ("--include a:9", (None, None, None)),
    ],
)
def test_with_a_hostfile(options: str, expected: tuple[int | None, ...]) -> None:
    assert extent(f"deepspeed --hostfile hostfile {options} train.py", files=HOSTS) == expected


@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        ("deepspeed train.py", (8, 8, 1)),
        ("deepspeed --exclude localhost:0 train.py", (7, 7, 1)),
        ("deepspeed --num_gpus 2 train.py", (2, 2, 1)),
        ("CUDA_VISIBLE_DEVICES=0 deepspeed train.py", (1, 1, 1)),
        ("torchrun --nproc_per_node auto train.py", (8, 8, 1)),
        ("python train.py", (1, 1, 1)),
        ("deepspeed $OPTIONS train.py", (8, None, None)),
        ("deepspeed --hostfile elsewhere train.py", (None, None, None)),
        ("torchrun --nnodes $N --nproc_per_node 4 train.py", (None, 4, None)),
        ("torchrun --nnodes 2 --nproc_per_node $N train.py", (16, None, 2)),
    ],
)
def test_with_the_gpus_of_a_node(launch: str, expected: tuple[int | None, ...]) -> None:
    assert extent(launch, gpus=8) == expected


@pytest.mark.parametrize(
    "script",
    [
        SCRIPT + "import torch\ntorch.multiprocessing.spawn(main, nprocs=4)\n",
        "import deepspeed\nfrom lightning import Trainer\nTrainer(strategy='deepspeed', devices=8).fit(net)\n",
    ],
)
def test_scripts_that_start_ranks_themselves(script: str) -> None:
    assert extent("python train.py", script) == (None, None, None)


def test_the_file_of_accelerate() -> None:
    text = "distributed_type: DEEPSPEED\nnum_processes: 16\nnum_machines: 2\ndeepspeed_config: {zero_stage: 2}\n"
    command = "accelerate launch --config_file accelerate.yaml {} train.py"
    script = "from accelerate import Accelerator\nAccelerator()  # deepspeed\n"
    assert extent(command.format(""), script, accelerate=text) == (16, 8, 2)
    assert extent(command.format("--num_processes 4"), script, accelerate=text) == (4, 2, 2)

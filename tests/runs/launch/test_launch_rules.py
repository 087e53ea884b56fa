"""Launch commands that are fine, though they look much like those that aren't."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dslint.lint import facts_of
from dslint.rulebook.cases import run_of
from dslint.runs.script_tables.launch import FACTS
from tests.runs.judging import codes

CONFIG = {"train_micro_batch_size_per_gpu": 1}
INITIALIZE = "engine, *_ = deepspeed.initialize(args=args, model=net, config='ds_config.json')\n"
RAW = "import deepspeed\n" + INITIALIZE
PARSING = """
import argparse, deepspeed, os, torch
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
{}
args = parser.{}
"""
LOCAL_RANK = 'parser.add_argument("--local_rank", type=int, default={})'


def found(launch: str, script: str = RAW, **case: Any) -> list[str]:
    return codes("DS8", launch=launch, script=script, **{"config": CONFIG, **case})


def parsing(more: str, parse: str = "parse_args()") -> str:
    return PARSING.format(more, parse) + INITIALIZE


@pytest.mark.parametrize(
    "launch",
    [
        "deepspeed train.py",
        "deepspeed --num_gpus=8 train.py",
        "deepspeed --num_gpu 8 --master_port 29501 train.py",
        "deepspeed --num_nodes=1 --num_gpus=8 train.py",
        "deepspeed --include localhost:0,1,2,3 --master_port=$PORT train.py",
        "deepspeed --include=localhost:$GPUS train.py",
        "deepspeed --include $WHERE train.py",
        "deepspeed --hostfile /etc/hosts.of.mine --num_nodes 2 --include $WHERE train.py",
        "deepspeed --hostfile=$HOSTS --num_nodes=4 train.py",
        "deepspeed $ARGUMENTS --no_ssh train.py",
        "deepspeed --bind_cores_to_rank --launcher_args '-x 1' train.py",
        "deepspeed --launcher OpenMPI --num_gpus 2 train.py",
        "deepspeed --launcher torchrun --num_gpus 2 train.py",
        "deepspeed --autotuning run --num_gpus 2 train.py",
        "CUDA_VISIBLE_DEVICES=0,1 deepspeed --num_gpus 2 train.py",
        "CUDA_VISIBLE_DEVICES=4,5 deepspeed --include localhost:4,5 train.py",
        "CUDA_VISIBLE_DEVICES=4,5 deepspeed --num_nodes 1 train.py",
        "CUDA_VISIBLE_DEVICES= deepspeed --num_gpus 2 train.py",
        "CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node 2 train.py",
        "torchrun --nproc_per_node=8 --nnodes=$NODES train.py",
        "torchrun --nnodes 2 --node_rank $RANK --master_addr $HOST --nproc_per_node 8 train.py",
        "torchrun --nnodes 2 --rdzv-backend c10d --rdzv-endpoint $HOST:29500 --nproc_per_node 8 train.py",
        "export PET_NODE_RANK=$RANK PET_MASTER_ADDR=$HOST\ntorchrun --nnodes 2 --nproc_per_node 8 train.py",
        "torchrun --some_new_option 4 --nproc_per_node 8 train.py",
        "torchrun --standalone --nproc_per_node 8 train.py",
        "srun torchrun --nnodes 2 --nproc_per_node 8 --rdzv_backend c10d --rdzv_endpoint h:1 train.py",
        "srun -n 16 torchrun --nnodes 16 --nproc_per_node 1 --rdzv_backend c10d --rdzv_endpoint h:1 train.py",
        "srun -N 2 --ntasks-per-node 1 torchrun --nnodes 2 --rdzv_backend c10d --rdzv_endpoint h:1 train.py",
        "srun -n $TASKS torchrun --nnodes 2 --rdzv_backend c10d --rdzv_endpoint h:1 train.py",
        "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=8\nsrun python train.py",
        "#!/bin/bash\n#SBATCH --gres=gpu:8\ndeepspeed --num_gpus 8 train.py",
        "#!/bin/bash\n#SBATCH --nodes=2\ndeepspeed --hostfile made --num_gpus 8 train.py > made",
        "accelerate launch --num_processes 8 train.py",
        "accelerate launch --num_machines 2 --num_processes 16 --main_process_ip $HOST train.py",
        "accelerate launch --config_file elsewhere.yaml --num_processes 3 train.py",
        "accelerate launch --fp16 --num_cpu_threads_per_process 4 --num_processes 3 train.py",
        "RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 MASTER_ADDR=localhost MASTER_PORT=1 python train.py",
        "mpirun -np 4 python train.py",
    ],
)
def test_commands_that_are_fine(launch: str) -> None:
    assert found(launch) == []


@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        ("deepspeed --num_gpus=8 --nproc_per_node=8 train.py", ["DS801"]),
        ("deepspeed --num_gpus --include localhost:1 train.py", []),
        ("deepspeed --num_gpus=0 --include localhost:1 train.py", ["DS803"]),
        ("deepspeed --include localhost:1@ train.py", ["DS808"]),
        ("deepspeed --elastic_training train.py", ["DS800"]),
        ("deepspeed --launcher slurm --include a:1 train.py", ["DS808", "DS813"]),
        ("torchrun --nnodes 2 --nproc_per_node 8 --rdzv_endpoint h:1 train.py", ["DS833"]),
        ("mpirun -np 8 torchrun --nproc_per_node 8 train.py", ["DS836"]),
        (
            "#!/bin/bash\n#SBATCH --ntasks-per-node=8\n#SBATCH -N 1\nsrun torchrun --nproc_per_node=8 train.py",
            ["DS836"],
        ),
    ],
)
def test_commands_that_are_not(launch: str, expected: list[str]) -> None:
    assert found(launch) == expected


@pytest.mark.parametrize(
    ("launch", "script", "expected"),
    [
        ("deepspeed train.py", parsing(""), ["DS820"]),
        ("deepspeed --launcher pdsh train.py", parsing(""), ["DS820"]),
        ("deepspeed --no_local_rank train.py", parsing(""), []),
        ("deepspeed --launcher slurm train.py", parsing(""), []),
        ("deepspeed $MORE train.py", parsing(""), []),
        ("torchrun train.py", parsing(""), []),
        ("deepspeed train.py", parsing("", "parse_known_args()[0]"), []),
        ("deepspeed train.py", parsing(LOCAL_RANK.format(-1)), []),
        ("deepspeed train.py", parsing('parser.add_argument("--local_rank_of_this")'), []),
        ("deepspeed train.py", parsing('parser.add_argument("--local-rank", type=int)'), ["DS820"]),
        ("deepspeed train.py", parsing("add_more(parser)"), []),
        ("python -m torch.distributed.launch train.py", parsing('parser.add_argument("--local-rank")'), []),
        ("python -m torch.distributed.launch --use_env train.py", parsing(""), []),
        ("python -m torch.distributed.launch train.py", parsing(LOCAL_RANK.format(-1)), ["DS822"]),
    ],
)
def test_the_argument_that_a_launcher_adds(launch: str, script: str, expected: list[str]) -> None:
    assert found(launch, script) == expected


@pytest.mark.parametrize(
    ("launch", "default", "expected"),
    [
        ("torchrun --nproc_per_node 2 train.py", "0", ["DS823"]),
        ("torchrun --nproc_per_node 1 train.py", "0", []),
        ("torchrun --nproc_per_node 2 train.py", "-1", []),
        ("torchrun --nproc_per_node 2 train.py", 'int(os.environ["LOCAL_RANK"])', []),
        ("deepspeed --num_gpus 2 train.py", "0", []),
        ("deepspeed --num_gpus 2 --no_local_rank train.py", "0", ["DS823"]),
        ("torchrun --nproc_per_node 2 train.py --local_rank $LOCAL_RANK", "0", []),
    ],
)
def test_local_ranks_that_are_the_same_everywhere(launch: str, default: str, expected: list[str]) -> None:
    assert found(launch, parsing(LOCAL_RANK.format(default))) == expected


def test_a_local_rank_that_the_script_replaces() -> None:
    script = parsing(LOCAL_RANK.format(0)).replace(INITIALIZE, 'args.local_rank = int(os.environ["LOCAL_RANK"])\n')
    script += "torch.cuda.set_device(args.local_rank)\n" + INITIALIZE
    assert found("torchrun --nproc_per_node 2 train.py", script) == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--epochs 3", []),
        ("--epoch 3", []),
        ("--epochs=3 $MORE", []),
        ("--epochs $N", []),
        ('"$@"', []),
        ("--epochs three", ["DS826"]),
        ("--steps 3", ["DS826"]),
        ("$MORE --steps 3", ["DS826"]),
        ("--local-rank 1", []),
    ],
)
def test_words_for_the_script(words: str, expected: list[str]) -> None:
    assert found(f"torchrun train.py {words}", parsing(LOCAL_RANK.format(-1))) == expected


def test_options_of_the_launcher_that_the_script_has_too() -> None:
    skipping = parsing(LOCAL_RANK.format(-1), "parse_known_args()[0]")
    having = parsing(LOCAL_RANK.format(-1) + '\nparser.add_argument("--num_gpus")', "parse_known_args()[0]")
    assert found("deepspeed train.py --num_gpus 2", skipping) == ["DS828"]
    assert found("deepspeed train.py --num_gpus 2", having) == []
    assert found("deepspeed --num_gpus 4 train.py --num_gpus 2", skipping) == []
    assert found("deepspeed train.py --num_gpus 2") == []


TRAINER = """
from transformers import HfArgumentParser, Trainer, TrainingArguments
{}
made = HfArgumentParser({}).parse_args_into_dataclasses()
"""


@pytest.mark.parametrize(
    ("head", "classes", "words", "expected"),
    [
        ("", "TrainingArguments", "--deepspeed ds_config.json", []),
        ("", "TrainingArguments", "--deepspeed", ["DS830"]),
        ("", "TrainingArguments", "--deepspeed $CONFIG --bf16", []),
        ("", "TrainingArguments", "--deepspeed_config ds_config.json", ["DS829"]),
        ("from mine import Own", "(Own, TrainingArguments)", "--deepspeed_config ds_config.json", []),
        ("class Own(TrainingArguments):\n    deepspeed_config: str = ''", "Own", "--deepspeed_config ds.json", []),
    ],
)
def test_words_for_the_trainer(head: str, classes: str, words: str, expected: list[str]) -> None:
    script = TRAINER.format(head, classes)
    assert [code for code in found(f"deepspeed train.py {words}", script) if code != "DS840"] == expected


@pytest.mark.parametrize(
    ("launch", "script", "expected"),
    [
        ("python train.py", RAW, ["DS831"]),
        ("python train.py", RAW + "torch.multiprocessing.spawn(f)\n", []),
        ("python train.py", "import os\nos.environ['RANK'] = '0'\n" + RAW, []),
        ("python train.py", "from transformers import Trainer  # deepspeed\nTrainer(model).train()\n", []),
        ("docker run image python train.py", RAW, []),
        ("python prepare.py\ndeepspeed train.py", RAW, []),
    ],
)
def test_scripts_without_a_launcher(launch: str, script: str, expected: list[str]) -> None:
    assert found(launch, script) == expected


@pytest.mark.parametrize(
    ("launch", "script"),
    [
        ("echo '{}' > other.json\ndeepspeed train.py", RAW.replace("ds_config", "other")),
        ("cd $PROJECT\ndeepspeed train.py", RAW.replace("ds_config", "other")),
        (
            "deepspeed train.py",
            "import json\njson.dump({}, open('other.json', 'w'))\n" + RAW.replace("ds_config", "other"),
        ),
        ("deepspeed train.py", RAW.replace("'ds_config.json'", "'/data/other.json'")),
        ("deepspeed train.py", RAW.replace("'ds_config.json'", "where")),
    ],
)
def test_configs_that_may_be_there(launch: str, script: str) -> None:
    assert found(launch, script) == []


PIECES = [
    "deepspeed",
    "torchrun",
    "accelerate",
    "launch",
    "python",
    "-m",
    "--num_gpus=4",
    "--include",
    "--exclude",
    "localhost:0,1",
    "a:x",
    "@",
    "--hostfile",
    "hostfile",
    "train.py",
    "--local_rank",
    "--deepspeed",
    "ds_config.json",
    "$X",
    '"$@"',
    "--nnodes",
    "2",
    "srun",
    "-n",
    "8",
    "CUDA_VISIBLE_DEVICES=0",
    "--no_ssh",
    "--num_processes",
    "7",
    "--num_machines",
    "-1",
    "''",
    "--launcher",
    "slurm",
    "--epochs",
    "3",
    "==",
    "99999999999999999999",
    "--config_file",
]


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=9), st.booleans())
@settings(max_examples=200, deadline=None)
def test_no_command_breaks_a_fact(words: list[str], has_gpus: bool) -> None:
    launch = f"deepspeed {' '.join(words)}\ndeepspeed train.py\n"
    case = {"config": CONFIG, "script": parsing(""), "launch": launch, "files": {"hostfile": "a slots=4"}}
    facts = facts_of(run_of({**case, "gpus": 4} if has_gpus else case))
    for name in FACTS:
        facts.value(name)


@pytest.mark.parametrize(
    ("release", "expected"), [("0.15.1", []), ("0.15.2", ["DS819"]), ("0.19.6", ["DS819"]), ("0.19.7", [])]
)
def test_whole_hosts_by_release(release: str, expected: list[str]) -> None:
    case = {"files": {"hostfile": "a slots=4\nb slots=4"}, "deepspeed": release}
    assert found("deepspeed --hostfile hostfile --include a:0@b train.py", **case) == expected


def test_an_option_of_elastic_training_before_it_went() -> None:
    assert found("deepspeed --elastic_training train.py", deepspeed="0.19.7") == []

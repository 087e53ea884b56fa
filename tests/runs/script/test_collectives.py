"""Calls that all ranks have to make, where only one rank comes, and what only looks so."""

from __future__ import annotations

import pytest

from tests.runs.script.findings import found

MAKE = """
import os
net = Net()
engine, optimizer, *_ = deepspeed.initialize(model=net, config="ds_config.json")
rank = dist.get_rank()
args = argparse.ArgumentParser().parse_args()
"""
SAVE = 'engine.save_checkpoint("out")'


@pytest.mark.parametrize(
    "guard",
    [
        "rank == 0",
        "0 == rank",
        "not rank",
        "dist.get_rank() == 0",
        "deepspeed.comm.get_rank() == 0",
        "engine.global_rank == 0",
        "engine.local_rank in (-1, 0)",
        "args.local_rank in [-1, 0]",
        "rank == 0 and args.save",
        "int(os.environ['RANK']) == 0 or rank < 1",
    ],
)
def test_a_checkpoint_of_one_rank_is_found(guard: str) -> None:
    assert found("DS640", MAKE + f"if {guard}:\n    {SAVE}\n", stage=1) == [SAVE]


def test_leaving_early_is_a_guard_too() -> None:
    script = MAKE + f"def save():\n    if rank != 0:\n        return\n    {SAVE}\nsave()\n"
    assert found("DS640", script, stage=1) == [SAVE]


def test_functions_of_the_file_are_gone_through() -> None:
    script = MAKE + f"def save(engine):\n    {SAVE}\nif rank == 0:\n    save(engine)\n"
    assert found("DS640", script, stage=1) == [SAVE]


@pytest.mark.parametrize(
    "body",
    [
        f"if rank == 0:\n    {SAVE}\nelse:\n    {SAVE}\n",
        f"if rank == 0:\n    {SAVE}\nif rank != 0:\n    {SAVE}\n",
        f"if rank == 0:\n    print('saving')\n{SAVE}\n",
        f"if args.save:\n    {SAVE}\n",
        f"if dist.get_world_size() == 1 and rank == 0:\n    {SAVE}\n",
        f"if dist.get_world_size() == 1 or rank == 0:\n    {SAVE}\n",
        "if rank == 0:\n    print(engine.global_steps, engine.get_lr())\n    torch.save({'step': 1}, 'x.pt')\n",
        "if rank == 0:\n    dist.barrier(group=group)\n",
        "if rank not in (-1, 0):\n    dist.barrier()\nif rank == 0:\n    print('loaded')\n    dist.barrier()\n",
        "if rank == 0:\n    dist.send(net.up.weight, 1)\nelse:\n    dist.recv(net.up.weight, 0)\n",
    ],
)
def test_what_the_ranks_do_together_is_silent(body: str) -> None:
    assert found("DS640", MAKE + body, stage=1) == []


def test_one_rank_alone_has_nobody_to_wait_for() -> None:
    assert found("DS640", MAKE + f"if rank == 0:\n    {SAVE}\n", stage=1, gpus=1) == []


FORWARDS = [
    "engine(x)",
    "engine.module(x)",
    "net(x)",
    "net.generate(x)",
    "engine.module.generate(x)",
    "engine.generate(x)",
    "engine._zero3_consolidated_16bit_state_dict()",
    'engine.save_16bit_model("out")',
]


@pytest.mark.parametrize("call", FORWARDS)
def test_gathering_weights_on_one_rank_hangs_at_stage_3_only(call: str) -> None:
    script = MAKE + f"x = torch.zeros(1, 8)\nif rank == 0:\n    {call}\n"
    assert found("DS640", script, stage=3) == [call]
    assert found("DS640", script, stage=2) == []


def test_generating_on_one_side_is_met_by_a_forward_pass_on_the_other() -> None:
    script = MAKE + "x = torch.zeros(1, 8)\nif rank == 0:\n    net.generate(x)\nelse:\n    net(x)\n"
    assert found("DS640", script, stage=3) == []


def test_another_model_is_whole() -> None:
    assert found("DS640", MAKE + "judge = Net()\nif rank == 0:\n    judge(torch.zeros(1, 8))\n", stage=3) == []


def test_a_model_before_initialize_is_whole() -> None:
    script = (
        "net = Net()\ndeepspeed.init_distributed()\nif dist.get_rank() == 0:\n    net(torch.zeros(1, 8))\n"
        'engine, *_ = deepspeed.initialize(model=net, config="ds_config.json")\n'
    )
    assert found("DS640", script, stage=3) == []


def test_whole_values_meet_from_stage_1_on() -> None:
    script = MAKE + "if rank == 0:\n    deepspeed.utils.safe_get_full_grad(net.up.weight)\n"
    assert found("DS640", script, stage=2) == ["deepspeed.utils.safe_get_full_grad(net.up.weight)"]
    assert found("DS640", script, stage=0) == []


def test_saving_16_bit_weights_is_found_where_it_gathers() -> None:
    script = MAKE + 'if rank == 0:\n    engine.save_16bit_model("out")\n'
    assert found("DS640", script, stage=1) == []


def test_loading_on_one_rank_leaves_the_others_behind() -> None:
    script = MAKE + 'if rank == 0:\n    engine.load_checkpoint("out")\n'
    assert found("DS915", script, stage=2) == ['engine.load_checkpoint("out")']
    assert found("DS640", script, stage=3) == ['engine.load_checkpoint("out")']
    assert found("DS915", MAKE + 'engine.load_checkpoint("out")\n', stage=2) == []


ACCELERATE = """
from accelerate import Accelerator
accelerator = Accelerator()
net = torch.nn.Linear(8, 8)
optimizer = torch.optim.AdamW(net.parameters())
loader = DataLoader(TensorDataset(torch.zeros(8, 8)), batch_size=2)
net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
if accelerator.is_main_process:
    {call}
"""
YAML = "distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 3}\nnum_processes: 2\n"


@pytest.mark.parametrize(
    ("call", "stage", "times"),
    [
        ('accelerator.save_state("out")', 1, 1),
        ("accelerator.wait_for_everyone()", 1, 1),
        ("accelerator.get_state_dict(net)", 3, 1),
        ("accelerator.get_state_dict(net)", 2, 0),
        ("accelerator.unwrap_model(net).generate(x)", 3, 1),
        ("accelerator.unwrap_model(net).generate(x)", 2, 0),
        ("print(optimizer.param_groups[0]['lr'])", 3, 0),
        ('accelerator.print("saved")', 3, 0),
    ],
)
def test_the_main_process_alone(call: str, stage: int, times: int) -> None:
    file = YAML.replace("3}", f"{stage}}}")
    assert len(found("DS640", ACCELERATE.replace("{call}", call), config=None, accelerate=file)) == times

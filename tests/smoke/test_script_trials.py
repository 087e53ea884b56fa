"""Whole scripts on real DeepSpeed: what their launcher, their ranks and their training come to."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import Any

import pytest

from dslint.smoke.client import SmokeServer
from dslint.smoke.proofs.script_cases import script_trial_of
from dslint.smoke.proofs.script_evidence import TriedScripts, complaints, same_parameters, shown
from dslint.smoke.script_outcome import Outcome, outcome
from dslint.smoke.script_trial import ScriptTrial

pytestmark = pytest.mark.deepspeed

ADAM = {"type": "Adam", "params": {"lr": 1e-2, "torch_adam": True}}


def config(stage: int, **more: Any) -> dict[str, Any]:
    zero = {"stage": stage, "stage3_param_persistence_threshold": 0}
    return {"train_micro_batch_size_per_gpu": 2, "optimizer": ADAM, "zero_optimization": zero, **more}


def ran(
    server: SmokeServer, case: dict[str, Any], *, effect: dict[str, Any] | None = None, **more: Any
) -> Outcome:
    trial = script_trial_of(case, effect or {}, has_gpu=False)
    return outcome(server.run_script(dataclasses.replace(trial, **more)))


RAW = """
import deepspeed
from tiny import Net, batches, say

engine, optimizer, _, _ = deepspeed.initialize(model=(net := Net()), config="ds_config.json", model_parameters=net.parameters())
for x, y in batches(3, engine.device):
    loss = engine(x, y)
    engine.backward(loss)
    engine.step()
say(world=engine.world_size)
"""

# --- ranks ---


@pytest.mark.parametrize("ranks", ["simulated", "real"])
@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_an_engine_trains(server: SmokeServer, stage: int, ranks: str) -> None:
    found = ran(server, {"script": RAW, "config": config(stage), "ranks-are": ranks})
    assert found.ended, found
    (engine,) = found.engines
    assert (engine["zero_stage"], engine["steps"], engine["moved"]) == (stage, 3, True)
    assert len(engine["losses"]) == 3
    assert found.said == {"world": 2 if ranks == "real" else 8}


def test_all_stages_train_the_same_where_sums_are_real(server: SmokeServer) -> None:
    losses = [
        ran(server, {"script": RAW, "config": config(stage), "ranks-are": "real"}).engines[0]["losses"]
        for stage in (0, 2, 3)
    ]
    assert losses[0] == losses[1] == losses[2]


SAVES_ON_ONE = """
import deepspeed
from tiny import Net

engine, *_ = deepspeed.initialize(model=(net := Net()), config="ds_config.json", model_parameters=net.parameters())
{guard}
    engine.save_checkpoint("checkpoint")
"""


def test_ranks_that_wait_for_each_other_are_ended(server: SmokeServer) -> None:
    began = time.monotonic()
    bad, good = (
        ran(
            server,
            {"script": SAVES_ON_ONE.replace("{guard}", guard), "config": config(2)},
            effect={"hangs": True},
            silence=4.0,
        )
        for guard in ("if engine.global_rank == 0:", "if True:")
    )
    assert time.monotonic() - began < 12
    assert bad.hung
    assert any("save_checkpoint" in stack for stack in bad.stacks)
    assert complaints({"hangs": True}, TriedScripts(bad, good)) == []
    assert shown({"hangs": True}, TriedScripts(bad, good)) == "hangs"
    assert complaints({"hangs": True}, TriedScripts(good, good))


def test_the_first_rank_to_fail_is_told_of_and_the_others_are_ended(server: SmokeServer) -> None:
    script = RAW.replace(
        "say(", "if engine.global_rank == 1:\n    raise KeyError('here')\nengine.save_checkpoint('c')\nsay("
    )
    found = ran(server, {"script": script, "config": config(1), "ranks-are": "real"})
    assert (found.exception, found.hung) == ("KeyError", False)
    assert (
        found.where
        == f"train.py:{script.splitlines().index(chr(32) * 4 + 'raise KeyError(' + repr('here') + ')') + 1}"
    )


def test_collectives_that_do_not_meet_hang(server: SmokeServer) -> None:
    script = "import torch, torch.distributed as dist\ndist.init_process_group('nccl')\nif dist.get_rank() == 0:\n    dist.all_reduce(torch.ones(2))\n"
    found = ran(server, {"script": script}, effect={"hangs": True}, silence=2.0)
    assert (found.exception, found.hung) == ("Timeout", True)
    assert not ran(server, {"script": script.replace("== 0", ">= 0")}, effect={"hangs": True}).hung


def test_without_a_launcher_there_is_no_group(server: SmokeServer) -> None:
    found = ran(server, {"script": RAW, "config": config(1), "launcher": "python"})
    assert found.raised("ImportError")
    assert "mpi4py" in found.message


def test_a_collective_before_the_group_fails_as_in_reality(server: SmokeServer) -> None:
    found = ran(server, {"script": "import torch\ntorch.distributed.barrier()\n"})
    assert found.raised("ValueError")
    assert "has not been initialized" in found.message


# --- the launcher ---

ARGPARSE = """
import argparse, os
from tiny import say

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
{more}
args = parser.parse_args()
say(rank=os.environ.get("RANK"), world=os.environ.get("WORLD_SIZE"), epochs=args.epochs)
"""


def test_a_script_without_local_rank_exits_under_the_deepspeed_launcher(server: SmokeServer) -> None:
    own = 'parser.add_argument("--local_rank", type=int)'
    bad, good = (
        ran(
            server,
            {"script": ARGPARSE.replace("{more}", more), "launch": "deepspeed --num_gpus=4 train.py --epochs 3"},
        )
        for more in ("", own)
    )
    effect = {"exits": 2, "message": "unrecognized arguments: --local_rank=0"}
    assert complaints(effect, TriedScripts(bad, good)) == []
    assert shown(effect, TriedScripts(bad, good)) == "exits with 2 in script"
    assert good.said == {"rank": "0", "world": "4", "epochs": 3}


@pytest.mark.parametrize(
    ("launch", "world", "arguments"),
    [
        ("deepspeed --num_gpus 2 train.py --a 1", 2, ["--local_rank=0", "--a", "1"]),
        ("deepspeed --no_local_rank train.py", 8, []),
        ("deepspeed --include localhost:1,3 train.py", 2, ["--local_rank=0"]),
        ("CUDA_VISIBLE_DEVICES=0,1,2 deepspeed train.py", 3, ["--local_rank=0"]),
        ("deepspeed --hostfile hosts train.py --a", 8, ["--local_rank=0", "--a"]),
        ("torchrun --nproc_per_node=4 --nnodes=2 --node_rank=0 --master_addr=a --master_port=1 train.py --a", 8, ["--a"]),
        ("torchrun --nproc-per-node gpu \\\n  train.py", 8, []),
        ("# once\npython -m torch.distributed.launch --nproc_per_node=2 train.py", 2, ["--local-rank=0"]),
        ("accelerate launch --use_deepspeed --num_processes 4 --zero_stage 2 train.py --a", 4, ["--a"]),
        ("accelerate launch --multi_gpu --num_processes 4 train.py", 4, []),
        ("export A=1\npython train.py --a", None, ["--a"]),
    ],
)  # fmt: skip
def test_launchers_give_ranks_and_arguments(
    server: SmokeServer, launch: str, world: int | None, arguments: list[str]
) -> None:
    script = "import os, sys\nfrom tiny import say\nsay(world=os.environ.get('WORLD_SIZE'), args=sys.argv[1:])\n"
    found = ran(server, {"script": script, "launch": launch, "files": {"hosts": "a slots=4\nb slots=4\n"}})
    assert found.ended, found
    assert found.said == {"world": None if world is None else str(world), "args": arguments}


@pytest.mark.parametrize(
    ("launch", "exception", "message"),
    [
        ("deepspeed --num_gpus=2 --include localhost:0 train.py", "ValueError", "num_nodes/gpus with include"),
        ("deepspeed --num_nodes=2 train.py", "ValueError", "no extra nodes"),
        ("deepspeed --hostfile hosts train.py", "ValueError", ""),
        ("deepspeed --num-gpus=2 train.py", "SystemExit", "unrecognized|required|arguments"),
        ("torchrun --num_gpus=2 train.py", "SystemExit", ""),
        ("accelerate launch --multi_gpu --use_deepspeed train.py", "ValueError", "only use one of"),
    ],
)
def test_what_launchers_refuse_fails_in_the_launch(
    server: SmokeServer, launch: str, exception: str, message: str
) -> None:
    bad = ran(server, {"launch": launch, "files": {"hosts": "a slots=4\na slots=4\n"}})
    good = ran(server, {"launch": "deepspeed --num_gpus=2 train.py"})
    effect = {"exits": 2} if exception == "SystemExit" else {"raises": exception, "during": "launch"}
    assert complaints({**effect, "message": message}, TriedScripts(bad, good)) == []
    assert bad.phase == "launch"


# --- effects ---


def test_backward_of_the_loss_itself_raises_at_stage_0(server: SmokeServer) -> None:
    script = RAW.replace("engine.backward(loss)", "loss.backward()")
    bad, good = (ran(server, {"script": text, "config": config(0)}) for text in (script, RAW))
    assert complaints({"raises": "RuntimeError"}, TriedScripts(bad, good)) == []
    assert bad.where is not None
    assert bad.where.startswith("train.py:")


SAVES = RAW + "import torch\ntorch.save(engine.module.state_dict(), 'model.pt')\n"
GATHERS = RAW + "engine.save_16bit_model('out')\n"


@pytest.mark.parametrize("ranks", ["simulated", "real"])
def test_a_state_dict_of_stage_3_is_saved_empty(server: SmokeServer, ranks: str) -> None:
    gathering = config(3)
    gathering["zero_optimization"]["stage3_gather_16bit_weights_on_model_save"] = True
    bad = ran(server, {"script": SAVES, "config": config(3), "ranks-are": ranks})
    good = ran(server, {"script": GATHERS, "config": gathering, "ranks-are": ranks})
    assert complaints({"saves-empty": True}, TriedScripts(bad, good)) == []
    assert complaints({"saves-empty": True}, TriedScripts(good, good))
    assert (bad.files["model.pt"]["tensors"], bad.files["model.pt"]["empty"]) == (4, 4)


@pytest.mark.parametrize("stage", [1, 2])
def test_a_step_of_the_clients_optimizer_trains_nothing(server: SmokeServer, stage: int) -> None:
    own = RAW.replace("engine.step()", "client.step()").replace(
        "for x", "client = __import__('torch').optim.SGD(net.parameters(), 0.1)\nfor x"
    )
    no_step = RAW.replace("    engine.step()\n", "")
    bad, good, idle = (ran(server, {"script": text, "config": config(stage)}) for text in (own, RAW, no_step))
    assert complaints({"trains-nothing": True}, TriedScripts(bad, good)) == []
    assert complaints({"trains-nothing": True}, TriedScripts(idle, good)) == []
    assert complaints({"trains-nothing": True}, TriedScripts(good, good))


def test_a_loaded_checkpoint_is_no_training(server: SmokeServer) -> None:
    again = "engine.save_checkpoint('ck')\nother, *_ = deepspeed.initialize(model=Net(), config='ds_config.json')\nother.load_checkpoint('ck')\n"
    found = ran(server, {"script": RAW + again, "config": config(0)})
    assert found.ended, found
    assert [(engine["steps"], engine["moved"]) for engine in found.engines] == [(3, True), (0, False)]


def test_other_and_same_parameters_are_told_apart(server: SmokeServer) -> None:
    slow = config(2, optimizer={**ADAM, "params": {"lr": 1e-3, "torch_adam": True}})
    one, again, other = (
        ran(server, {"script": RAW, "config": each, "ranks-are": "real"})
        for each in (config(2), config(2, steps_per_print=3), slow)
    )
    assert same_parameters(one, again) is True
    assert complaints({"trains-otherwise": True}, TriedScripts(one, other)) == []
    assert complaints({"like-good": True}, TriedScripts(one, again)) == []
    assert complaints({"like-good": True}, TriedScripts(one, other))


def test_what_a_script_says_and_its_engine_shows(server: SmokeServer) -> None:
    one, other = (ran(server, {"script": RAW, "config": config(2), "gpus": gpus}) for gpus in (4, 8))
    assert complaints({"ignored": True, "says": {"world": 4}}, TriedScripts(one, other)) == []
    assert complaints({"ignored": True, "shows": {"batch": [8, 2, 1]}}, TriedScripts(one, other)) == []
    assert complaints({"ignored": True}, TriedScripts(one, other))


# --- other libraries ---

TRAINER = """
from transformers import Trainer, TrainingArguments
from tiny import causal_lm, dataset

args = TrainingArguments(
    output_dir="out", max_steps=2, per_device_train_batch_size=2, learning_rate={rate},
    deepspeed="ds_config.json", save_strategy="no", report_to="none",
)
Trainer(model={model}, args=args, train_dataset=dataset()).train()
"""  # fmt: skip


def trainer(rate: float, model: str = "causal_lm()") -> str:
    return TRAINER.replace("{rate}", str(rate)).replace("{model}", model)


@pytest.mark.parametrize("ranks", ["simulated", "real"])
def test_the_trainer_refuses_another_learning_rate(server: SmokeServer, ranks: str) -> None:
    bad, good = (
        ran(server, {"script": trainer(rate), "config": config(2), "ranks-are": ranks}) for rate in (0.02, 0.01)
    )
    assert complaints({"raises": "ValueError", "message": "learning_rate"}, TriedScripts(bad, good)) == []
    assert good.engines[0]["steps"] == 2


@pytest.mark.parametrize("stage", [2, 3])
def test_adapters_of_peft_are_trained(server: SmokeServer, stage: int) -> None:
    pytest.importorskip("peft")
    adapted = "peft.get_peft_model(causal_lm(), peft.LoraConfig(target_modules=['q_proj'], task_type='CAUSAL_LM'))"
    found = ran(
        server, {"script": "import peft\n" + trainer(0.01, adapted), "config": config(stage), "ranks-are": "real"}
    )
    assert found.ended, found
    assert found.engines[0]["moved"]


ACCELERATE = """
from accelerate import Accelerator
from accelerate.utils import DummyOptim
from tiny import Net, loader, say

accelerator = Accelerator()
net = Net()
net, optimizer, data = accelerator.prepare(net, DummyOptim(net.parameters(), lr=0.01), loader())
for x, y in data:
    loss = net(x, y)
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
say(kind=accelerator.distributed_type.value)
"""
ACCELERATE_FILE = """
compute_environment: LOCAL_MACHINE
distributed_type: DEEPSPEED
deepspeed_config:
  deepspeed_config_file: ds_config.json
num_machines: 1
num_processes: 2
"""


@pytest.mark.parametrize("ranks", ["simulated", "real"])
@pytest.mark.parametrize("stage", [0, 3])
def test_a_loop_with_accelerate_trains(server: SmokeServer, stage: int, ranks: str) -> None:
    case = {"script": ACCELERATE, "accelerate": ACCELERATE_FILE, "config": config(stage), "ranks-are": ranks}
    found = ran(server, case)
    assert found.ended, found
    assert found.said == {"kind": "DEEPSPEED"}
    assert found.engines[0]["steps"] == (4 if ranks == "real" else 1)


def test_accelerate_without_deepspeed_makes_no_engine(server: SmokeServer) -> None:
    plain = ACCELERATE.replace(
        "DummyOptim(net.parameters(), lr=0.01)", "__import__('torch').optim.SGD(net.parameters(), 0.1)"
    ).replace("net(x, y)", "net(x, y).mean()")
    file = "compute_environment: LOCAL_MACHINE\ndistributed_type: 'NO'\nnum_machines: 1\nnum_processes: 1\n"
    launch = "accelerate launch --config_file accelerate.yaml train.py"
    bad = ran(server, {"script": plain, "accelerate": file, "launch": launch, "config": config(2)})
    good = ran(server, {"script": ACCELERATE, "accelerate": ACCELERATE_FILE, "config": config(2)})
    assert complaints({"not-deepspeed": True}, TriedScripts(bad, good)) == []


PIPELINE = """
import deepspeed, torch
from deepspeed.pipe import LayerSpec, PipelineModule
from deepspeed.utils import RepeatingLoader
from tiny import loader

deepspeed.init_distributed()
layers = [LayerSpec(torch.nn.Linear, 8, 8), LayerSpec(torch.nn.Linear, 8, 4)]
net = PipelineModule(layers, num_stages=2, loss_fn=torch.nn.functional.cross_entropy)
engine, *_ = deepspeed.initialize(model=net, config="ds_config.json", model_parameters=list(net.parameters()))
data = iter(RepeatingLoader(loader()))
for _ in range(2):
    engine.train_batch(data_iter=data)
"""


@pytest.mark.parametrize("stage", [0, 1])
def test_a_pipeline_of_two_ranks_trains(server: SmokeServer, stage: int) -> None:
    found = ran(server, {"script": PIPELINE, "config": config(stage), "ranks-are": "real"})
    assert found.ended, found
    assert (found.engines[0]["class"], found.engines[0]["steps"]) == ("PipelineEngine", 2)


# --- plain data ---


def test_a_trial_survives_the_way_to_the_server() -> None:
    trial = ScriptTrial(
        {"train.py": "x"}, arguments=("a",), words=("python", "train.py"), missing=("peft",), mode="real"
    )
    assert ScriptTrial.from_data(json.loads(json.dumps(trial.as_data()))) == trial


def test_a_file_outside_of_the_folder_is_refused(tmp_path: Any) -> None:
    from dslint.smoke.script_place import UnsafeNameError, write_files

    with pytest.raises(UnsafeNameError):
        write_files(ScriptTrial({"../x": ""}), tmp_path / "work")

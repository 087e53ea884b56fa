"""How a script comes to its engine: config, process group, parameters, torch.compile."""

from __future__ import annotations

import pytest

from tests.runs.script.findings import config, found

# --- the config ---

PARSE = """
parser = deepspeed.add_config_arguments(argparse.ArgumentParser())
parser.add_argument("--local_rank", type=int)
args = parser.parse_args()
"""


@pytest.mark.parametrize(
    "call",
    [
        "deepspeed.initialize(model=Net())",
        "deepspeed.initialize(model=Net(), config=None)",
        "deepspeed.initialize(args=None, model=Net())",
    ],
)
def test_no_config_is_found(call: str) -> None:
    assert found("DS645", f"engine, *_ = {call}") == [call]


@pytest.mark.parametrize(
    "body",
    [
        'engine, *_ = deepspeed.initialize(model=Net(), config="ds_config.json")',
        "engine, *_ = deepspeed.initialize(model=Net(), config=settings)",
        "engine, *_ = deepspeed.initialize(model=Net(), config_params={})",
        "engine, *_ = deepspeed.initialize(model=Net(), **settings)",
        "engine, *_ = deepspeed.initialize(args=settings, model=Net())",
        PARSE + "engine, *_ = deepspeed.initialize(args=args, model=Net())",
        PARSE + "args.deepspeed_config = 'x.json'\nengine, *_ = deepspeed.initialize(args=args, model=Net())",
    ],
)
def test_a_config_that_may_come_is_silent(body: str) -> None:
    assert found("DS645", body) == []
    assert found("DS644", body) == []


# --- the process group ---


@pytest.mark.parametrize(
    "use", ["rank = dist.get_rank()", "n = torch.distributed.get_world_size()", "s = DistributedSampler(data)"]
)
def test_uses_before_the_process_group_are_found(use: str) -> None:
    rest = '\nengine, *_ = deepspeed.initialize(model=torch.nn.Linear(2, 2), config="ds_config.json")\n'
    script = "data = TensorDataset(torch.zeros(2, 2))\n"
    assert found("DS642", script + use + rest) == [use.partition(" = ")[2]]
    assert found("DS642", script + "deepspeed.init_distributed()\n" + use + rest) == []
    assert found("DS642", script + 'dist.init_process_group("gloo")\n' + use + rest) == []
    assert found("DS642", script + rest + use) == []


@pytest.mark.parametrize(
    "body",
    [
        "if dist.is_initialized():\n    rank = dist.get_rank()",
        "rank = dist.get_rank() if dist.is_initialized() else 0",
        "try:\n    rank = dist.get_rank()\nexcept ValueError:\n    rank = 0",
        "def rank():\n    return dist.get_rank()\ntry:\n    r = rank()\nexcept ValueError:\n    r = 0",
        "from mine import setup\nsetup()\nrank = dist.get_rank()",
        "with deepspeed.zero.Init():\n    net = torch.nn.Linear(2, 2)\nrank = dist.get_rank()",
        "s = DistributedSampler(range(4), num_replicas=2, rank=0)",
        "def later():\n    return dist.get_rank()",
    ],
)
def test_uses_that_may_be_right_are_silent(body: str) -> None:
    rest = '\nengine, *_ = deepspeed.initialize(model=torch.nn.Linear(2, 2), config="ds_config.json")\n'
    assert found("DS642", body + rest) == []


# --- parameters ---

GIVE = '\nengine, *_ = deepspeed.initialize(model=net, model_parameters=weights, config="ds_config.json")\n'


@pytest.mark.parametrize(
    "weights",
    [
        "list(net.parameters()) + [net.up.weight]",
        "[*net.parameters(), *net.up.parameters()]",
        "list(net.parameters()) + list(net.parameters())",
    ],
)
def test_parameters_named_twice_are_found(weights: str) -> None:
    assert len(found("DS646", f"net = Net()\nweights = {weights}{GIVE}")) == 1


@pytest.mark.parametrize(
    "weights",
    [
        "net.parameters()",
        "list(net.up.parameters()) + list(net.down.parameters())",
        "[p for p in net.parameters() if p.requires_grad] + [net.up.weight]",
        "list(net.parameters()) + list(Net().parameters())",
        "list(net.parameters(recurse=False)) + [net.up.weight]",
        "list(filter(keep, net.parameters())) + [net.up.weight]",
    ],
)
def test_other_parameters_are_silent(weights: str) -> None:
    assert found("DS646", f"net = Net()\nweights = {weights}{GIVE}") == []


# --- torch.compile ---

COMPILED = """
net = torch.compile(Net())
engine, *_ = deepspeed.initialize(model=net, config="ds_config.json")
"""


def test_a_compiled_model_is_found_by_stage() -> None:
    assert len(found("DS647", COMPILED)) == 1
    assert found("DS647", COMPILED, stage=2) == []
    assert found("DS648", COMPILED, stage=2) == []
    assert len(found("DS648", COMPILED + "engine.save_checkpoint('out')", stage=2)) == 1


def test_compiling_afterwards_is_right() -> None:
    script = """
net = Net()
engine, *_ = deepspeed.initialize(model=net, config="ds_config.json")
engine.compile()
run = torch.compile(engine)
engine.save_checkpoint("out")
"""
    for stage in (2, 3):
        assert found("DS647", script, stage=stage) == found("DS648", script, stage=stage) == []


def test_a_model_that_may_be_compiled_is_silent() -> None:
    script = (
        "args = argparse.ArgumentParser().parse_args()\nnet = Net()\nif args.fast:\n    net = torch.compile(net)\n"
    )
    assert found("DS647", script + GIVE.replace("weights", "None")) == []


def test_deepcompile_needs_the_call() -> None:
    settings = config(1, compile={"deepcompile": True})
    script = 'engine, *_ = deepspeed.initialize(model=Net(), config="ds_config.json")\n'
    assert len(found("DS649", script, config=settings)) == 1
    assert found("DS649", script + "engine.compile()", config=settings) == []
    assert found("DS649", script + "train(engine)", config=settings) == []
    assert found("DS649", script) == []


# --- further ---


def test_states_of_fused_adam_may_be_offloaded() -> None:
    script = 'engine, *_ = deepspeed.initialize(model=Net(), config="ds_config.json")\nengine.offload_states()\n'
    adam = {"type": "AdamW", "params": {"lr": 0.001}}
    assert found("DS650", script, config=config(3, optimizer=adam)) == []
    assert len(found("DS650", script, config=config(3, optimizer={"type": "SGD", "params": {"lr": 0.1}}))) == 1
    some = script.replace("offload_states()", "offload_states(include=parts)")
    assert found("DS650", some, config=config(3, optimizer={"type": "SGD", "params": {"lr": 0.1}})) == []


def test_native_experts_go_with_lower_stages() -> None:
    script = """
from deepspeed.moe.layer import MoE
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.moe = MoE(8, torch.nn.Linear(8, 8), num_experts=2)
engine, *_ = deepspeed.initialize(model=Block(), config="ds_config.json")
"""
    assert len(found("DS660", script)) == 1
    assert found("DS660", script, stage=2) == []
    assert found("DS660", script.replace("model=Block()", "model=Net()")) == []


def test_the_command_line_decides_whether_there_is_a_config() -> None:
    by_arguments = PARSE + "engine, *_ = deepspeed.initialize(args=args, model=Net())"
    both = PARSE + 'engine, *_ = deepspeed.initialize(args=args, model=Net(), config="ds_config.json")'
    given = "deepspeed train.py --deepspeed_config ds_config.json"
    assert found("DS645", by_arguments, launch=given) == []
    assert len(found("DS645", by_arguments, launch="deepspeed train.py --deepspeed")) == 1
    assert found("DS645", by_arguments, launch='deepspeed train.py "$@"') == []
    assert len(found("DS644", both, launch=given)) == 1
    assert found("DS644", both, launch="deepspeed train.py") == []
    assert found("DS644", by_arguments, launch=given) == []

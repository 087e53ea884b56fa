"""What a script does with weights that are spread over the ranks, gathered or not."""

from __future__ import annotations

import pytest

from tests.runs.script.findings import config, found

MAKE = """
net = Net()
engine, optimizer, *_ = deepspeed.initialize(model=net, config="ds_config.json")
rank = dist.get_rank()
args = argparse.ArgumentParser().parse_args()
"""

# --- load_state_dict ---


@pytest.mark.parametrize(
    "load",
    [
        'engine.module.load_state_dict(torch.load("x.pt"))',
        'net.load_state_dict(torch.load("x.pt")["model"], strict=False)',
        'net.up.load_state_dict(torch.load("x.pt"))',
    ],
)
def test_loading_into_partitions_is_found(load: str) -> None:
    assert found("DS652", MAKE + load) == [load]
    assert found("DS652", MAKE + load, stage=2) == []


@pytest.mark.parametrize(
    "body",
    [
        "best = engine.module.state_dict()\nengine.module.load_state_dict(best)",
        'with deepspeed.zero.GatheredParameters(net.parameters(), modifier_rank=0):\n    net.load_state_dict(torch.load("x.pt"))',
        "net.load_state_dict(weights)",
        'Net().load_state_dict(torch.load("x.pt"))',
        'engine.load_checkpoint("out")',
        'if args.stage != 3:\n    net.load_state_dict(torch.load("x.pt"))',
        'engine.average.load_state_dict(torch.load("x.pt"))',
        'engine.lr_scheduler.load_state_dict(torch.load("x.pt"))',
    ],
)
def test_other_loads_are_silent(body: str) -> None:
    assert found("DS652", MAKE + body + "\n") == []


def test_zero_init_that_may_be_off_is_silent() -> None:
    script = """
with deepspeed.zero.Init(enabled=on):
    net = Net()
net.load_state_dict(torch.load("x.pt"))
engine, *_ = deepspeed.initialize(model=net, config="ds_config.json")
"""
    assert found("DS652", script) == []
    assert found("DS658", script, stage=1) == []
    assert found("DS652", script.replace("enabled=on", "")) != []
    assert found("DS658", script.replace("enabled=on", ""), stage=1) != []


# --- sizes and values ---


@pytest.mark.parametrize(
    "look",
    [
        "n = sum(p.numel() for p in net.parameters())",
        "n = sum([p.numel() for n, p in engine.named_parameters()])",
        "for p in engine.module.parameters():\n    print(p.shape)",
        "n = net.up.weight.shape[0]",
        "n = engine.module.up.weight.size(0)",
    ],
)
def test_sizes_of_partitions_are_found(look: str) -> None:
    assert len(found("DS653", MAKE + look + "\n")) == 1
    assert found("DS653", MAKE + look + "\n", stage=1) == []
    assert found("DS653", "net = Net()\nengine = net\n" + look + "\n" + MAKE) == []


@pytest.mark.parametrize(
    "body",
    [
        "n = sum(getattr(p, 'ds_numel', p.numel()) for p in net.parameters())",
        "for p in net.parameters():\n    with deepspeed.zero.GatheredParameters(p):\n        print(p.shape)",
        "n = sum(p.numel() for p in Net().parameters())",
        "for x, y in batches(2):\n    print(x.shape, engine(x).shape)",
        "print(net.config.shape)",
        "class Other(torch.nn.Module):\n    def forward(self, x):\n        return x @ self.up.weight.T[:self.up.weight.shape[0]]",
    ],
)
def test_other_sizes_are_silent(body: str) -> None:
    assert found("DS653", MAKE + body + "\n") == []


@pytest.mark.parametrize(
    "use",
    [
        "for p in net.parameters():\n    p.data.clamp_(-1, 1)",
        "norm = sum(p.norm() for p in engine.parameters())",
        "torch.nn.init.normal_(net.up.weight)",
        "with torch.no_grad():\n    net.up.weight.fill_(0)",
        "mean = net.up.weight.data.mean()",
    ],
)
def test_values_of_partitions_are_found(use: str) -> None:
    assert len(found("DS654", MAKE + use + "\n")) == 1
    assert found("DS654", MAKE + use + "\n", stage=2) == []


@pytest.mark.parametrize(
    "body",
    [
        "for p in net.parameters():\n    p.requires_grad_(False)\n    print(p.dtype, p.device)",
        "for p in net.parameters():\n    if p.grad is not None:\n        p.grad.clamp_(-1, 1)",
        "with deepspeed.zero.GatheredParameters(net.up.weight, modifier_rank=0):\n    net.up.weight.data.zero_()",
        "for p in average.parameters():\n    p.data.mul_(0.9)",
        "loss = engine(batches(1)[0][0]).mean()",
        "for p in net.parameters():\n    if hasattr(p, 'ds_id'):\n        continue\n    p.data.zero_()",
        "with whole(net):\n    net.up.weight.data.zero_()",
    ],
)
def test_other_values_are_silent(body: str) -> None:
    assert found("DS654", MAKE + body + "\n") == []


# --- GatheredParameters ---


@pytest.mark.parametrize(
    "body",
    [
        "with deepspeed.zero.GatheredParameters(net.up.weight):\n    net.up.weight.data.zero_()",
        "with deepspeed.zero.GatheredParameters(net.parameters(), modifier_rank=None):\n    torch.nn.init.ones_(net.up.weight)",
        "with torch.no_grad(), deepspeed.zero.GatheredParameters(list(net.parameters())):\n    net.up.weight.copy_(w)",
    ],
)
def test_lost_writes_are_found(body: str) -> None:
    assert len(found("DS655", MAKE + body + "\n")) == 1
    assert found("DS655", MAKE + body + "\n", stage=1) == []


@pytest.mark.parametrize(
    "body",
    [
        "with deepspeed.zero.GatheredParameters(net.up.weight, modifier_rank=0):\n    net.up.weight.data.zero_()",
        "with deepspeed.zero.GatheredParameters(net.up.weight):\n    print(net.up.weight.norm())",
        "with deepspeed.zero.GatheredParameters(net.up.weight):\n    average.weight.data.copy_(net.up.weight)",
        "with deepspeed.zero.GatheredParameters(net.up.weight, **options):\n    net.up.weight.data.zero_()",
        "with deepspeed.zero.GatheredParameters(net.up.weight, enabled=False):\n    net.up.weight.data.zero_()",
        "with deepspeed.zero.GatheredParameters(net.up.weight):\n    net.up.weight.clone().zero_()",
        "with deepspeed.zero.GatheredParameters(net.parameters()):\n    net.up.weight.mul_(2)\n    net.generate(x)",
    ],
)
def test_kept_writes_and_reads_are_silent(body: str) -> None:
    assert found("DS655", MAKE + body + "\n") == []


NESTED = """
with deepspeed.zero.GatheredParameters({outer}):
    with deepspeed.zero.GatheredParameters({inner}):
        print()
"""


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        ("net.parameters()", "net.parameters()"),
        ("list(net.parameters())", "[net.up.weight]"),
        ("engine.module.parameters()", "net.up.parameters()"),
    ],
)
def test_nested_gathers_are_found(outer: str, inner: str) -> None:
    script = MAKE + NESTED.replace("{outer}", outer).replace("{inner}", inner)
    assert found("DS656", script) == [f"deepspeed.zero.GatheredParameters({inner})"]
    assert found("DS656", script, deepspeed="0.19.3") == []
    assert found("DS656", script, stage=1) == []


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        ("net.up.parameters()", "net.down.parameters()"),
        ("net.up.weight", "net.up.bias"),
        ("Net().parameters()", "net.parameters()"),
        ("some", "net.parameters()"),
        ("net.parameters(recurse=False)", "net.up.parameters()"),
        ("net.parameters(), enabled=on", "net.parameters()"),
    ],
)
def test_gathers_of_different_parameters_are_silent(outer: str, inner: str) -> None:
    assert found("DS656", MAKE + NESTED.replace("{outer}", outer).replace("{inner}", inner)) == []


# --- copies ---


def test_copies_of_partitions_are_found() -> None:
    assert found("DS659", MAKE + "average = copy.deepcopy(net)") == ["copy.deepcopy(net)"]
    assert found("DS659", MAKE + "best = copy.deepcopy(net.state_dict())") == ["copy.deepcopy(net.state_dict())"]
    assert found("DS659", MAKE + "average = copy.deepcopy(net)", stage=2) == []


@pytest.mark.parametrize(
    "body",
    [
        "other = copy.deepcopy(args)",
        "other = copy.deepcopy(net.config)",
        "other = copy.deepcopy(Net())",
        "with deepspeed.zero.GatheredParameters(net.parameters()):\n    average = copy.deepcopy(net)",
    ],
)
def test_other_copies_are_silent(body: str) -> None:
    assert found("DS659", MAKE + body + "\n") == []


def test_a_copy_before_initialize_is_whole() -> None:
    script = 'net = Net()\naverage = copy.deepcopy(net)\nengine, *_ = deepspeed.initialize(model=net, config="ds_config.json")'
    assert found("DS659", script) == []


# --- zero.Init ---


def test_zero_init_needs_a_type_where_32_bits_are_trained() -> None:
    script = """
with deepspeed.zero.Init():
    net = Net()
engine, *_ = deepspeed.initialize(model=net, config="ds_config.json")
"""
    assert found("DS662", script) == ["deepspeed.zero.Init()"]
    assert found("DS662", script, config=config(3, bf16={"enabled": True})) == []
    assert found("DS662", script.replace("Init()", "Init(dtype=torch.float32)")) == []
    assert found("DS662", script.replace("Init()", "Init(config_dict_or_path='ds_config.json')")) == []


HF = """
from transformers import AutoModelForCausalLM, TrainingArguments
from transformers.integrations import HfDeepSpeedConfig
kept = HfDeepSpeedConfig("ds_config.json")
model = AutoModelForCausalLM.from_pretrained("x")
"""


def test_auto_that_nobody_has_filled_is_found() -> None:
    auto = {**config(3), "train_micro_batch_size_per_gpu": "auto"}
    assert found("DS657", HF, config=auto) == ['HfDeepSpeedConfig("ds_config.json")']
    assert found("DS657", HF, config=config(3)) == []
    assert found("DS657", HF, config={**auto, "zero_optimization": {"stage": 2}}) == []
    assert found("DS657", HF.replace("kept =", "args = TrainingArguments('o')\nkept ="), config=auto) == []


def test_things_inside_of_themselves_bring_no_trouble() -> None:
    script = """
weights = []
weights.append(weights)
net = Net()
net.self = net
net.parts = [net]
class Loop(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.me = self
        self.parts = [self.me]
        self.parts.append(self.parts)
loop = Loop()
engine, *_ = deepspeed.initialize(model=loop, model_parameters=weights, config="ds_config.json")
other, *_ = deepspeed.initialize(model=net, model_parameters=weights, config="ds_config.json")
with deepspeed.zero.GatheredParameters(weights):
    with deepspeed.zero.GatheredParameters(weights):
        loop.me.me.weight.data.zero_()
torch.save(weights, "x.pt")
torch.save(loop.state_dict(), "x.pt")
engine.save_checkpoint("x", tag=weights)
print(engine{path}.weight.shape, engine.module{path}.load_state_dict(torch.load("x")))
""".replace("{path}", ".part" * 600)
    for code in ("DS640", "DS646", "DS652", "DS653", "DS654", "DS655", "DS656", "DS910", "DS914"):
        assert found(code, script) is not None

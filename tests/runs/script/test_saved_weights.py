"""What a script writes of weights and states that the ranks share, and the ways that are right."""

from __future__ import annotations

import pytest

from tests.runs.script.findings import config, found

MAKE = """
net = Net()
engine, optimizer, *_ = deepspeed.initialize(model=net, config="ds_config.json")
rank = dist.get_rank()
args = argparse.ArgumentParser().parse_args()
"""


@pytest.mark.parametrize(
    "save",
    [
        'torch.save(engine.module.state_dict(), "x.pt")',
        'torch.save(engine.state_dict(), "x.pt")',
        'torch.save(net.state_dict(), "x.pt")',
        'torch.save(obj=net.state_dict(), f="x.pt")',
        'torch.save(net, "x.pt")',
        'torch.save({"model": net.state_dict(), "step": 3}, "x.pt")',
        'torch.save({k: v.cpu() for k, v in net.state_dict().items()}, "x.pt")',
        'torch.save((net.module if hasattr(net, "module") else net).state_dict(), "x.pt")',
    ],
)
def test_partitioned_weights_are_found(save: str) -> None:
    assert found("DS910", MAKE + save) == [save]
    assert found("DS910", MAKE + f"if rank == 0:\n    {save}\n") == [save]
    assert found("DS910", MAKE + save, stage=2) == []


@pytest.mark.parametrize(
    "body",
    [
        'torch.save(engine._zero3_consolidated_16bit_state_dict(), "x.pt")',
        'torch.save(gather(net.state_dict()), "x.pt")',
        'torch.save(Net().state_dict(), "x.pt")',
        'torch.save(net.config, "x.pt")',
        'torch.save(optimizer.state_dict(), "x.pt")',
        'torch.save({k: v for k, v in net.state_dict().items() if "lora" in k}, "x.pt")',
        'torch.save({"loss": engine(batches(1)[0][0]).item()}, "x.pt")',
        'with deepspeed.zero.GatheredParameters(net.parameters()):\n    torch.save(net.state_dict(), "x.pt")',
        'with gathered(net):\n    torch.save(net.state_dict(), "x.pt")',
        'if args.stage == 3:\n    engine.save_checkpoint("x")\nelse:\n    torch.save(net.state_dict(), "x.pt")',
        'if not engine.zero_optimization_partition_weights():\n    torch.save(net.state_dict(), "x.pt")',
        'torch.save(net.state_dict(), "x.pt")\nengine.save_16bit_model("out")',
        'engine.save_checkpoint("out")\nprint("join the parts with zero_to_fp32.py")',
    ],
)
def test_right_ways_are_silent(body: str) -> None:
    assert found("DS910", MAKE + body + "\n") == []


def test_saving_before_initialize_is_right() -> None:
    assert found("DS910", 'net = Net()\ntorch.save(net.state_dict(), "x.pt")\n' + MAKE) == []


def test_gathering_parameter_by_parameter_is_right() -> None:
    script = (
        MAKE
        + """
def save(model):
    if not hasattr(model, "x"):
        torch.save(model.state_dict(), "x.pt")
    weights = {}
    for name, p in model.named_parameters():
        with deepspeed.zero.GatheredParameters(p):
            weights[name] = p.data.cpu()
    torch.save(weights, "x.pt")
save(net)
"""
    )
    assert found("DS910", script) == []


SMALL = """
class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(10, 20)
        self.second = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(20, {width}))
    def forward(self, x):
        return self.second(self.first(x))
engine, *_ = deepspeed.initialize(model=Small(), config="ds_config.json")
torch.save(engine.module.state_dict(), "x.pt")
"""


def test_weights_below_the_threshold_stay_whole() -> None:
    assert found("DS910", SMALL.replace("{width}", "10")) == []
    assert found("DS910", SMALL.replace("{width}", "10000")) != []
    assert found("DS910", SMALL.replace("{width}", "width")) != []
    low = config(3, zero={"stage3_param_persistence_threshold": 100})
    assert found("DS910", SMALL.replace("{width}", "10"), config=low) != []


def test_adapters_are_left_alone() -> None:
    script = """
from peft import get_peft_model
net = get_peft_model(Net(), None)
engine, *_ = deepspeed.initialize(model=net, config="ds_config.json")
torch.save(engine.module.state_dict(), "x.pt")
engine.module.save_pretrained("out")
"""
    assert found("DS910", script) == []
    assert found("DS911", script) == []


def test_two_engines_are_told_apart() -> None:
    script = MAKE + 'other = Net()\ntorch.save(other.state_dict(), "x.pt")\n'
    assert found("DS910", script) == []


# --- save_pretrained ---


def test_save_pretrained_is_found() -> None:
    assert found("DS911", MAKE + 'engine.module.save_pretrained("out")') == [
        'engine.module.save_pretrained("out")'
    ]
    assert found("DS911", MAKE + 'net.save_pretrained("out")', stage=2) == []


@pytest.mark.parametrize(
    "body",
    [
        'net.save_pretrained("out", state_dict=weights)',
        'net.save_pretrained("out", **options)',
        'tokenizer.save_pretrained("out")',
        'Net().save_pretrained("out")',
        'with deepspeed.zero.GatheredParameters(net.parameters()):\n    net.save_pretrained("out")',
    ],
)
def test_save_pretrained_with_whole_weights_is_silent(body: str) -> None:
    assert found("DS911", MAKE + body + "\n") == []


TRAINER = """
from transformers import Trainer, TrainingArguments
args = TrainingArguments("out", deepspeed="ds_config.json")
trainer = Trainer(model=net, args=args)
trainer.train()
"""


def test_the_trainers_model_is_partitioned_after_training() -> None:
    model = 'net.save_pretrained("out")'
    own = 'trainer.model.save_pretrained("out")'
    assert found("DS911", "net = Net()" + TRAINER + model) == [model]
    assert found("DS911", "net = Net()" + TRAINER + own) == [own]
    assert found("DS911", "net = Net()\n" + model + TRAINER) == []
    assert found("DS911", "net = Net()" + TRAINER + 'trainer.save_model("out")') == []


# --- save_16bit_model ---


def test_a_dropped_answer_is_found() -> None:
    assert found("DS912", MAKE + 'engine.save_16bit_model("out")') == ['engine.save_16bit_model("out")']


@pytest.mark.parametrize(
    "body",
    [
        'if not engine.save_16bit_model("out"):\n    engine.save_checkpoint("out")',
        'done = engine.save_16bit_model("out")',
        'assert engine.save_16bit_model("out")',
        'if args.stage != 3:\n    engine.save_16bit_model("out")',
    ],
)
def test_an_answer_that_is_looked_at_is_silent(body: str) -> None:
    assert found("DS912", MAKE + body + "\n") == []


def test_a_script_that_saves_otherwise_needs_no_gathering() -> None:
    assert found("DS301", MAKE + 'engine.save_checkpoint("out")') == []
    assert found("DS301", MAKE) == []
    assert found("DS301", "net = Net()" + TRAINER) != []


# --- states of the optimizer ---


@pytest.mark.parametrize("state", ["optimizer.state_dict()", "engine.optimizer.state_dict()"])
def test_the_states_of_one_rank_are_found(state: str) -> None:
    script = MAKE + f'if rank == 0:\n    torch.save({{"optimizer": {state}}}, "x.pt")\n'
    assert len(found("DS913", script, stage=1)) == 1
    assert found("DS913", script, stage=0) == []
    assert found("DS913", script, stage=1, gpus=1) == []


@pytest.mark.parametrize(
    "body",
    [
        'torch.save(optimizer.state_dict(), f"optimizer-{rank}.pt")',
        'other = torch.optim.SGD(Net().parameters())\nif rank == 0:\n    torch.save(other.state_dict(), "x.pt")',
        'if rank == 0:\n    torch.save({"step": engine.global_steps}, "x.pt")',
    ],
)
def test_states_of_each_rank_or_of_others_are_silent(body: str) -> None:
    assert found("DS913", MAKE + body + "\n", stage=1) == []


# --- tags ---


@pytest.mark.parametrize(
    "tag", ["f'rank{rank}'", "str(rank)", "f'{loss.item():.2f}'", "'a' + str(engine.global_rank)"]
)
def test_tags_of_one_rank_are_found(tag: str) -> None:
    script = MAKE + f'loss = engine(batches(1)[0][0])\nengine.save_checkpoint("out", tag={tag})\n'
    assert len(found("DS914", script)) == 1
    assert found("DS914", script, gpus=1) == []


@pytest.mark.parametrize(
    "tag",
    [
        "f'step{engine.global_steps}'",
        "None",
        "'last'",
        "args.tag",
        "f'{step}'",
        "f'{mean(loss)}'",
        "f'{total.item()}'",
    ],
)
def test_common_tags_are_silent(tag: str) -> None:
    script = MAKE + "loss = engine(batches(1)[0][0])\ntotal = loss.detach()\ndist.all_reduce(total)\n"
    assert found("DS914", script + f'engine.save_checkpoint("out", tag={tag})\n') == []


def test_loading_what_the_same_engine_saved_is_silent() -> None:
    script = MAKE + 'engine.save_checkpoint("out")\nengine.load_checkpoint("out")\n'
    for code in ("DS640", "DS652", "DS910", "DS914"):
        assert found(code, script) == []


def test_engines_of_other_configs_are_left_alone() -> None:
    script = """
actor, *_ = deepspeed.initialize(model=Net(), config="ds_config.json")
critic, *_ = deepspeed.initialize(model=Net(), config=other)
if dist.get_rank() == 0:
    torch.save(critic.module.state_dict(), "critic.pt")
    critic(batches(1)[0][0])
critic.save_16bit_model("out")
"""
    for code in ("DS640", "DS910", "DS912"):
        assert found(code, script) == []
    same = script.replace("config=other", 'config="ds_config.json"').replace('critic.save_16bit_model("out")', "")
    assert len(found("DS910", same)) == len(found("DS640", same)) == 1


ACCELERATE = """
from accelerate import Accelerator
accelerator = Accelerator()
net = torch.nn.Linear(4096, 4096)
optimizer = torch.optim.AdamW(net.parameters())
loader = DataLoader(TensorDataset(torch.zeros(8, 4096)), batch_size=2)
net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
"""
YAML = "distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 3}\nnum_processes: 2\n"


@pytest.mark.parametrize(
    "save",
    [
        'accelerator.save(accelerator.unwrap_model(net).state_dict(), "x.pt")',
        'torch.save(net.state_dict(), "x.pt")',
    ],
)
def test_a_prepared_model_is_partitioned_too(save: str) -> None:
    script = ACCELERATE + f"if accelerator.is_main_process:\n    {save}\n"
    assert found("DS910", script, config=None, accelerate=YAML) == [save]
    assert found("DS910", script, config=None, accelerate=YAML.replace("3}", "2}")) == []
    asked = script.replace("is_main_process", "state.deepspeed_plugin is None")
    assert found("DS910", asked, config=None, accelerate=YAML) == []


def test_whole_weights_of_a_prepared_model_are_silent() -> None:
    script = (
        ACCELERATE + 'accelerator.save(accelerator.get_state_dict(net), "x.pt")\naccelerator.save_state("out")\n'
    )
    assert found("DS910", script, config=None, accelerate=YAML) == []


@pytest.mark.parametrize("part", ["config", "module.config", "module.generation_config", "module.tokenizer"])
def test_settings_of_a_partitioned_model_have_no_weights(part: str) -> None:
    guarded = MAKE + f'if rank == 0:\n    engine.{part}.save_pretrained("export")\n'
    assert found("DS911", guarded) == []
    assert found("DS911", MAKE + 'net.config.save_pretrained("export")\n') == []


def test_a_submodule_of_a_partitioned_model_has_weights() -> None:
    save = 'engine.module.language_model.save_pretrained("export")'
    assert found("DS911", MAKE + save + "\n") == [save]


ARGUMENTS = """
from transformers import Trainer, TrainingArguments
from helpers import build_trainer
args = TrainingArguments("run", deepspeed="ds_config.json")
"""


def test_arguments_of_a_trainer_that_nobody_makes_save_nothing() -> None:
    assert found("DS301", ARGUMENTS + "net = Net()\n") == []


@pytest.mark.parametrize("made", ["Trainer(Net(), args)", "build_trainer(args)", "made(args)"])
def test_a_trainer_may_save(made: str) -> None:
    assert found("DS301", ARGUMENTS + f"trainer = {made}\ntrainer.train()\n") != []

"""Whole training scripts that are right, in the styles that people write them in: no rule has anything to say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runs.script.loop_rules import config, fired

CLASSIFIER = """
import argparse
import deepspeed, torch
import torch.nn as nn, torch.nn.functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 5)
        self.fc = nn.Linear(84, 10)

    def forward(self, x):
        return self.fc(F.relu(self.conv(x)).flatten(1))

def add_argument():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", default=2, type=int)
    parser.add_argument("--local_rank", type=int, default=-1)
    parser.add_argument("--log-interval", type=int, default=100)
    parser.add_argument("--dtype", default="bf16", choices=["bf16", "fp16", "fp32"])
    parser = deepspeed.add_config_arguments(parser)
    return parser.parse_args()

def test(model_engine, testset, local_device, target_dtype):
    correct = 0
    model_engine.eval()
    with torch.no_grad():
        for images, labels in testset:
            if target_dtype is not None:
                images = images.to(target_dtype)
            outputs = model_engine(images.to(local_device))
            _, predicted = torch.max(outputs.data, 1)
            correct += (predicted == labels.to(local_device)).sum().item()
    print(correct)

def main(args):
    deepspeed.init_distributed()
    net = Net()
    parameters = filter(lambda p: p.requires_grad, net.parameters())
    model_engine, optimizer, trainloader, __ = deepspeed.initialize(
        args=args, model=net, model_parameters=parameters, training_data=make_data(), config="ds_config.json")
    local_device = deepspeed.get_accelerator().device_name(model_engine.local_rank)
    target_dtype = None
    if model_engine.bfloat16_enabled():
        target_dtype = torch.bfloat16
    elif model_engine.fp16_enabled():
        target_dtype = torch.half
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        running_loss = 0.0
        for i, data in enumerate(trainloader):
            inputs, labels = data[0].to(local_device), data[1].to(local_device)
            if target_dtype is not None:
                inputs = inputs.to(target_dtype)
            outputs = model_engine(inputs)
            loss = criterion(outputs, labels)
            model_engine.backward(loss)
            model_engine.step()
            running_loss += loss.item()
            if i % args.log_interval == args.log_interval - 1:
                print(f"[{epoch}, {i}] {running_loss / args.log_interval}")
                running_loss = 0.0
    test(model_engine, make_data(), local_device, target_dtype)

if __name__ == "__main__":
    main(add_argument())
"""

FINETUNING = """
import argparse, math
import deepspeed, torch
from deepspeed.ops.adam import DeepSpeedCPUAdam, FusedAdam
from transformers import AutoModelForCausalLM, get_scheduler

def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model_name_or_path")
    parser.add_argument("--gradient_accumulation_steps", type=int, default=1)
    parser.add_argument("--offload", action="store_true")
    parser.add_argument("--zero_stage", type=int, default=0)
    parser.add_argument("--gradient_checkpointing", action="store_true")
    parser.add_argument("--only_optimize_lora", action="store_true")
    parser.add_argument("--num_train_epochs", type=int, default=1)
    parser = deepspeed.add_config_arguments(parser)
    return parser.parse_args()

def evaluation(model, loader):
    model.eval()
    losses = 0
    for step, batch in enumerate(loader):
        with torch.no_grad():
            outputs = model(**batch)
        losses += outputs.loss.float()
    losses = losses / (step + 1)
    model.train()
    return losses

def main():
    args = parse_args()
    ds_config = {
        "train_micro_batch_size_per_gpu": 4,
        "gradient_accumulation_steps": args.gradient_accumulation_steps,
        "zero_optimization": {"stage": args.zero_stage, "offload_optimizer": {"device": "cpu" if args.offload else "none"}},
        "fp16": {"enabled": True, "loss_scale_window": 100},
        "gradient_clipping": 1.0,
    }
    model = AutoModelForCausalLM.from_pretrained(args.model_name_or_path)
    if args.only_optimize_lora:
        for name, param in model.named_parameters():
            param.requires_grad = "lora" in name
    AdamOptimizer = DeepSpeedCPUAdam if args.offload else FusedAdam
    optimizer = AdamOptimizer(model.parameters(), lr=1e-5, betas=(0.9, 0.95))
    lr_scheduler = get_scheduler("cosine", optimizer=optimizer, num_warmup_steps=0, num_training_steps=100)
    model, optimizer, _, lr_scheduler = deepspeed.initialize(
        model=model, optimizer=optimizer, args=args, config=ds_config, lr_scheduler=lr_scheduler, dist_init_required=True)
    if args.gradient_checkpointing:
        model.gradient_checkpointing_enable()
    evaluation(model, eval_loader)
    for epoch in range(args.num_train_epochs):
        model.train()
        for step, batch in enumerate(train_loader):
            outputs = model(**batch, use_cache=False)
            loss = outputs.loss
            model.backward(loss)
            model.step()
        evaluation(model, eval_loader)
        model.tput_timer.update_epoch_count()

if __name__ == "__main__":
    main()
"""

EITHER_WAY = """
import argparse, contextlib
import deepspeed, torch
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--enable-deepspeed", action="store_true")
parser.add_argument("--grad-clip-norm", type=float, default=None)
parser.add_argument("--accum-freq", type=int, default=1)
parser.add_argument("--precision", default="amp")

def train_one_epoch(model, data, optimizer, scaler, scheduler, args):
    autocast = torch.cuda.amp.autocast if args.precision == "amp" else contextlib.nullcontext
    model.train()
    for i, batch in enumerate(data):
        if not args.enable_deepspeed:
            scheduler(i)
        optimizer.zero_grad()
        with autocast():
            loss = model(batch)
        if scaler is not None:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        elif args.enable_deepspeed:
            model.backward(loss)
            model.step()
        else:
            loss.backward()
            if args.grad_clip_norm is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), args.grad_clip_norm)
            optimizer.step()

def main():
    args = parser.parse_args()
    model = make_model()
    optimizer, scaler = None, None
    if args.enable_deepspeed:
        model, optimizer, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds_config.json")
    else:
        model = DistributedDataParallel(model)
        optimizer = torch.optim.AdamW(model.parameters())
        scaler = torch.cuda.amp.GradScaler() if args.precision == "amp" else None
    for epoch in range(3):
        train_one_epoch(model, data, optimizer, scaler, scheduler, args)

main()
"""

GAN = """
import deepspeed, torch
import torch.nn as nn

class Trainer:
    def __init__(self):
        self.netG, _, _, _ = deepspeed.initialize(model=Generator(), config="ds_config.json")
        self.netD, _, _, _ = deepspeed.initialize(model=Discriminator(), config="ds_config.json")
        self.criterion = nn.BCELoss()

    def train(self, loader):
        for i, data in enumerate(loader):
            noise = torch.randn(8, 100)
            fake = self.netG(noise)
            output = self.netD(fake.detach())
            real = self.netD(data)
            errD = self.criterion(output, zeros) + self.criterion(real, ones)
            self.netD.backward(errD)
            self.netD.step()
            errG = self.criterion(self.netD(fake), ones)
            self.netG.backward(errG)
            self.netG.step()

if __name__ == "__main__":
    Trainer().train(make_loader())
"""

REINFORCED = """
import copy
import deepspeed, torch

class Agent:
    def __init__(self, actor, critic, settings):
        self.reference = copy.deepcopy(actor).eval()
        self.reference.requires_grad_(False)
        self.actor, _, _, self.actor_schedule = deepspeed.initialize(model=actor, config=settings.actor)
        self.critic, *_ = deepspeed.initialize(model=critic, config=settings.critic)

    def update(self, batch):
        with torch.no_grad():
            kept = self.reference(batch)
            values = self.critic(batch)
        ratio = (self.actor(batch) - kept).exp()
        actor_loss = -(ratio * values).mean()
        self.actor.backward(actor_loss)
        self.actor.step()
        critic_loss = (self.critic(batch) - values).pow(2).mean()
        self.critic.backward(critic_loss)
        self.critic.step()
        return actor_loss.item(), critic_loss.item()
"""

AVERAGED = """
import copy
import deepspeed, torch

def update_ema(ema, model, decay):
    with torch.no_grad():
        for e, p in zip(ema.parameters(), model.parameters()):
            e.data.mul_(decay).add_(p.data, alpha=1 - decay)

def main():
    model = make_model()
    ema = copy.deepcopy(model).eval()
    for p in ema.parameters():
        p.requires_grad = False
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    engine, optimizer, _, _ = deepspeed.initialize(model=model, optimizer=optimizer, config="ds_config.json")
    accumulation = engine.gradient_accumulation_steps()
    total = 0
    for step, batch in enumerate(loader):
        loss = engine(batch)
        engine.backward(loss)
        engine.step()
        total += loss.item() / accumulation
        if engine.is_gradient_accumulation_boundary():
            update_ema(ema, engine.module, 0.999)
            print(total, engine.get_lr(), engine.get_global_grad_norm())
            total = 0
        if (step + 1) % 1000 == 0:
            engine.save_checkpoint("out", client_state={"step": step, "ema": ema.state_dict()})

main()
"""

RESUMED = """
import argparse
import deepspeed, torch

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights")
    parser.add_argument("--resume")
    args = parser.parse_args()
    model = make_model()
    if args.weights:
        model.load_state_dict(torch.load(args.weights, map_location="cpu"))
    trainable = [p for p in model.parameters() if p.requires_grad]
    print(sum(p.numel() for p in trainable))
    engine, _, loader, scheduler = deepspeed.initialize(
        model=model, model_parameters=trainable, training_data=make_data(), config="ds_config.json")
    start = 0
    if args.resume:
        _, state = engine.load_checkpoint(args.resume)
        start = state["epoch"] + 1
    best = float("inf")
    for epoch in range(start, 10):
        engine.train()
        for batch in loader:
            loss = engine(batch)
            engine.backward(loss)
            engine.step()
        engine.eval()
        with torch.no_grad():
            valid = sum(engine(batch).item() for batch in valid_loader)
        if valid < best:
            best = valid
            engine.save_checkpoint("best", client_state={"epoch": epoch})
    if scheduler is not None:
        print(scheduler.get_last_lr())
    engine.load_checkpoint("best")

if __name__ == "__main__":
    main()
"""

LIBRARY = """
import deepspeed, torch

class Strategy:
    def __init__(self, args=None):
        self.args = args
        self.accumulated_gradient = 1

    def backward(self, loss, model, optimizer, **kwargs):
        if isinstance(model, Wrapper):
            model = model.model
        model.backward(loss)

    def optimizer_step(self, optimizer, model, scheduler, name="model", **kwargs):
        if isinstance(model, Wrapper):
            model = model.model
        model.step()

    def prepare(self, *models_or_pairs):
        found = []
        for one in models_or_pairs:
            found.append(self._init_train(*one) if isinstance(one, tuple) else self._init_eval(one))
        return found

    def _init_train(self, model, optim, scheduler):
        engine, optim, _, scheduler = deepspeed.initialize(
            model=model, optimizer=optim, lr_scheduler=scheduler, config="ds_config.json", dist_init_required=True)
        return engine, optim, scheduler

    def _init_eval(self, model):
        engine, *_ = deepspeed.initialize(model=model, config="eval.json")
        return engine
"""

RIGHT: dict[str, tuple[str, dict[str, Any]]] = {
    "a classifier": (CLASSIFIER, config(2)),
    "fine-tuning with a dict": (FINETUNING, {}),
    "with and without DeepSpeed": (EITHER_WAY, config(1)),
    "two engines": (GAN, config(2)),
    "several models, two configs": (REINFORCED, config(2)),
    "an average beside the model": (AVERAGED, config(2, optimizer=None, gradient_accumulation_steps=4)),
    "resumed": (RESUMED, config(3, gradient_accumulation_steps=2)),
    "a library": (LIBRARY, config(2)),
}


@pytest.mark.parametrize(("script", "settings"), RIGHT.values(), ids=RIGHT)
def test_scripts_that_are_right(script: str, settings: dict[str, Any]) -> None:
    assert fired(script, settings) == []


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
@pytest.mark.parametrize("precision", ["none", "bf16", "fp16"])
@pytest.mark.parametrize("script", [CLASSIFIER, GAN, RESUMED], ids=["classifier", "two engines", "resumed"])
def test_they_are_right_with_any_stage_and_precision(script: str, precision: str, stage: int) -> None:
    more: dict[str, Any] = {} if precision == "none" else {precision: {"enabled": True}}
    assert fired(script, config(stage, **more)) == []


LAUNCHED = """
import argparse
import deepspeed, torch
from data import Net, loader

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gradient_accumulation_steps", type=int, default=1)
    parser.add_argument("--clip", type=float)
    parser.add_argument("--deepspeed", action="store_true")
    parser.add_argument("--local_rank", type=int)
    args = parser.parse_args()
    model = Net()
    if args.deepspeed:
        model, optimizer, _, _ = deepspeed.initialize(model=model, config="ds_config.json")
    for i, batch in enumerate(loader):
        loss = model(batch) / args.gradient_accumulation_steps
        if args.deepspeed:
            model.backward(loss)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            if (i + 1) % args.gradient_accumulation_steps == 0:
                model.step()

main()
"""


def test_a_launch_command_settles_what_arguments_are() -> None:
    four = config(2, gradient_accumulation_steps=4)
    launch = "deepspeed train.py --deepspeed --gradient_accumulation_steps {}"
    assert fired(LAUNCHED, four, launch=launch.format(4)) == ["DS605", "DS614", "DS619"]
    assert fired(LAUNCHED, four, launch=launch.format(1)) == ["DS619"]
    assert fired(LAUNCHED, four, launch="deepspeed train.py --gradient_accumulation_steps 4") == []


def test_without_one_nobody_knows_what_the_model_is() -> None:
    assert fired(LAUNCHED, config(2, gradient_accumulation_steps=4)) == []


EVERYTHING = [script for script, _ in RIGHT.values()] + [LAUNCHED]
LINES = sorted({line.strip() for script in EVERYTHING for line in script.splitlines() if line.strip()})
STRANGE = [
    "engine.optimizer = None",
    "engine.module = {}",
    "engine.initialize = 3",
    "engine, *_ = deepspeed.initialize(*given, **more)",
    "engine, o, l, s = deepspeed.initialize(model=engine, optimizer=o, lr_scheduler=s, config={})",
    "engine.save_checkpoint(client_state={1: 2, None: 3, 'module': 4})",
    "torch.nn.utils.clip_grad_norm_()",
    "loss = [loss, (loss,)]",
]


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_no_script_is_too_strange(data: st.DataObject) -> None:
    lines = data.draw(st.sampled_from(EVERYTHING)).splitlines()
    for _ in range(data.draw(st.integers(1, 5))):
        place = data.draw(st.integers(1, len(lines) - 1))
        indent = lines[place][: len(lines[place]) - len(lines[place].lstrip())]
        if data.draw(st.booleans()):
            lines[place] = indent + data.draw(st.sampled_from(LINES + STRANGE))
        else:
            lines.insert(place, indent + data.draw(st.sampled_from(LINES + STRANGE)))
    fired("import deepspeed\n" + "\n".join(lines), config(data.draw(st.sampled_from([None, 0, 1, 2, 3]))))

"""Changes to a model after it has become an engine's; mixed precision by hand; methods of the engine."""

from __future__ import annotations

import pytest

from tests.runs.script.loop_rules import config, fired, loop

STEP = "engine.backward(engine(x))\nengine.step()"
TURN = "\nfor x, y in loader:\n    engine.backward(engine(x))\n    engine.step()\n"


def after(change: str, before: str = "") -> str:
    """A script that changes something after a first loop, and goes on training."""
    return loop(STEP, before=before) + change.strip() + TURN


# --- unfreezing ---

FREEZE = "for p in model.encoder.parameters():\n    p.requires_grad = False"
UNFREEZE = FREEZE.replace("False", "True")


@pytest.mark.parametrize(
    ("frozen", "unfrozen"),
    [
        (FREEZE, UNFREEZE),
        (FREEZE, "engine.module.encoder.requires_grad_(True)"),
        ("model.encoder.requires_grad_(False)", UNFREEZE),
        ("model.encoder.requires_grad_(False)", "model.requires_grad_(True)"),
        ("model.requires_grad_(False)", "model.encoder.layer.requires_grad_()"),
        (
            "for name, p in model.named_parameters():\n    if 'head' not in name:\n        p.requires_grad = False",
            "for p in model.parameters():\n    p.requires_grad = True",
        ),
    ],
)
def test_what_was_frozen_stays_frozen(frozen: str, unfrozen: str) -> None:
    assert fired(after(unfrozen, frozen), config(2)) == ["DS632"]
    assert fired(after(unfrozen, frozen), config(0)) == []


@pytest.mark.parametrize(
    ("frozen", "unfrozen"),
    [
        ("", UNFREEZE),
        (FREEZE, "model.head.requires_grad_(True)"),
        (FREEZE + "\n" + UNFREEZE, UNFREEZE),
        ("other = make_model()\nother.requires_grad_(False)", UNFREEZE),
        (
            "for name, p in model.named_parameters():\n    if 'head' not in name:\n        p.requires_grad = False",
            "for name, p in model.named_parameters():\n    if 'head' in name:\n        p.requires_grad = True",
        ),
        (FREEZE, "x.requires_grad_(True)"),
    ],
)
def test_what_was_not_frozen_may_be_unfrozen(frozen: str, unfrozen: str) -> None:
    assert fired(after(unfrozen, frozen), config(2)) == []


def test_freezing_after_initialize_is_right() -> None:
    assert fired(loop(STEP) + FREEZE + TURN + UNFREEZE + TURN, config(2)) == []


def test_unfreezing_before_initialize_is_right() -> None:
    assert fired(loop(STEP, before=FREEZE + "\n" + UNFREEZE), config(2)) == []


# --- writing ---


@pytest.mark.parametrize(
    "write",
    [
        "for p in engine.module.parameters():\n    p.data.clamp_(-0.1, 0.1)",
        "for name, p in model.named_parameters():\n    p.data.copy_(torch.zeros(1))",
        "for p in model.parameters():\n    p.data = p.data * 0.5",
        "nn.init.zeros_(engine.module.head.weight)",
        "with torch.no_grad():\n    model.head.weight.mul_(0.5)",
    ],
)
def test_a_write_is_undone_by_the_next_step(write: str) -> None:
    for stage in (1, 2, 3):
        assert fired(after(write), config(stage)) == ["DS633"]
    assert fired(after(write), config(0)) == []
    assert fired(after(write), config(0, bf16={"enabled": True})) == ["DS633"]


WRITES = {
    "of frozen parameters": after("nn.init.zeros_(model.head.weight)", "model.head.requires_grad_(False)"),
    "before initialize": loop(STEP, before="nn.init.zeros_(model.head.weight)"),
    "after the last step": loop(STEP) + "for p in model.parameters():\n    p.data.mul_(0.5)\n",
    "of another model": after(
        "for p, q in zip(other.parameters(), model.parameters()):\n    p.data.copy_(q.data)",
        "other = make_model()",
    ),
    "there and back": after(
        "for p in model.parameters():\n    p.data.copy_(average)\nevaluate(model)\n"
        "for p in model.parameters():\n    p.data.copy_(kept)",
        "from tools import average, evaluate, kept",
    ),
    "with DeepSpeed's function": after(
        "for p in model.parameters():\n    deepspeed.utils.safe_set_full_fp32_param(p, torch.zeros(1))"
    ),
    "to a buffer of its own": after("mean = torch.zeros(3)\nmean.mul_(0.9).add_(1)"),
    "to an output": loop("out = engine(x)\nout.mul_(0.5)\nengine.backward(out)\nengine.step()"),
    "to gradients": loop(
        "engine.backward(engine(x))\nfor p in model.parameters():\n    p.grad.mul_(0.5)\nengine.step()"
    ),
}


@pytest.mark.parametrize("script", WRITES.values(), ids=WRITES)
def test_other_writes_are_left_alone(script: str) -> None:
    assert fired(script, config(2)) == []


# --- loading ---


@pytest.mark.parametrize(
    "load",
    [
        "engine.module.load_state_dict(torch.load('w.pt'))",
        "model.load_state_dict(torch.load('w.pt'), strict=False)",
        "model.encoder.load_state_dict(torch.load('w.pt'))",
    ],
)
def test_weights_that_are_loaded_late_are_overwritten(load: str) -> None:
    assert fired(after(load), config(1)) == ["DS634"]
    assert fired(after(load), config(2)) == ["DS634"]
    assert fired(after(load), config(0)) == []
    assert fired(after(load), config(0, fp16={"enabled": True})) == ["DS634"]


LOADS = {
    "before initialize": loop(STEP, before="model.load_state_dict(torch.load('w.pt'))"),
    "after training": loop(STEP) + "model.load_state_dict(torch.load('best.pt'))\nprint(model(1))\n",
    "an average and back": after(
        "kept = model.state_dict()\nmodel.load_state_dict(average)\nevaluate(model)\nmodel.load_state_dict(kept)",
        "from tools import average, evaluate",
    ),
    "a frozen part": after(
        "model.teacher.load_state_dict(torch.load('t.pt'))", "model.teacher.requires_grad_(False)"
    ),
    "another model": after("other.load_state_dict(model.state_dict())", "other = make_model()"),
    "a scheduler": after("engine.lr_scheduler.load_state_dict(torch.load('s.pt'))"),
    "the engine's own": after("engine.load_checkpoint('out')"),
    "only on request": after(
        "if args.resume:\n    model.load_state_dict(torch.load('w.pt'))", "from tools import args"
    ),
}


@pytest.mark.parametrize("script", LOADS.values(), ids=LOADS)
def test_other_loads_are_left_alone(script: str) -> None:
    assert fired(script, config(2)) == []


# --- precision ---

SCALER = "scaler = torch.cuda.amp.GradScaler()"


def test_a_scaled_loss_stays_scaled() -> None:
    assert fired(loop("engine.backward(scaler.scale(engine(x)))\nengine.step()", before=SCALER)) == ["DS620"]
    body = "loss = scaler.scale(engine(x))\nengine.backward(loss)\nengine.step()"
    assert fired(loop(body, before="scaler = torch.amp.GradScaler('cuda')")) == ["DS620"]


def test_the_scaler_finds_no_gradients() -> None:
    body = "scaler.scale(engine(x)).backward()\nscaler.step(optimizer)\nscaler.update()"
    assert fired(loop(body, before=SCALER, names="engine, optimizer, _, _"), config(2)) == ["DS621"]


SCALERS = {
    "switched off": loop(
        "engine.backward(scaler.scale(engine(x)))\nengine.step()",
        before="scaler = torch.cuda.amp.GradScaler(enabled=False)",
    ),
    "switched by an argument": loop(
        "engine.backward(scaler.scale(engine(x)))\nengine.step()",
        before="from options import args\nscaler = torch.cuda.amp.GradScaler(enabled=args.amp)",
    ),
    "made and not used": loop(STEP, before=SCALER),
    "for another model": loop(
        STEP + "\nscaler.scale(other(x)).backward()\nscaler.step(optimizer)\nscaler.update()",
        before=SCALER + "\nother = make_model()\noptimizer = torch.optim.SGD(other.parameters(), lr=0.1)",
    ),
    "something else's scale": loop(
        "engine.backward(tools.scale(engine(x)))\nengine.step()", before="import tools"
    ),
}


@pytest.mark.parametrize("script", SCALERS.values(), ids=SCALERS)
def test_other_scalers_are_left_alone(script: str) -> None:
    assert fired(script, config(2)) == []


def autocast(context: str, body: str = "loss = engine(x)") -> str:
    return loop(f"with {context}:\n    {body}\nengine.backward(engine(x))\nengine.step()")


@pytest.mark.parametrize(
    "context",
    [
        "torch.autocast('cuda', dtype=torch.bfloat16)",
        "torch.cuda.amp.autocast()",
        "torch.autocast(device_type='cuda')",
    ],
)
def test_autocast_is_switched_off_by_the_engine(context: str) -> None:
    assert fired(autocast(context), config(2)) == ["DS622"]
    assert fired(autocast(context), config(2, bf16={"enabled": True})) == ["DS622"]
    section = {"enabled": True, "dtype": "bfloat16"}
    assert fired(autocast(context), config(2, torch_autocast=section)) == []
    assert fired(autocast(context), config(2), deepspeed="0.16.0") == []


@pytest.mark.parametrize(
    ("context", "body"),
    [
        ("torch.autocast('cuda', enabled=False)", "loss = engine(x)"),
        ("torch.autocast('cpu')", "loss = engine(x)"),
        ("torch.autocast(device)", "loss = engine(x)"),
        ("torch.autocast('cuda')", "loss = model.encoder(x)"),
        ("torch.cuda.amp.autocast(enabled=args.amp)", "loss = engine(x)"),
    ],
)
def test_other_contexts_are_left_alone(context: str, body: str) -> None:
    assert fired(autocast(context, body), config(2)) == []


# --- methods of the engine ---


def test_a_mode_gives_nothing_back() -> None:
    assert fired(loop("out = model(x)", before="").replace("for i", "model = engine.eval()\nfor i")) == ["DS635"]
    assert fired(loop("print(engine.train()(x))")) == ["DS635"]


@pytest.mark.parametrize(
    "body",
    [
        "engine.train()\nengine(x)",
        "engine.eval() if i else engine.train()\nengine(x)",
        "mode = engine.eval()\nengine(x)",
        "net = engine.module.eval()\nnet(x)",
    ],
)
def test_modes_that_are_set_for_themselves(body: str) -> None:
    assert fired(loop(body)) == []


def test_an_accessor_is_called() -> None:
    assert fired(loop("n = len(loader) // engine.train_batch_size")) == ["DS636"]
    assert fired(loop("for k in range(engine.gradient_accumulation_steps):\n    print(k)")) == ["DS636"]


@pytest.mark.parametrize(
    "body",
    [
        "n = len(loader) // engine.train_batch_size()",
        "n = len(loader) // args.train_batch_size",
        "size = engine.train_batch_size\nprint(size)",
        "n = 3 * engine.global_steps",
    ],
)
def test_numbers_that_are_numbers(body: str) -> None:
    assert fired(loop(body, before="from options import args")) == []


@pytest.mark.parametrize(
    ("state", "codes"),
    [
        ("{'global_steps': i, 'epoch': 1}", ["DS617"]),
        ("{'module': model.state_dict()}", ["DS617"]),
        ("{'epoch': 1, 'step': i, 'best': 0.5}", []),
        ("{'user': {'global_steps': i}}", []),
        ("dict(lr_scheduler=scheduler.state_dict())", ["DS617"]),
        ("state", []),
    ],
)
def test_keys_of_client_state(state: str, codes: list[str]) -> None:
    body = f"{STEP}\nengine.save_checkpoint('out', client_state={state})"
    assert fired(loop(body, before="from tools import scheduler, state")) == codes

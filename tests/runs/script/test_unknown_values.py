"""Configs in scripts with values that only running would tell: nothing is said of them."""

from __future__ import annotations

import pytest

from tests.runs.script.findings import found

ARGUMENTS = """
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
args = parser.parse_args()
net = Net()
"""


def _script(optimizer: str, scheduler: str = "None") -> str:
    return (
        ARGUMENTS
        + f"""
config = {{
    "train_micro_batch_size_per_gpu": 2,
    "optimizer": {{"type": "AdamW", "params": {optimizer}}},
    "scheduler": {scheduler},
}}
engine, *_ = deepspeed.initialize(model=net, model_parameters=net.parameters(), config=config)
"""
    )


@pytest.mark.parametrize("value", ["args.x", "args.x * 2", "rate_of(net)", "args.unknown"])
def test_an_optimizer_number_that_nobody_knows_is_no_null(value: str) -> None:
    script = _script(f'{{"lr": {value}, "eps": {value}, "weight_decay": {value}}}')
    assert found("DS512", script, config=None) == []


def test_a_null_of_the_optimizer_beside_an_unknown_number_is_found() -> None:
    assert found("DS512", _script('{"lr": args.x, "weight_decay": None}'), config=None) == ['"weight_decay": None']


@pytest.mark.parametrize(
    "scheduler",
    [
        '{"type": "WarmupDecayLR", "params": {"total_num_steps": args.x, "warmup_min_lr": args.x}}',
        '{"type": "WarmupCosineLR", "params": {"total_num_steps": args.x}}',
        '{"type": "OneCycle", "params": {"cycle_min_lr": args.x, "cycle_max_lr": args.x}}',
    ],
)
def test_a_scheduler_number_that_nobody_knows_is_no_null(scheduler: str) -> None:
    script = _script('{"lr": 0.001}', scheduler)
    for code in ("DS551", "DS552", "DS553", "DS554", "DS557", "DS565"):
        assert found(code, script, config=None) == []

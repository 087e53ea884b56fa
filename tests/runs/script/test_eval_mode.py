"""Evaluation mode: where it surely stays on, and the many loops where it doesn't."""

from __future__ import annotations

import pytest

from tests.runs.judging import codes

START = """
import deepspeed
from helpers import net, rows, args, evaluate
engine, *_ = deepspeed.initialize(model=net, config="ds_config.json")

def train():
    for x in rows:
        engine.backward(engine(x))
        engine.step()

def measure():
    engine.eval()
    return engine(rows[0])

"""


def found(text: str) -> list[str]:
    return codes("DS689", script=START + text, config={"train_micro_batch_size_per_gpu": 1})


@pytest.mark.parametrize(
    "text",
    [
        "for epoch in range(3):\n    train()\n    measure()\n",
        "engine.train()\nfor epoch in range(3):\n    train()\n    measure()\n",
        "for x in rows:\n    engine.backward(engine(x))\n    engine.step()\n    if args.often:\n        measure()\n",
    ],
)
def test_it_stays_on(text: str) -> None:
    assert found(text) == ["DS689"]


@pytest.mark.parametrize(
    "text",
    [
        "train()\nmeasure()\n",
        "for epoch in range(3):\n    engine.train()\n    train()\n    measure()\n",
        "for epoch in range(3):\n    train()\n    measure()\n    engine.train()\n",
        "for epoch in range(3):\n    net.train()\n    train()\n    measure()\n",
        "for epoch in range(3):\n    train()\n    measure()\n    evaluate(engine)\n",
        "for epoch in range(3):\n    train()\n    measure()\n    if args.stop:\n        break\n",
        "for epoch in range(3):\n    train()\nfor x in rows:\n    measure()\n",
        "for epoch in range(3):\n    train()\n    args.teacher.eval()\n",
    ],
)
def test_it_may_be_switched_back_or_matters_no_more(text: str) -> None:
    assert found(text) == []

"""The largest parameter of a model, where the script says how large its layers are."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dslint.lint import facts_of
from dslint.rulebook.cases import run_of
from dslint.runs.script.facts.layers import largest_parameter
from dslint.runs.script.values import Thing


def model(text: str) -> Any:
    """The model that a script gives to DeepSpeed."""
    script = f"import deepspeed\nimport torch\nfrom torch import nn\n{text}\ndeepspeed.initialize(model=net)\n"
    deeds = facts_of(run_of({"script": script})).run.script
    assert deeds is not None
    return next(call for call in deeds.calls if call.name == "deepspeed.initialize").argument(1, "model")


@given(st.lists(st.integers(1, 5000), min_size=2, max_size=6))
def test_the_largest_of_linear_layers(widths: list[int]) -> None:
    pairs = list(itertools.pairwise(widths))
    layers = ", nn.ReLU(), ".join(f"nn.Linear({one}, {other})" for one, other in pairs)
    assert largest_parameter(model(f"net = nn.Sequential({layers})")) == max(one * other for one, other in pairs)


@pytest.mark.parametrize(
    ("layer", "size"),
    [
        ("nn.Conv2d(3, 6, 5)", 450),
        ("nn.Conv1d(3, 6, kernel_size=(5,))", 90),
        ("nn.Embedding(1000, 64)", 64_000),
        ("nn.LayerNorm(64)", 64),
        ("nn.LayerNorm((8, 8))", 64),
        ("nn.BatchNorm2d(6)", 6),
        ("nn.Dropout(0.1)", 0),
        ("nn.Linear(width, 4)", None),
        ("nn.LSTM(4, 4)", None),
        ("nn.Linear(*sizes)", None),
        ("make()", None),
        ("nn.Sequential(*layers)", None),
        ("nn.ModuleList([nn.Linear(4, 5), nn.Linear(6, 7)])", 42),
    ],
)
def test_layers(layer: str, size: int | None) -> None:
    assert largest_parameter(model(f"net = {layer}")) == size


def test_a_class_of_the_file_is_the_sum_of_its_layers() -> None:
    text = """
class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.name = "net"
        self.first = nn.Linear(8, width)
        self.blocks = nn.ModuleList([nn.Linear(width, width)])
net = Net({width})
"""
    assert largest_parameter(model(text.replace("{width}", "20"))) == 400
    assert largest_parameter(model(text.replace("{width}", "given"))) is None


@given(st.text(alphabet="nNet()=.[]*, 0123456789Linear", max_size=40))
def test_anything_else_is_unknown(text: str) -> None:
    assert largest_parameter(Thing("result", text)) is None
    assert largest_parameter(text) is None

"""A model, data and a way to say something, for the example scripts of rules; it lies beside each of them.

    from tiny import Net, batches
    engine, *_ = deepspeed.initialize(model=Net(), config="ds_config.json")
    for x, y in batches(3, engine.device):
        loss = engine(x, y)
        engine.backward(loss)
        engine.step()

Everything is the same at each run and on each rank. A batch has SIZE rows, whatever the config says of its size.
A script that also runs by itself, without dslint, is a good example.

Under ZeRO stage 3 a parameter below `stage3_param_persistence_threshold` elements (100,000 by default) stays whole
on each rank, and `Net()` has none above: the config of an example for an effect of stage 3 sets that key to 0.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

import torch

SIZE = 2
"""Rows of a batch."""
INPUTS, CLASSES = 8, 4
"""Features that Net takes, and classes that it tells apart."""
WORDS, LENGTH = 64, 8
"""Vocabulary of `causal_lm`, and tokens of each row of `dataset`."""


class Net(torch.nn.Module):
    """Two layers: `up` from INPUTS to width, `down` to CLASSES. `Net()(x, y)` is a loss, `Net()(x)` scores."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.up = torch.nn.Linear(INPUTS, width)
        self.down = torch.nn.Linear(width, CLASSES)

    def forward(self, x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
        """The mean loss, of shape (), where the classes `y` are given; else scores of shape (rows, CLASSES)."""
        scores: torch.Tensor = self.down(torch.relu(self.up(x.to(self.up.weight.dtype))))
        return scores if y is None else torch.nn.functional.cross_entropy(scores.float(), y)


class Pairs(torch.utils.data.Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """`n` rows for Net: floats of shape (INPUTS,) and a class."""

    def __init__(self, n: int = 16) -> None:
        source = torch.Generator().manual_seed(1)
        self.x = torch.randn(n, INPUTS, generator=source)
        self.y = torch.randint(0, CLASSES, (n,), generator=source)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, row: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.x[row], self.y[row]


def batches(n: int, device: Any = None, size: int = SIZE) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """`n` batches (x, y) for Net, on `device`: x of shape (size, INPUTS), y of shape (size,)."""
    rows = Pairs(n * size)
    pairs = zip(rows.x.split(size), rows.y.split(size), strict=True)
    return [(x.to(device), y.to(device)) if device is not None else (x, y) for x, y in pairs]


def loader(batch_size: int = SIZE, n: int = 16) -> Any:
    """A DataLoader of `n` rows for Net, in their order."""
    return torch.utils.data.DataLoader(Pairs(n), batch_size=batch_size)


class Tokens(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """`n` rows for `causal_lm`, as Transformers takes them: input_ids and labels, each of shape (LENGTH,)."""

    def __init__(self, n: int = 64) -> None:
        self.tokens = torch.randint(0, WORDS, (n, LENGTH), generator=torch.Generator().manual_seed(2))

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, row: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.tokens[row], "labels": self.tokens[row]}


def dataset(n: int = 64) -> Tokens:
    """Data for the Trainer: `Trainer(model=causal_lm(), train_dataset=dataset(), ...)`."""
    return Tokens(n)


def llama_config() -> Any:
    """The configuration of `causal_lm`: a Llama of two layers, 32 wide."""
    from transformers import LlamaConfig

    return LlamaConfig(
        vocab_size=WORDS,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=32,
        pad_token_id=0,
    )


def causal_lm() -> Any:
    """A tiny LlamaForCausalLM with weights that are the same each time."""
    from transformers import LlamaForCausalLM

    torch.manual_seed(0)
    return LlamaForCausalLM(llama_config())


_said: dict[str, Any] = {}


def say(**facts: Any) -> None:
    """Tell facts (numbers, texts, lists), which a rule's effect `says` compares; the last of a name counts."""
    _said.update(facts)
    print("say", json.dumps(facts, default=str), flush=True)
    report = os.environ.get("TINY_REPORT")
    if report is not None:
        with open(report, "a", encoding="utf-8") as file:
            file.write(json.dumps({"said": _said, "at": round(time.monotonic(), 4)}, default=str) + "\n")

"""The tiny model that a trial trains, and the batches for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

HIDDEN = 64
"""Width of the model, in elements."""
WORDS = 128
LENGTH = 8
HEADS = 4
BLOCKS = 2
LARGEST = 4_000_000
"""The most elements that one weight may have."""
THRESHOLD = 100_000
"""DeepSpeed's default of stage3_param_persistence_threshold, in elements (deepspeed/runtime/zero/config.py)."""


class Block(torch.nn.Module):
    """Attention and a feed-forward part, each with a norm before and a shortcut around it."""

    def __init__(self, inner: int) -> None:
        super().__init__()
        self.attention_norm = torch.nn.LayerNorm(HIDDEN)
        self.queries_keys_values = torch.nn.Linear(HIDDEN, 3 * HIDDEN)
        self.attention_out = torch.nn.Linear(HIDDEN, HIDDEN)
        self.norm = torch.nn.LayerNorm(HIDDEN)
        self.up = torch.nn.Linear(HIDDEN, inner)
        self.down = torch.nn.Linear(inner, HIDDEN)

    def forward(self, stream: torch.Tensor) -> torch.Tensor:
        """From and to shape (batch, LENGTH, HIDDEN)."""
        stream = stream + self._attention(self.attention_norm(stream))
        inner: torch.Tensor = torch.nn.functional.gelu(self.up(self.norm(stream)))
        return torch.add(stream, self.down(inner))

    def _attention(self, stream: torch.Tensor) -> torch.Tensor:
        batch, length, _ = stream.shape
        heads = self.queries_keys_values(stream).view(batch, length, 3, HEADS, HIDDEN // HEADS)
        queries, keys, values = heads.permute(2, 0, 3, 1, 4)
        mixed = torch.nn.functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        out: torch.Tensor = self.attention_out(mixed.transpose(1, 2).reshape(batch, length, HIDDEN))
        return out


class TinyTransformer(torch.nn.Module):
    """A language model of two blocks: weights of several shapes, some above and some below ZeRO's thresholds.

    Parameters below stage3_param_persistence_threshold stay whole on every rank, so a model of small ones would
    train and save where a real one can't.
    """

    def __init__(self, threshold: int = THRESHOLD, *, floats: bool = False) -> None:
        super().__init__()
        inner = min(max(threshold // HIDDEN + HIDDEN, 4 * HIDDEN), LARGEST // HIDDEN)
        self.config = SimpleNamespace(hidden_size=HIDDEN, model_type="tiny", is_encoder_decoder=False)
        self.words = torch.nn.Linear(WORDS, HIDDEN) if floats else torch.nn.Embedding(WORDS, HIDDEN)
        self.positions = torch.nn.Embedding(LENGTH, HIDDEN)
        self.blocks = torch.nn.ModuleList(Block(inner) for _ in range(BLOCKS))
        self.norm = torch.nn.LayerNorm(HIDDEN)
        self.head = torch.nn.Linear(HIDDEN, WORDS, bias=False)

    def forward(self, tokens: torch.Tensor, **_: Any) -> torch.Tensor:
        """The loss of predicting each next token of `tokens`.

        Their shape is (batch, LENGTH), or (batch, LENGTH, WORDS) where they come as floats.
        """
        stream = self.words(tokens) + self.positions.weight
        for block in self.blocks:
            stream = block(stream)
        scores = self.head(self.norm(stream))[:, :-1].float()
        targets = tokens.argmax(-1) if tokens.is_floating_point() else tokens
        return torch.nn.functional.cross_entropy(scores.flatten(0, 1), targets[:, 1:].flatten())


def tiny_model(threshold: int = THRESHOLD, *, floats: bool = False) -> TinyTransformer:
    """The same model on every rank and at every call; `floats` for one whose batches are floats."""
    torch.manual_seed(0)
    return TinyTransformer(threshold, floats=floats)


def batch(size: int, engine: Any, seed: int) -> torch.Tensor:
    """`size` sequences of tokens, shape (size, LENGTH); the same on every rank for the same seed.

    A model that takes floats gets them in its own type, one element of WORDS a token, as shape
    (size, LENGTH, WORDS).
    """
    source = torch.Generator().manual_seed(seed)
    tokens = torch.randint(0, WORDS, (size, LENGTH), generator=source).to(engine.device)
    if isinstance(engine.module.words, torch.nn.Linear):
        weight = engine.module.words.weight
        return torch.nn.functional.one_hot(tokens, WORDS).to(weight.dtype)
    return tokens

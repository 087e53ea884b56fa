"""Copies of a few of the elements that an optimizer steps: enough to see whether a large model moves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from dslint.smoke.rank.inspection import MASTERS

LIMIT = 64 * 2**20
"""Bytes that the copies of one rank may take."""


def samples(engine: Any) -> list[torch.Tensor] | None:
    """Elements of this rank's part of the trained parameters, on the CPU; None if none can be seen.

    They are taken at even distances from all of it, since a part alone may rightly stay: the rows of an embedding
    whose words no batch had.
    """
    tensors = [each.detach() for each in _trained(engine) if each.numel()]
    size = sum(each.numel() * each.element_size() for each in tensors)
    distance = -(-size // LIMIT) if size else 1
    return [each.reshape(-1)[::distance].to("cpu", copy=True) for each in tensors] or None


def _trained(engine: Any) -> Iterable[torch.Tensor]:
    for name in MASTERS:
        kept = getattr(engine.optimizer, name, None)
        if kept:
            return [each for each in kept if isinstance(each, torch.Tensor)]
    parameters = [each for each in engine.module.parameters() if each.requires_grad]
    return [getattr(each, "ds_tensor", each.data) for each in parameters]

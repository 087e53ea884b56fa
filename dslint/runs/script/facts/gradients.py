"""Whether autograd is on at a place of a script."""

from __future__ import annotations

from dslint.runs.script.events import Spot
from dslint.runs.script.values import Thing

OFF = frozenset(
    ["torch.no_grad", "torch.autograd.no_grad", "torch.inference_mode", "torch.autograd.inference_mode"]
)
_HARMLESS = frozenset(
    ["open", "torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast", "contextlib.nullcontext"]
)
"""Contexts that leave autograd as it is."""


def off_context(spot: Spot) -> Thing | None:
    """The `with torch.no_grad()` in which a place surely lies; None where gradients are, or may be, on."""
    for context in reversed(spot.contexts):
        if not isinstance(context, Thing) or context.call is None:
            return None
        if context.name in OFF:
            return context if context.call.is_complete and not context.inputs else None
        if context.name not in _HARMLESS:
            return None
    return None

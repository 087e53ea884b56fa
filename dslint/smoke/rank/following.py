"""Follows the engines that a script makes: the steps they take, and whether what they train moves."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable
from typing import Any

import torch

from dslint.smoke.rank import inspection
from dslint.smoke.rank.simulation import skip_check_of_peers
from dslint.smoke.rank.step_limit import StepLimit

LOSSES_KEPT = 50
"""Losses of an engine that are told."""

Tensors = list[torch.Tensor] | None


class Follower:
    """All engines of one script."""

    def __init__(self, *, simulated: bool, limit: StepLimit | None = None) -> None:
        self._simulated = simulated
        self._limit = limit
        self._engines: list[_Followed] = []

    def begin(self) -> None:
        """Wrap deepspeed.initialize (deepspeed/__init__.py)."""
        import deepspeed

        initialize = deepspeed.initialize

        @functools.wraps(initialize)
        def followed(*args: Any, **kwargs: Any) -> Any:
            made = initialize(*args, **kwargs)
            if self._simulated:
                skip_check_of_peers(made[0])
            self._engines.append(_Followed(made[0], self._limit))
            return made

        deepspeed.initialize = followed

    def facts(self) -> list[dict[str, Any]]:
        """What each engine came to."""
        return [engine.facts() for engine in self._engines]

    def settings(self) -> dict[str, Any]:
        """Every setting of the first engine, flat; none where there is no engine, or one that doesn't tell."""
        with contextlib.suppress(Exception):
            return inspection.engine_settings(self._engines[0].engine)
        return {}


class _Followed:
    """One engine, which is kept alive; only this rank's part of what it trains is looked at."""

    def __init__(self, engine: Any, limit: StepLimit | None) -> None:
        self.engine = engine
        self._limit = limit
        self._losses: list[Any] = []
        self._before = _state(engine)
        self._at_destruction: tuple[Tensors, Tensors] | None = None
        self._steps = 0
        self._wrap("backward", self._hear_loss_given)
        self._wrap("step", self._count)
        self._wrap("train_batch", self._hear_loss_made)
        self._wrap("load_checkpoint", self._begin_anew)
        self._wrap("destroy", self._keep_state)

    def _wrap(self, name: str, hear: Callable[[tuple[Any, ...], Callable[[], Any]], Any]) -> None:
        if not hasattr(type(self.engine), name):  # of the instance, the model's attributes would be seen too
            return
        call = getattr(self.engine, name)

        @functools.wraps(call)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return hear(args, lambda: call(*args, **kwargs))

        setattr(self.engine, name, wrapped)

    def _hear_loss_given(self, args: tuple[Any, ...], call: Callable[[], Any]) -> Any:
        result = call()
        if args:
            self._keep_loss(args[0])
        return result

    def _hear_loss_made(self, args: tuple[Any, ...], call: Callable[[], Any]) -> Any:
        result = self._count(args, call)
        self._keep_loss(result)
        return result

    def _count(self, _args: tuple[Any, ...], call: Callable[[], Any]) -> Any:
        before = int(self.engine.global_steps)
        result = call()
        self._steps += int(self.engine.global_steps) - before
        if self._limit is not None:
            self._limit.hear(self._steps, int(getattr(self.engine, "skipped_steps", 0)))
        return result

    def _begin_anew(self, _args: tuple[Any, ...], call: Callable[[], Any]) -> Any:
        """What a checkpoint brings is not trained."""
        result = call()
        self._before = _state(self.engine)
        return result

    def _keep_loss(self, loss: Any) -> None:
        if isinstance(loss, torch.Tensor) and loss.numel() == 1 and len(self._losses) < LOSSES_KEPT:
            value = float(loss.detach())
            self._losses.append(round(value, 5) if math.isfinite(value) else str(value))

    def _keep_state(self, _args: tuple[Any, ...], call: Callable[[], Any]) -> Any:
        self._at_destruction = _state(self.engine)
        return call()

    def facts(self) -> dict[str, Any]:
        """Stage, steps, losses, whether anything moved, and sum and norm of each tensor at the end.

        Steps are those of this run, and so is what moved: a checkpoint that is loaded brings neither.
        """
        engine = self.engine
        masters, local = self._at_destruction or _state(engine)
        moved = [inspection.differ(old, new) for old, new in zip(self._before, (masters, local), strict=True)]
        told = {
            "class": type(engine).__name__,
            "steps": self._steps,
            "micro_steps": int(getattr(engine, "micro_steps", 0)),
            "skipped": int(getattr(engine, "skipped_steps", 0)),
            "losses": self._losses,
            "moved": any(moved) if any(each is not None for each in moved) else None,
            "fingerprint": _fingerprint(local if masters is None else masters),
        }
        with contextlib.suppress(Exception):  # an engine without an optimizer, or one that is destroyed
            told |= inspection.engine_facts(engine)
        return told


def _state(engine: Any) -> tuple[Tensors, Tensors]:
    """This rank's part of what the optimizer steps, and of the module; None for what can't be seen."""
    return _copies(inspection.masters, engine), _copies(inspection.local_parameters, engine)


def _copies(of: Callable[[Any], Tensors], engine: Any) -> Tensors:
    with contextlib.suppress(Exception):  # swapped out, or destroyed
        return of(engine)
    return None


def _fingerprint(tensors: Tensors) -> list[list[float]] | None:
    """Sum and Euclidean norm of each tensor."""
    if tensors is None:
        return None
    doubles = [each.detach().double() for each in tensors]
    return [[_short(float(each.sum())), _short(float(each.norm()))] for each in doubles]


def _short(value: float) -> float:
    return float(f"{value:.7g}")

"""Process groups as a script asks for them, on a machine that may have neither the peers nor the GPUs."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import torch
from torch.distributed import distributed_c10d


def simulate_groups() -> None:
    """Give rank 0 of a fake group to a script that makes a process group, and not before it does.

    One that uses collectives too early fails as it would in reality, and so does one whose launcher told no rank.
    """

    def initialize(initialize: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        wanted = (
            dict(zip(("backend", "init_method", "timeout", "world_size", "rank"), args, strict=False)) | kwargs
        )
        rank, world = _told(wanted, "rank", "RANK"), _told(wanted, "world_size", "WORLD_SIZE")
        if rank is None or world is None:
            return initialize("gloo")  # says what is missing
        from torch.testing._internal.distributed.fake_pg import FakeStore

        return initialize("fake", rank=rank, world_size=world, store=FakeStore())

    def new_group(make: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if len(args) > 2:
            args = (*args[:2], None, *args[3:])
        return make(*args, **{**kwargs, **({"backend": None} if "backend" in kwargs else {})})

    _replace("init_process_group", initialize)
    _replace("new_group", new_group)


def groups_through_gloo() -> None:
    """Give a script that asks for NCCL gloo instead; all else about its groups is real."""

    def initialize(initialize: Callable[..., None], *args: Any, **kwargs: Any) -> None:
        args, kwargs = _with_gloo(args, kwargs, 0)
        return initialize(*args, **{**kwargs, "device_id": None})

    def new_group(make: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        args, kwargs = _with_gloo(args, kwargs, 2)
        return make(*args, **kwargs)

    _replace("init_process_group", initialize)
    _replace("new_group", new_group)


def _with_gloo(
    args: tuple[Any, ...], kwargs: dict[str, Any], place: int
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if len(args) > place and "nccl" in str(args[place]):
        args = (*args[:place], "gloo", *args[place + 1 :])
    if "nccl" in str(kwargs.get("backend", "")):
        kwargs = {**kwargs, "backend": "gloo"}
    return args, kwargs


def _told(wanted: dict[str, Any], name: str, variable: str) -> int | None:
    """A number that the script gives, or else its launcher; None where neither does."""
    value = wanted.get(name, -1)
    if value is not None and value >= 0:
        return int(value)
    return int(os.environ[variable]) if variable in os.environ else None


def _replace(name: str, instead: Callable[..., Any]) -> None:
    """Call `instead` with the function of torch.distributed that has this name, and with what that gets."""
    real = getattr(distributed_c10d, name)

    @functools.wraps(real)
    def replaced(*args: Any, **kwargs: Any) -> Any:
        return instead(real, *args, **kwargs)

    for module in (distributed_c10d, torch.distributed):
        setattr(module, name, replaced)

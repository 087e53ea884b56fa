"""What a script has written: its files, and the tensors in those that hold any."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

PICKLED = frozenset({".pt", ".pth", ".bin", ".ckpt"})
"""How files are named that torch.save wrote."""

PARTS = ("_model_states.pt", "_optim_states.pt")
"""How DeepSpeed names the parts of its checkpoints; that they hold one rank's share is meant so."""


def written_files(known: Collection[str]) -> list[dict[str, Any]]:
    """The files in the working folder that aren't `known`: name, bytes, tensors, how many of them are empty."""
    paths = (path for path in sorted(Path().rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
    return [_told(path) for path in paths if path.as_posix() not in known]


def _told(path: Path) -> dict[str, Any]:
    told: dict[str, Any] = {"name": path.as_posix(), "bytes": path.stat().st_size}
    if path.name.endswith(PARTS):
        return {**told, "part_of_checkpoint": True}
    try:
        sizes = _sizes(path)
    except Exception as error:  # half written, or something else by that name
        return {**told, "unreadable": str(error)}
    return (
        told if sizes is None else {**told, "tensors": len(sizes), "empty": sizes.count(0), "elements": sum(sizes)}
    )


def _sizes(path: Path) -> list[int] | None:
    """The number of elements of each tensor; None for a file that isn't made of tensors."""
    if path.suffix == ".safetensors":
        return _sizes_in_safetensors(path)
    if path.suffix in PICKLED:
        return [each.numel() for each in _tensors(torch.load(path, map_location="cpu", weights_only=False))]
    return None


def _sizes_in_safetensors(path: Path) -> list[int]:
    """The file begins with the length of a header, which is JSON and tells each tensor's shape."""
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    return [math.prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__"]


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)

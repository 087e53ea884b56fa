"""How large the layers of a model are, where the file that makes them says it."""

from __future__ import annotations

import math

from dslint.runs.script.events import Call
from dslint.runs.script.values import Class, Thing, Value

_WITHOUT_WEIGHTS = frozenset(
    [
        "AdaptiveAvgPool1d",
        "AdaptiveAvgPool2d",
        "AvgPool1d",
        "AvgPool2d",
        "CrossEntropyLoss",
        "Dropout",
        "Dropout2d",
        "Flatten",
        "GELU",
        "Identity",
        "LeakyReLU",
        "LogSoftmax",
        "MSELoss",
        "MaxPool1d",
        "MaxPool2d",
        "ReLU",
        "SiLU",
        "Sigmoid",
        "Softmax",
        "Tanh",
    ]
)
_NORMS = frozenset(["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm2d", "RMSNorm"])
_DEEPEST = 12
"""Modules inside of one another that are looked into."""
_HOLDERS = frozenset(["Sequential", "ModuleList"])


def largest_parameter(model: Value, depth: int = 0) -> int | None:
    """Elements of a model's largest parameter; None where not all of its layers are known."""
    if not isinstance(model, Thing) or depth > _DEEPEST:
        return None
    if isinstance(model.attributes.get("__class__"), Class):
        return _of_attributes(model, depth)
    if model.call is None or not model.name.startswith("torch.nn.") or not model.call.is_complete:
        return None
    return _of_layer(model.name.rpartition(".")[2], model.call, depth)


def _of_attributes(model: Thing, depth: int) -> int | None:
    """Of a model whose class is in the file: its layers are what its attributes hold."""
    layers = [
        value
        for name, value in model.attributes.items()
        if not name.startswith("__") and isinstance(value, (Thing, list, tuple))
    ]
    return _most(layers, depth + 1) if layers else None


def _most(layers: list[Value] | tuple[Value, ...], depth: int) -> int | None:
    if depth > _DEEPEST:
        return None
    sizes: list[int] = []
    for layer in layers:
        size = _most(layer, depth + 1) if isinstance(layer, (list, tuple)) else largest_parameter(layer, depth)
        if size is None:
            return None
        sizes.append(size)
    return max(sizes, default=0)


def _of_layer(name: str, call: Call, depth: int) -> int | None:
    if name in _WITHOUT_WEIGHTS:
        return 0
    if name in _HOLDERS:
        return _most(call.positional, depth + 1)
    if name == "Linear":
        return _product(call.argument(0, "in_features"), call.argument(1, "out_features"))
    if name == "Embedding":
        return _product(call.argument(0, "num_embeddings"), call.argument(1, "embedding_dim"))
    if name in ("Conv1d", "Conv2d", "Conv3d"):
        kernel = call.argument(2, "kernel_size")
        sides = kernel if isinstance(kernel, (tuple, list)) else (kernel,) * int(name[4])
        return _product(call.argument(0, "in_channels"), call.argument(1, "out_channels"), *sides)
    if name in _NORMS:
        return _product(call.positional[0]) if call.positional else None
    if name == "LayerNorm":
        shape = call.argument(0, "normalized_shape")
        return _product(*shape) if isinstance(shape, (tuple, list)) else _product(shape)
    return None


def _product(*numbers: Value) -> int | None:
    if not all(isinstance(number, int) and not isinstance(number, bool) for number in numbers):
        return None
    return math.prod(numbers)

"""Old names of keys that DeepSpeed still reads, brought to their new ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dslint.documents.document import NodePath
from dslint.runs.keys import NamePath

_OFFLOAD = {"cpu_offload": "offload_optimizer", "cpu_offload_param": "offload_param"}
_GATHER_OLD = "stage3_gather_fp16_weights_on_model_save"
_GATHER = "stage3_gather_16bit_weights_on_model_save"
_ALIASES = {
    "prefetch_bucket_size": "stage3_prefetch_bucket_size",
    "param_persistence_threshold": "stage3_param_persistence_threshold",
    "model_persistence_threshold": "stage3_model_persistence_threshold",
    "max_live_parameters": "stage3_max_live_parameters",
    "max_reuse_distance": "stage3_max_reuse_distance",
    "gather_16bit_weights_on_model_save": _GATHER,
    "use_all_reduce_for_fetch_params": "stage3_use_all_reduce_for_fetch_params",
    "module_granularity_threshold": "stage3_module_granularity_threshold",
    "allgather_sequential": "stage3_allgather_sequential",
}


def with_new_names(value: Any) -> tuple[Any, Mapping[NamePath, NodePath]]:
    """A config's value with the new name of every old key added, and where those stand in the file.

    Sources: deepspeed/runtime/zero/config.py (DeepSpeedZeroConfig, read_zero_config_deprecated) and
    deepspeed/runtime/precision_config.py (get_bfloat16_config).
    """
    if not isinstance(value, dict):
        return value, {}
    tree = dict(value)
    written_at: dict[NamePath, NodePath] = {}
    if tree.get("bf16") is None and isinstance(tree.get("bfloat16"), dict):
        tree["bf16"] = tree["bfloat16"]
        _move(tree["bfloat16"], ("bf16",), ("bfloat16",), written_at)
    zero = tree.get("zero_optimization")
    if isinstance(zero, bool):
        tree["zero_optimization"] = {"stage": 1 if zero else 0}
        written_at[("zero_optimization", "stage")] = ("zero_optimization",)
    elif isinstance(zero, dict):
        tree["zero_optimization"] = _zero(zero, written_at)
    return tree, written_at


def _move(section: Any, new: NamePath, old: NodePath, written_at: dict[NamePath, NodePath]) -> None:
    written_at[new] = old
    if isinstance(section, dict):
        for name, child in section.items():
            _move(child, (*new, name), (*old, name), written_at)


def _zero(section: Mapping[str, Any], written_at: dict[NamePath, NodePath]) -> dict[str, Any]:
    zero = dict(section)
    top: NamePath = ("zero_optimization",)
    for old, new in _OFFLOAD.items():
        if old in zero and zero.get(new) is None:
            zero[new] = {"device": "cpu" if zero[old] in (True, 1, "true") else "none"}
            written_at[(*top, new)] = (*top, old)
            written_at[(*top, new, "device")] = (*top, old)
    for old, new in {_GATHER_OLD: _GATHER, **_ALIASES}.items():
        if old in zero and new not in zero:
            zero[new] = zero[old]
            written_at[(*top, new)] = (*top, old)
    return zero

"""Options of `accelerate launch` about DeepSpeed that have no effect, since nothing switches DeepSpeed on."""

from __future__ import annotations

from dslint.runs.facts import Facts
from dslint.runs.item import Item

ABOUT_DEEPSPEED = frozenset(
    [
        "deepspeed_config_file",
        "deepspeed_moe_layer_cls_names",
        "gradient_clipping",
        "offload_optimizer_device",
        "offload_optimizer_nvme_path",
        "offload_param_device",
        "offload_param_nvme_path",
        "zero3_init_flag",
        "zero3_save_16bit_model",
        "zero_stage",
    ]
)
"""Options that only the launcher for DeepSpeed hands on (accelerate/utils/launch.py)."""

OF_OTHERS = frozenset(["use_fsdp", "use_megatron_lm", "tpu", "cpu"])
"""Flags with which the same options may be left over on purpose, or are an error of their own."""


def idle_options(facts: Facts) -> tuple[Item, ...]:
    """The first option about DeepSpeed, where neither --use_deepspeed nor an Accelerate file switches it on.

    A file that the command doesn't name may still be found in the user's cache, so that this is never sure.
    """
    launch = facts.run.launch
    assert launch is not None
    if launch.launcher != "accelerate" or launch.options_incomplete or "use_deepspeed" in launch.options:
        return ()
    if facts.run.accelerate is not None and facts.run.accelerate.value.get("distributed_type") == "DEEPSPEED":
        return ()
    names_unread_file = "config_file" in launch.options and facts.run.accelerate is None
    if names_unread_file or any(name in launch.options for name in OF_OTHERS):
        return ()
    found = [(name, option) for name, option in launch.options.items() if name in ABOUT_DEEPSPEED]
    return tuple(
        Item({"option": f"--{name}", "is_in_text": launch.is_in_text}, launch.source, option.span)
        for name, option in found[:1]
    )

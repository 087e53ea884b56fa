"""Accelerate's YAML files: what they say about a DeepSpeed run.

A file with inline keys (`deepspeed_config: {zero_stage: 3, …}`) is turned into a config in DeepSpeed's own
terms, whose spans point into the YAML file, so that every rule about configs holds for it as well. Sources:
accelerate/utils/dataclasses.py (DeepSpeedPlugin.__post_init__), accelerate/commands/launch.py and
accelerate/commands/config/config_args.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dslint.documents.document import Document, NodePath
from dslint.documents.source import Source, Span
from dslint.runs.effective import span_of_entry

SECTION = "deepspeed_config"
CONFIG_FILE: NodePath = (SECTION, "deepspeed_config_file")
PROCESSES: NodePath = ("num_processes",)

IN_DEEPSPEED_TERMS: Mapping[str, NodePath] = {
    "gradient_accumulation_steps": ("gradient_accumulation_steps",),
    "gradient_clipping": ("gradient_clipping",),
    "zero_stage": ("zero_optimization", "stage"),
    "zero3_save_16bit_model": ("zero_optimization", "stage3_gather_16bit_weights_on_model_save"),
    "offload_optimizer_device": ("zero_optimization", "offload_optimizer", "device"),
    "offload_optimizer_nvme_path": ("zero_optimization", "offload_optimizer", "nvme_path"),
    "offload_param_device": ("zero_optimization", "offload_param", "device"),
    "offload_param_nvme_path": ("zero_optimization", "offload_param", "nvme_path"),
}

KNOWN_KEYS = frozenset(
    [
        *IN_DEEPSPEED_TERMS,
        "deepspeed_config_file",
        "deepspeed_hostfile",
        "deepspeed_exclusion_filter",
        "deepspeed_inclusion_filter",
        "deepspeed_multinode_launcher",
        "deepspeed_moe_layer_cls_names",
        "zero3_init_flag",
    ]
)
"""The keys that `accelerate launch` reads from `deepspeed_config`."""

OTHER_ARGUMENTS = frozenset(
    [
        "downcast_bf16",
        "dynamo_backend",
        "enable_cpu_affinity",
        "gpu_ids",
        "machine_rank",
        "main_process_ip",
        "main_process_port",
        "main_training_function",
        "mixed_precision",
        "num_cpu_threads_per_process",
        "num_machines",
        "num_processes",
        "rdzv_backend",
        "same_network",
    ]
)
"""Further arguments of `accelerate launch`, which takes every key of a section for one of them."""

TOP_KEYS = frozenset(
    [
        "command_file",
        "commands",
        "compute_environment",
        "debug",
        "deepspeed_config",
        "distributed_type",
        "downcast_bf16",
        "dynamo_backend",
        "dynamo_config",
        "enable_cpu_affinity",
        "fp16",
        "fp8_config",
        "fsdp_config",
        "gpu_ids",
        "ipex_config",
        "machine_rank",
        "main_process_ip",
        "main_process_port",
        "main_training_function",
        "megatron_lm_config",
        "mixed_precision",
        "mpirun_config",
        "num_machines",
        "num_processes",
        "parallelism_config",
        "rdzv_backend",
        "same_network",
        "tpu_env",
        "tpu_name",
        "tpu_use_cluster",
        "tpu_use_sudo",
        "tpu_vm",
        "tpu_zone",
        "use_cpu",
    ]
)
"""The keys of ClusterConfig, old ones included."""

OTHER_TYPES = frozenset(
    [
        "NO",
        "FSDP",
        "MEGATRON_LM",
        "MULTI_CPU",
        "MULTI_GPU",
        "MULTI_HPU",
        "MULTI_MLU",
        "MULTI_MUSA",
        "MULTI_NEURON",
        "MULTI_NPU",
        "MULTI_SDAA",
        "MULTI_XPU",
        "TPU",
        "XLA",
    ]
)
"""The values of `distributed_type` beside DEEPSPEED."""


def is_accelerate(document: Document) -> bool:
    """Whether a YAML document is an Accelerate config that uses DeepSpeed."""
    value = document.value
    if not isinstance(value, dict):
        return False
    return bool(isinstance(value.get(SECTION), dict) and value[SECTION]) or (
        value.get("distributed_type") == "DEEPSPEED"
    )


def config_file(document: Document) -> tuple[str, Span] | None:
    """The path of the DeepSpeed config that the file names, with its place."""
    path = section_of(document).get("deepspeed_config_file")
    return (path, document.values[CONFIG_FILE]) if isinstance(path, str) and path else None


def ranks(document: Document | None) -> int | None:
    """The number of processes that the file starts, over all machines."""
    value = document.value.get("num_processes") if document is not None else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def place_of_ranks(document: Document) -> tuple[Source, Span] | None:
    """Where the number of processes stands."""
    if ranks(document) is None:
        return None
    return document.source, span_of_entry(document, PROCESSES)


def as_config(document: Document) -> Document:
    """The config that Accelerate makes of the inline keys.

    Batch sizes come from the data loaders ("auto"), accumulation and clipping from the script where the file
    is silent, and `mixed_precision` switches fp16 or bf16 on.
    """
    builder = _ConfigBuilder(document)
    section = section_of(document)
    for name in ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"):
        builder.put((name,), "auto")
    if not is_dropped("gradient_clipping", section.get("gradient_clipping")):
        builder.put(("gradient_clipping",), "auto")
    for name, path in IN_DEEPSPEED_TERMS.items():
        if section.get(name) is not None and not is_dropped(name, section[name]):
            builder.put(path, plain_value(section[name]), written_at=(SECTION, name))
    if section.get("zero_stage") is None:
        builder.put(("zero_optimization", "stage"), 2)
    precision = document.value.get("mixed_precision")
    if precision in ("fp16", "bf16"):
        builder.put((precision, "enabled"), True, written_at=("mixed_precision",))
    return builder.document()


def is_dropped(name: str, value: Any) -> bool:
    """A gradient_clipping of 0 never gets into the config."""
    return name == "gradient_clipping" and value is not None and plain_value(value) == 0


def plain_value(value: Any) -> Any:
    """Accelerate hands its values on through the environment, so a number in quotes is a number."""
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    try:
        return int(value) if isinstance(value, str) else value
    except ValueError:
        return value


def section_of(document: Document) -> Mapping[str, Any]:
    """The inline keys; empty where there are none."""
    value = document.value
    section = value.get(SECTION) if isinstance(value, dict) else None
    return section if isinstance(section, dict) else {}


class _ConfigBuilder:
    """Gathers values in DeepSpeed's terms, with their places in the YAML file."""

    def __init__(self, document: Document) -> None:
        self.yaml = document
        self.value: dict[str, Any] = {}
        whole = document.keys.get((SECTION,)) or document.values.get((), Span(0, 0))
        self.keys: dict[NodePath, Span] = {}
        self.values: dict[NodePath, Span] = {(): whole}

    def put(self, path: NodePath, value: Any, written_at: NodePath | None = None) -> None:
        *above, last = path
        section = self.value
        for name in above:
            section = section.setdefault(str(name), {})
        section[str(last)] = value
        if written_at is not None:
            self.keys[path] = self.yaml.keys[written_at]
            self.values[path] = self.yaml.values[written_at]

    def document(self) -> Document:
        return Document(self.yaml.source, self.value, self.keys, self.values)

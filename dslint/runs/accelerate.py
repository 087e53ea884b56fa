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
from dslint.runs.item import Item
from dslint.runs.unknown import Unknown

SECTION = "deepspeed_config"
CONFIG_FILE: NodePath = (SECTION, "deepspeed_config_file")
PROCESSES: NodePath = ("num_processes",)

_IN_DEEPSPEED_TERMS: Mapping[str, NodePath] = {
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
        *_IN_DEEPSPEED_TERMS,
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

_OTHER_ARGUMENTS = frozenset(
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

_TOP_KEYS = frozenset(
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

_OTHER_TYPES = frozenset(
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
    path = _section(document).get("deepspeed_config_file")
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
    section = _section(document)
    for name in ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"):
        builder.put((name,), "auto")
    if not _is_dropped("gradient_clipping", section.get("gradient_clipping")):
        builder.put(("gradient_clipping",), "auto")
    for name, path in _IN_DEEPSPEED_TERMS.items():
        if section.get(name) is not None and not _is_dropped(name, section[name]):
            builder.put(path, _plain(section[name]), written_at=(SECTION, name))
    if section.get("zero_stage") is None:
        builder.put(("zero_optimization", "stage"), 2)
    precision = document.value.get("mixed_precision")
    if precision in ("fp16", "bf16"):
        builder.put((precision, "enabled"), True, written_at=("mixed_precision",))
    return builder.document()


def _is_dropped(name: str, value: Any) -> bool:
    """A gradient_clipping of 0 never gets into the config."""
    return name == "gradient_clipping" and value is not None and _plain(value) == 0


def _plain(value: Any) -> Any:
    """Accelerate hands its values on through the environment, so a number in quotes is a number."""
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    try:
        return int(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _section(document: Document) -> Mapping[str, Any]:
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


def unknown_keys(document: Document | None) -> tuple[Item, ...]:
    """Inline keys that Accelerate doesn't read."""
    if document is None:
        return ()
    from dslint.runs.near_names import advice, near_name

    return tuple(
        Item(
            {"key": str(name), "advice": advice(near_name(str(name), KNOWN_KEYS))},
            document.source,
            span_of_entry(document, (SECTION, name)),
        )
        for name in _section(document)
        if name not in KNOWN_KEYS and name not in _OTHER_ARGUMENTS
    )


def unused_section(document: Document | None) -> tuple[Item, ...]:
    """The DeepSpeed section of a file whose distributed_type is another one (one item or none)."""
    if document is None or not _section(document):
        return ()
    kind = document.value.get("distributed_type")
    if kind not in _OTHER_TYPES:
        return ()
    place = span_of_entry(document, ("distributed_type",))
    return (
        Item(
            {"type": str(kind)},
            document.source,
            document.keys[(SECTION,)],
            ((place, "the type that counts"),),
        ),
    )


def unknown_type(document: Document | None) -> tuple[Item, ...]:
    """A distributed_type that Accelerate doesn't have, or none at all (one item or none)."""
    if document is None:
        return ()
    kind = document.value.get("distributed_type")
    if kind == "DEEPSPEED" or kind in _OTHER_TYPES or isinstance(kind, bool):
        return ()
    is_there = ("distributed_type",) in document.keys
    place = span_of_entry(document, ("distributed_type",) if is_there else (SECTION,))
    return (Item({"type": None if kind is None else str(kind)}, document.source, place),)


def unknown_top_keys(document: Document | None) -> tuple[Item, ...]:
    """Keys outside of all sections that Accelerate refuses; files for SageMaker have others of their own."""
    if document is None or document.value.get("compute_environment", "LOCAL_MACHINE") != "LOCAL_MACHINE":
        return ()
    return tuple(
        Item(
            {"key": str(name), "advice": _home_or_near(str(name))},
            document.source,
            span_of_entry(document, (name,)),
        )
        for name in document.value
        if name not in _TOP_KEYS
    )


def _home_or_near(name: str) -> str:
    """The end of a message about a key outside of all sections."""
    from dslint.runs.near_names import advice, near_name

    if name in KNOWN_KEYS:
        return f": it belongs into `{SECTION}`"
    return advice(near_name(name, _TOP_KEYS))


def keys_beside_config_file(document: Document | None) -> tuple[Item, ...]:
    """Inline keys that Accelerate refuses beside a config file (DeepSpeedPlugin._deepspeed_config_checks)."""
    reference = None if document is None else config_file(document)
    if document is None or reference is None:
        return ()
    return tuple(
        Item(
            {"key": name},
            document.source,
            span_of_entry(document, (SECTION, name)),
            ((reference[1], "the config file"),),
        )
        for name in _section(document)
        if name in _IN_DEEPSPEED_TERMS
    )


def precision_beside_config_file(document: Document | None) -> tuple[Item, ...]:
    """A mixed_precision that Accelerate refuses beside a config file (one item or none)."""
    reference = None if document is None else config_file(document)
    if document is None or reference is None or document.value.get("mixed_precision") is None:
        return ()
    value = document.value["mixed_precision"]
    place = span_of_entry(document, ("mixed_precision",))
    return (Item({"value": value}, document.source, place, ((reference[1], "the config file"),)),)


def useless_init_flag(document: Document | None, stage: Any) -> tuple[Item, ...] | Unknown:
    """A zero3_init_flag that is on at another ZeRO stage than 3 (one item or none)."""
    flag = None if document is None else _section(document).get("zero3_init_flag")
    if document is None or flag is None or _plain(flag) is not True or stage == 3:
        return ()
    if isinstance(stage, Unknown):
        return stage
    return (Item({"stage": stage}, document.source, span_of_entry(document, (SECTION, "zero3_init_flag"))),)


def clipping_of_zero(document: Document | None) -> tuple[Item, ...]:
    """An inline gradient_clipping of 0, which Accelerate drops (one item or none)."""
    if document is None or config_file(document) is not None:
        return ()
    if not _is_dropped("gradient_clipping", _section(document).get("gradient_clipping")):
        return ()
    return (
        Item(
            {"key": "gradient_clipping"},
            document.source,
            span_of_entry(document, (SECTION, "gradient_clipping")),
        ),
    )

"""What the given configs need of the environment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dslint.runs.effective import EffectiveConfig

BUILDERS: Mapping[str, str] = {
    "FusedAdam": "FusedAdamBuilder",
    "DeepSpeedCPUAdam": "CPUAdamBuilder",
    "FusedLamb": "FusedLambBuilder",
    "FusedLion": "FusedLionBuilder",
    "DeepSpeedCPULion": "CPULionBuilder",
    "DeepSpeedCPUAdagrad": "CPUAdagradBuilder",
}
"""The builder of the op that an optimizer class loads (deepspeed/ops/*/*.py)."""

COLLECTIVE = "ShareMemCommBuilder"
"""Loaded on a CPU host by every run (build_shm_op in deepspeed/comm/torch.py); CUDA has no such op."""

NVME = "AsyncIOBuilder"
USUAL = ("FusedAdamBuilder", "CPUAdamBuilder", COLLECTIVE)
"""The builders to ask about where no config says which optimizer is used."""


class UnreadableConfigError(Exception):
    """A config that can't be read; the message names it and says why."""


@dataclass(frozen=True)
class Needs:
    """What the configs ask for; each text says where, for a message ("ds.json: optimizer.type Adam").

    Attributes:
        builders: the ops that must be built or loaded, with the reason.
        nvme: what swaps to NVMe.
        pinned_memory: what asks for pinned memory.
        auto_prefetch: where Transformers works out stage3_prefetch_bucket_size.
        partitioned_gradients: where gradients are partitioned (stage 2 or 3).
    """

    builders: Mapping[str, str]
    nvme: str | None = None
    pinned_memory: str | None = None
    auto_prefetch: str | None = None
    partitioned_gradients: str | None = None


def needs_of(paths: Sequence[str]) -> Needs | None:
    """What the configs at these paths need; None without any path.

    Raises:
        UnreadableConfigError: one of them can't be read.
    """
    if not paths:
        return None
    return merged([_needs_of_config(path, config) for path, config in _configs(paths)])


def merged(all_needs: Iterable[Needs]) -> Needs:
    """The needs of several configs together; the first reason counts."""
    together = Needs({})
    for one in all_needs:
        together = Needs(
            {**one.builders, **together.builders},
            together.nvme or one.nvme,
            together.pinned_memory or one.pinned_memory,
            together.auto_prefetch or one.auto_prefetch,
            together.partitioned_gradients or one.partitioned_gradients,
        )
    return together


def _configs(paths: Sequence[str]) -> Iterator[tuple[str, EffectiveConfig]]:
    from dslint.inputs import read
    from dslint.lint import facts_of
    from dslint.runs.linking import pair, run_of
    from dslint.runs.run import Options

    reading = read(paths)
    for trouble in reading.troubles:
        raise UnreadableConfigError(f"{trouble.path}: {trouble.message}")
    for pairing in pair(reading.configs, reading.accelerate):
        run = run_of(pairing, Options())
        if run.config.problem is not None:
            place = run.config.source.place(run.config.problem.span.start)
            where = f"{pairing.path}:{place.line}:{place.column}"
            raise UnreadableConfigError(f"{where}: {run.config.problem.message}")
        yield pairing.path, facts_of(run).config


def _needs_of_config(path: str, config: EffectiveConfig) -> Needs:
    stage = config.value(("zero_optimization", "stage"))
    swapped = _offloaded_to(config, "nvme") if stage == 3 else None
    prefetch = config.written(("zero_optimization", "stage3_prefetch_bucket_size"))
    return Needs(
        {builder: f"{path}: {reason}" for builder, reason in _builders(config, swapped)},
        f"{path}: {swapped}" if swapped else None,
        f"{path}: {pinned}" if (pinned := _pinned(config)) else None,
        f"{path}: stage3_prefetch_bucket_size" if stage == 3 and prefetch == "auto" else None,
        f"{path}: stage {stage}" if stage in (2, 3) else None,
    )


def _builders(config: EffectiveConfig, swapped: str | None) -> Iterator[tuple[str, str]]:
    from dslint.runs.optimizer_facts import optimizer_section
    from dslint.runs.optimizers import OptimizerSection, optimizer_classes

    section = optimizer_section(config)
    if isinstance(section, OptimizerSection):
        classes = optimizer_classes(section)
        if len(classes) == 1 and classes[0] in BUILDERS:
            offload = f" with offload_optimizer.device {section.offload_device}"
            is_offloaded = section.offload_device in ("cpu", "nvme")
            yield BUILDERS[classes[0]], f"optimizer.type {section.type_name}{offload if is_offloaded else ''}"
    if swapped:
        yield NVME, swapped
    for key in ("zero_quantized_weights", "zero_quantized_gradients"):
        if config.value(("zero_optimization", key)) is True:
            yield "QuantizerBuilder", key


def _offloaded_to(config: EffectiveConfig, device: str) -> str | None:
    """The first section that offloads to a device."""
    for section in ("offload_optimizer", "offload_param"):
        if _value(config, section, "device") == device:
            return f"{section}.device {device}"
    return None


def _pinned(config: EffectiveConfig) -> str | None:
    """The first offload section that pins memory."""
    for section in ("offload_optimizer", "offload_param"):
        device = _value(config, section, "device")
        if device in ("cpu", "nvme") and _value(config, section, "pin_memory") is True:
            return f"{section}.pin_memory"
    return None


def _value(config: EffectiveConfig, section: str, key: str) -> Any:
    return config.value(("zero_optimization", section, key))

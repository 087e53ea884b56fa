"""A trial: what shall be tried on real DeepSpeed, as data that goes to a child process and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

PHASES = ("start", "read", "fill", "parse", "initialize", "step", "save", "load", "done")
"""What a trial goes through: DeepSpeed reads the config, Hugging Face fills in "auto" (only there), DeepSpeed
parses it, builds the engine, takes steps, saves weights and a checkpoint, loads the checkpoint."""

PATIENCE = 40
"""Further optimizer steps while every one overflows: enough for a loss scale of 2**32 to come down."""


@dataclass(frozen=True)
class Trial:
    """One short training.

    Attributes:
        config: the text of the DeepSpeed config, or None where an Accelerate file stands for it.
        accelerate: the text of the Accelerate file that starts the run, if one does.
        gpus: ranks a node.
        nodes: number of nodes.
        loader: who reads the config: "deepspeed" or "hf".
        fp16: whether the device shall say that it knows float16; None for what it says by itself.
        bf16: the same for bfloat16.
        steps: optimizer steps before the save.
        timeout: seconds that the trial may take, builds of ops left out.
        thorough: whether to save and load a checkpoint too, and not only the weights.
        detailed: whether to tell every setting that DeepSpeed took from the config.
        arguments: TrainingArguments for the loader "hf" that shall not agree with the config.
        missing: packages that shall seem not to be installed.
        floats: whether the model's batches are floats, in its own type, and not tokens.
        launcher: who starts the ranks of a simulated group: "torchrun" or "deepspeed".
        calls: what the script calls after `initialize`, by the names of script_calls.CALLS.
        mode: "simulated" (rank 0 of a fake group) or "real" (a process for each rank).
        shared: whether real ranks may share a GPU, which they can through gloo, but not through NCCL.
        silence: seconds without any work done by a real rank after which they count as hanging; None for no limit.
        metered: whether to count the memory of tensors on the CPU too, which makes a trial about twice as long.
    """

    config: str | None
    accelerate: str | None = None
    gpus: int = 1
    nodes: int = 1
    loader: str = "deepspeed"
    fp16: bool | None = None
    bf16: bool | None = None
    steps: int = 2
    timeout: float = 120.0
    thorough: bool = True
    detailed: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    floats: bool = False
    launcher: str = "torchrun"
    calls: tuple[str, ...] = ()
    mode: str = "simulated"
    shared: bool = False
    silence: float | None = None
    metered: bool = False

    @property
    def real(self) -> bool:
        """Whether it has real peers."""
        return self.mode == "real"

    @property
    def ranks(self) -> int:
        """Number of ranks, all of them data parallel unless the config says otherwise."""
        return self.gpus * self.nodes

    def as_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Trial:
        """The trial that `as_data` wrote."""
        known = {each.name for each in fields(cls)}
        values = {key: value for key, value in data.items() if key in known}
        tuples = {name: tuple(values.get(name, ())) for name in ("missing", "calls")}
        return cls(**{**values, **tuples})

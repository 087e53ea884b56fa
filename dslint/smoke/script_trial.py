"""A trial of a whole script: what shall be run, and how it is started, as data that goes to a child process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

SCRIPT_PHASES = ("start", "launch", "script", "done")
"""What such a trial goes through: the launcher reads its command line, the script runs, it has ended well."""

KIND = "script"
"""What marks a line of the server's input as a trial of a script."""

LAUNCHERS = ("deepspeed", "torchrun", "torch.distributed.launch", "accelerate", "python")
"""What may start a script."""


@dataclass(frozen=True)
class ScriptTrial:
    """One run of a script, by itself or on the words of its launch command.

    Attributes:
        files: what lies in the folder in which the script runs, as text by relative name.
        script: the script's name there; None where only the launch command is tried.
        arguments: the script's, where no `words` give them.
        launcher: what starts it, one of LAUNCHERS, where no `words` say it.
        words: a whole launch command, which goes through the launcher's own reader; empty to make one.
        environment: variables that are set for the launcher.
        gpus: GPUs that the launcher finds on each node; ranks a node where no `words` say it.
        nodes: number of nodes where no `words` say it.
        mode: "simulated" (rank 0 of a fake group) or "real" (as many processes as there are ranks, with gloo).
        shared: whether real ranks may share a GPU, which they can through gloo, but not through NCCL.
        timeout: seconds it may take, builds of ops left out.
        silence: seconds without any work done by a rank after which it counts as hanging.
        fp16: whether the device shall say that it knows float16; None for what it says by itself.
        bf16: the same for bfloat16.
        missing: packages that shall seem not to be installed.
        beside: the folder of the user's that the trial's own mirrors (see mirror.py), with `files` in place of
            its own files of these names; empty for a folder that holds nothing but `files`.
        where: the folder in which the command runs, below the trial's.
        steps: optimizer steps of an engine after which the script is ended; 0 to let it go on.
        to_the_end: whether only Hugging Face's Trainer ends after these steps, and the script goes on.
        before: what is run first in the same folder; the files that it writes take the place of `files`.
    """

    files: Mapping[str, str]
    script: str | None = "train.py"
    arguments: tuple[str, ...] = ()
    launcher: str = "torchrun"
    words: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    gpus: int = 1
    nodes: int = 1
    mode: str = "simulated"
    shared: bool = False
    timeout: float = 120.0
    silence: float = 6.0
    fp16: bool | None = None
    bf16: bool | None = None
    missing: tuple[str, ...] = ()
    beside: str = ""
    where: str = "."
    steps: int = 0
    to_the_end: bool = False
    before: ScriptTrial | None = None

    @property
    def ranks(self) -> int:
        """Number of ranks where no `words` say it."""
        return self.gpus * self.nodes

    @property
    def real(self) -> bool:
        """Whether it has real peers."""
        return self.mode == "real"

    def as_data(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"kind": KIND, **asdict(self)}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> ScriptTrial:
        """The trial that `as_data` wrote."""
        known = {each.name for each in fields(cls)}
        values = {key: value for key, value in data.items() if key in known}
        tuples = {name: tuple(values.get(name, ())) for name in ("arguments", "words", "missing")}
        before = values.get("before")
        return cls(**{**values, **tuples, "before": None if before is None else cls.from_data(before)})

    def command(self) -> list[str]:
        """The words of the launch command: those that are given, or ones that start all ranks."""
        if self.words:
            return list(self.words)
        script = [self.script or "train.py", *self.arguments]
        return [*_STARTS[self.launcher](self.gpus, self.nodes), *script]


def _deepspeed(gpus: int, _nodes: int) -> list[str]:
    return ["deepspeed", f"--num_gpus={gpus}"]


def _torchrun(gpus: int, nodes: int) -> list[str]:
    return ["torchrun", f"--nproc_per_node={gpus}", f"--nnodes={nodes}"]


def _torch_launch(gpus: int, nodes: int) -> list[str]:
    return ["python", "-m", "torch.distributed.launch", f"--nproc_per_node={gpus}", f"--nnodes={nodes}"]


def _accelerate(gpus: int, nodes: int) -> list[str]:
    ranks = ["--num_processes", str(gpus * nodes), "--num_machines", str(nodes)]
    standard = ["--machine_rank", "0", "--deepspeed_multinode_launcher", "standard"] if nodes > 1 else []
    meeting = ["--main_process_ip", "127.0.0.1", "--main_process_port", "29500"] if nodes > 1 else []
    return ["accelerate", "launch", "--config_file", "accelerate.yaml", *ranks, *standard, *meeting]


def _python(_gpus: int, _nodes: int) -> list[str]:
    return ["python"]


_STARTS = {
    "deepspeed": _deepspeed,
    "torchrun": _torchrun,
    "torch.distributed.launch": _torch_launch,
    "accelerate": _accelerate,
    "python": _python,
}

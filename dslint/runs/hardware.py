"""Facts about the GPUs of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dslint.runs import accelerate
from dslint.runs.facts import Fact, Facts
from dslint.runs.unknown import Unknown, needs

if TYPE_CHECKING:
    from dslint.runs.gpus import Gpu

UNKNOWN_GPU = needs("the type of GPU (--gpu)")
UNKNOWN_COUNT = needs("the number of GPUs (--gpus)")


def _ask(question: Callable[[Gpu], Any]) -> Callable[[Facts], Any]:
    """An ability of the GPU; Unknown where nobody says which one it is."""

    def work_out(facts: Facts) -> Any:
        gpu = facts.run.options.gpu
        return UNKNOWN_GPU if gpu is None else question(gpu)

    return work_out


def _per_node(facts: Facts) -> int | Unknown:
    """What the launch command starts on each node; else --gpus, or an Accelerate file's processes by machines."""
    if facts.run.launch is not None:
        started: int | Unknown = facts.value("launch.gpus")
        if not isinstance(started, Unknown):
            return started
    if facts.run.options.gpus is not None:
        return facts.run.options.gpus
    file = facts.run.accelerate
    ranks = accelerate.ranks(file)
    machines = 1 if file is None else file.value.get("num_machines", 1)
    if ranks is None or not isinstance(machines, int) or machines < 1 or ranks % machines:
        return UNKNOWN_COUNT
    return ranks // machines


FACTS: Mapping[str, Fact] = {
    "gpu.name": Fact("name of the GPU", _ask(lambda gpu: gpu.name)),
    "gpu.bf16": Fact("whether the GPU computes in bf16", _ask(lambda gpu: gpu.bf16)),
    "gpu.fp16": Fact("whether DeepSpeed allows fp16 on the GPU", _ask(lambda gpu: gpu.fp16)),
    "gpu.fp8": Fact("whether the GPU computes in fp8", _ask(lambda gpu: gpu.fp8)),
    "gpu.memory": Fact("memory of the GPU in bytes", _ask(lambda gpu: gpu.memory)),
    "gpu.per_node": Fact("number of GPUs that the run uses on each node", _per_node),
}

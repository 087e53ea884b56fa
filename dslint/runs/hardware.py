"""Facts about the GPU of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dslint.runs.facts import Fact, Facts
from dslint.runs.unknown import needs

if TYPE_CHECKING:
    from dslint.runs.gpus import Gpu

UNKNOWN_GPU = needs("the type of GPU (--gpu)")


def _ask(question: Callable[[Gpu], Any]) -> Callable[[Facts], Any]:
    """An ability of the GPU; Unknown where nobody says which one it is."""

    def work_out(facts: Facts) -> Any:
        gpu = facts.run.options.gpu
        return UNKNOWN_GPU if gpu is None else question(gpu)

    return work_out


FACTS: Mapping[str, Fact] = {
    "gpu.name": Fact("name of the GPU", _ask(lambda gpu: gpu.name)),
    "gpu.bf16": Fact("whether the GPU computes in bf16", _ask(lambda gpu: gpu.bf16)),
    "gpu.fp16": Fact("whether DeepSpeed allows fp16 on the GPU", _ask(lambda gpu: gpu.fp16)),
    "gpu.fp8": Fact("whether the GPU computes in fp8", _ask(lambda gpu: gpu.fp8)),
    "gpu.memory": Fact("memory of the GPU in bytes", _ask(lambda gpu: gpu.memory)),
}

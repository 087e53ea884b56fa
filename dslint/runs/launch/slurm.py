"""What `#SBATCH` lines say about the job, and the variables that Slurm derives from them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dslint.documents.shell_document import Directive
from dslint.documents.source import Span

LONG_NAMES = {
    "n": "ntasks",
    "N": "nodes",
    "G": "gpus",
    "c": "cpus_per_task",
    "tasks_per_node": "ntasks_per_node",
}
_GPUS = re.compile(r"(?:gres/)?(?:gpu:)?(?:[A-Za-z][\w.-]*:)?(\d+)(?:\([^)]*\))?")
_GRES = re.compile(
    r"(?:^|,)(?:gres/)?gpu(?::[A-Za-z][\w.-]*|:[\w.-]*[A-Za-z][\w.-]*)?(?::(\d+))?(?:\([^)]*\))?(?=,|$)"
)


def directive_values(directives: tuple[Directive, ...]) -> dict[str, tuple[str, Span]]:
    """The options by their long names with underscores; the last of several counts."""
    found = {}
    for directive in directives:
        name = directive.option.lstrip("-").replace("-", "_")
        found[LONG_NAMES.get(name, name)] = (directive.value or "", directive.span)
    return found


def gpu_count(text: str, is_gres: bool = False) -> int | None:
    """The GPUs in `8`, `a100:8` or (as `--gres`) `gpu:a100:8`."""
    if is_gres:
        match = _GRES.search(text)
        return None if match is None else int(match.group(1) or 1)
    match = _GPUS.fullmatch(text)
    return int(match.group(1)) if match else None


def slurm_variables(directives: tuple[Directive, ...]) -> Mapping[str, tuple[str, Span]]:
    """The variables that a job with these lines finds set."""
    values = directive_values(directives)
    found: dict[str, tuple[str, Span]] = {}

    def put(names: str, number: int | None, span: Span) -> None:
        if number is not None:
            found.update({name: (str(number), span) for name in names.split()})

    nodes = _whole(values, "nodes")
    per_node = _whole(values, "ntasks_per_node")
    tasks = _whole(values, "ntasks")
    if nodes:
        put("SLURM_NNODES SLURM_JOB_NUM_NODES", *nodes)
    if per_node:
        put("SLURM_NTASKS_PER_NODE", *per_node)
    if tasks:
        put("SLURM_NTASKS SLURM_NPROCS", *tasks)
    elif nodes and per_node:
        put("SLURM_NTASKS SLURM_NPROCS", nodes[0] * per_node[0], per_node[1])
    if cpus := _whole(values, "cpus_per_task"):
        put("SLURM_CPUS_PER_TASK", *cpus)
    for name, is_gres in (("gres", True), ("gpus_per_node", False)):
        if name in values:
            text, span = values[name]
            count = gpu_count(text, is_gres)
            put("SLURM_GPUS_ON_NODE" + ("" if is_gres else " SLURM_GPUS_PER_NODE"), count, span)
    return found


def _whole(values: Mapping[str, tuple[str, Span]], name: str) -> tuple[int, Span] | None:
    text, span = values.get(name, ("", Span(0, 0)))
    return (int(text), span) if re.fullmatch(r"[0-9]{1,7}", text) else None

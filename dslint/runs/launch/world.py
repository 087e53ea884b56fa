"""How many ranks a launch command starts, on how many nodes, by its options and the files that it names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from dslint.documents.document import Document
from dslint.documents.source import Source
from dslint.runs import accelerate
from dslint.runs.launch.hostfile import read_hostfile
from dslint.runs.launch.launch import Launch, Option
from dslint.runs.launch.node_filter import FilterError, Slots, read_filter, selected
from dslint.runs.launch.slurm import directive_values
from dslint.runs.unknown import UNDECIDABLE, Unknown, needs

GPUS = needs("the number of GPUs (--gpus)")


@dataclass(frozen=True)
class World:
    """The extent of a run.

    Attributes:
        ranks: processes over all nodes.
        per_node: processes a node; Unknown where the nodes differ.
        nodes: nodes.
        slots: under DeepSpeed's launcher, the GPUs that are used by host, where both are known.
    """

    ranks: int | Unknown = UNDECIDABLE
    per_node: int | Unknown = UNDECIDABLE
    nodes: int | Unknown = UNDECIDABLE
    slots: Slots = field(default_factory=dict)


def world_of(launch: Launch, hostfile: Source | None, started_by: Document | None, gpus: int | None) -> World:
    """The extent of what a command starts.

    Args:
        launch: the command.
        hostfile: the file that its --hostfile names, where it is there.
        started_by: the Accelerate file that its --config_file names.
        gpus: GPUs of a node, where the user says it.
    """
    if launch.launcher == "deepspeed":
        return _of_deepspeed(launch, hostfile, gpus)
    if launch.launcher in ("torchrun", "torch.distributed.launch"):
        return _even(_per_node_of_torchrun(launch, gpus), _nodes_of_torchrun(launch))
    if launch.launcher == "accelerate":
        return _of_accelerate(launch, started_by)
    if launch.launcher == "srun":
        return _of_tasks(tasks(launch, launch.options))
    if launch.launcher == "mpirun":
        total = number(launch.options.get("n"))
        return World(total if isinstance(total, int) else UNDECIDABLE)
    return World(1, 1, 1)


def number(option: Option | None) -> int | Unknown | None:
    """The number that an option is given; None where the option isn't there or no number is."""
    if option is None:
        return None
    if isinstance(option.value, Unknown):
        return option.value
    is_number = isinstance(option.value, str) and re.fullmatch(r"\s*[+-]?[0-9]{1,9}\s*", option.value)
    return int(option.value) if is_number else None


def _even(per_node: int | Unknown, nodes: int | Unknown) -> World:
    if isinstance(per_node, Unknown) or isinstance(nodes, Unknown):
        return World(per_node if isinstance(per_node, Unknown) else nodes, per_node, nodes)
    return World(per_node * nodes, per_node, nodes)


# --- DeepSpeed's own launcher ---


def _of_deepspeed(launch: Launch, hostfile: Source | None, gpus: int | None) -> World:
    if launch.options_incomplete:
        return World()
    if "hostfile" in launch.options and launch.options["hostfile"].value != "/dev/null":
        pool = slots_in(hostfile)
        return _of_counts(launch, UNDECIDABLE) if pool is None else _of_pool(launch, pool)
    count = number(launch.options.get("num_nodes"))
    if count is not None and not (isinstance(count, int) and count < 2):
        return _of_counts(launch, count)  # only a hostfile that is read by default can hold several
    return _of_this_host(launch, gpus)


def slots_in(hostfile: Source | None) -> Mapping[str, int] | None:
    """The slots of each host in a hostfile; None where it isn't there, or the launcher refuses it."""
    read = None if hostfile is None else read_hostfile(hostfile)
    return None if read is None or read.problem is not None else read.slots


def _of_counts(launch: Launch, nodes: int | Unknown) -> World:
    per_node = number(launch.options.get("num_gpus"))
    return _even(per_node if isinstance(per_node, int) and per_node > 0 else UNDECIDABLE, nodes)


def _of_this_host(launch: Launch, gpus: int | None) -> World:
    given = number(launch.options.get("num_gpus"))
    if given is not None and not (isinstance(given, int) and given < 1):
        return _even(given, 1)
    include, exclude = (launch.options.get(name) for name in ("include", "exclude"))
    if gpus is not None:
        return _of_pool(launch, {"localhost": gpus})
    if include is not None and exclude is None:
        return _of_included(include)
    visible = None if include or exclude else visible_devices(launch)
    return _even(len(visible) if isinstance(visible, tuple) else visible or GPUS, 1)


def _of_included(include: Option) -> World:
    """What an --include of this machine's slots asks for, whether or not it has them."""
    try:
        chosen = read_filter(include.value) if isinstance(include.value, str) else {}
    except FilterError:
        return World()
    slots = chosen.get("localhost", ())
    return World(len(slots), len(slots), 1, chosen) if slots and len(chosen) == 1 else World(GPUS, GPUS, 1)


def _of_pool(launch: Launch, pool: Mapping[str, int]) -> World:
    """What is left of the slots that there are (deepspeed/launcher/runner.py, main)."""
    texts = [launch.options[name].value if name in launch.options else "" for name in ("include", "exclude")]
    if not all(isinstance(text, str) for text in texts):
        return World()
    is_local = list(pool) == ["localhost"] and not any(texts)
    visible = visible_devices(launch) if is_local and "num_gpus" not in launch.options else None
    if isinstance(visible, Unknown):
        return World()
    try:
        chosen = dict(selected(pool, str(texts[0]), str(texts[1])))
    except FilterError:
        return World()
    count, per_node = (number(launch.options.get(name)) for name in ("num_nodes", "num_gpus"))
    if isinstance(count, Unknown) or isinstance(per_node, Unknown):
        return World()
    if count is not None and count > 0:
        chosen = dict(list(chosen.items())[:count])
    if per_node is not None and per_node > 0:
        chosen = {host: tuple(range(per_node)) for host in chosen if per_node < 65_536}
    elif visible is not None:
        return _even(len(visible), 1)
    sizes = {len(slots) for slots in chosen.values()}
    same = next(iter(sizes)) if len(sizes) == 1 else UNDECIDABLE
    return World(sum(len(slots) for slots in chosen.values()), same, len(chosen), chosen)


def visible_devices(launch: Launch) -> tuple[str, ...] | Unknown | None:
    """The devices in CUDA_VISIBLE_DEVICES; None where the file doesn't set it, or sets it empty."""
    variable = launch.environment.get("CUDA_VISIBLE_DEVICES")
    if variable is None:
        return None
    if isinstance(variable.text, Unknown):
        return variable.text
    return tuple(word.strip() for word in variable.text.split(",") if word.strip()) or None


# --- torch's launchers ---


def _per_node_of_torchrun(launch: Launch, gpus: int | None) -> int | Unknown:
    option = launch.options.get("nproc_per_node")
    if option is None:
        is_unset = not launch.options_incomplete and "PET_NPROC_PER_NODE" not in launch.environment
        return 1 if is_unset else UNDECIDABLE
    value = number(option)
    if value is not None:
        return value
    if option.value not in ("gpu", "auto", "cuda"):
        return UNDECIDABLE
    visible = visible_devices(launch)
    if visible is not None:
        return len(visible) if isinstance(visible, tuple) else visible
    return GPUS if gpus is None else gpus


def _nodes_of_torchrun(launch: Launch) -> int | Unknown:
    option = launch.options.get("nnodes")
    if option is None or "standalone" in launch.options:
        is_unset = not launch.options_incomplete and "PET_NNODES" not in launch.environment
        return 1 if is_unset else UNDECIDABLE
    if not isinstance(option.value, str):
        return UNDECIDABLE
    least, _, most = option.value.partition(":")
    is_fixed = re.fullmatch(r"[0-9]{1,6}", least) and most in ("", least)
    return int(least) if is_fixed else UNDECIDABLE


# --- Accelerate ---


def _of_accelerate(launch: Launch, started_by: Document | None) -> World:
    total: int | Unknown | None = number(launch.options.get("num_processes"))
    if total is None and not launch.options_incomplete:
        total = accelerate.ranks(started_by)
    many = machines(launch, started_by)
    if total is None:
        return World(GPUS, GPUS, many)
    if isinstance(total, Unknown) or isinstance(many, Unknown) or many < 1:
        return World(total, UNDECIDABLE, many)
    return World(total // many * many, total // many, many)


def machines(launch: Launch, started_by: Document | None) -> int | Unknown:
    """Accelerate's number of machines: of the command, of its file, or one."""
    value = number(launch.options.get("num_machines"))
    if value is not None:
        return value
    if launch.options_incomplete:
        return UNDECIDABLE
    if started_by is None:
        return 1 if "config_file" not in launch.options else UNDECIDABLE
    in_file = started_by.value.get("num_machines", 1)
    return in_file if isinstance(in_file, int) and not isinstance(in_file, bool) and in_file > 0 else UNDECIDABLE


# --- Slurm ---


@dataclass(frozen=True)
class Tasks:
    """What srun starts, as far as its options and the `#SBATCH` lines tell; None where they don't.

    Attributes:
        total: tasks over all nodes.
        per_node: tasks a node.
        nodes: nodes.
    """

    total: int | None
    per_node: int | None
    nodes: int | None


def tasks(launch: Launch, options: Mapping[str, Option]) -> Tasks | None:
    """The tasks of srun with these options; None where a variable that nobody knows is among them."""
    found: dict[str, int | None] = {}
    directives = directive_values(launch.directives)
    for name in ("ntasks", "ntasks_per_node", "nodes"):
        value = number(options.get(name))
        if isinstance(value, Unknown) or (value is None and name in options):
            return None
        text = directives[name][0] if name in directives else ""
        in_file = int(text) if re.fullmatch(r"[0-9]{1,6}", text) else None
        found[name] = in_file if value is None else value
    total, per_node, nodes = (found[name] for name in ("ntasks", "ntasks_per_node", "nodes"))
    is_own = "ntasks" in options and "ntasks_per_node" not in options
    if is_own or (total is not None and nodes and per_node is None):
        per_node = total // nodes if total is not None and nodes and total % nodes == 0 else None
    if total is None and nodes is not None:
        per_node = 1 if per_node is None else per_node
        total = nodes * per_node
    return Tasks(total, per_node, nodes)


def _of_tasks(found: Tasks | None) -> World:
    if found is None:
        return World()
    total, per_node, nodes = (
        UNDECIDABLE if value is None else value for value in (found.total, found.per_node, found.nodes)
    )
    return World(total, per_node, nodes)

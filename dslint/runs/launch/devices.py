"""GPUs that a launch command speaks of, against those that there are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from dslint.documents.source import Source, Span
from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.launch.facts import gpus, launch_of
from dslint.runs.launch.hostfile import read_hostfile
from dslint.runs.launch.launch import Argument, Launch
from dslint.runs.launch.node_filter import FilterError, read_filter
from dslint.runs.launch.places import number_place, option_place, value_place
from dslint.runs.launch.slurm import directive_values, gpu_count
from dslint.runs.launch.world import machines, number, visible_devices
from dslint.runs.unknown import UNDECIDABLE, Unknown

VARIABLE = "CUDA_VISIBLE_DEVICES"
COUNTS = ("num_gpus", "nproc_per_node", "num_processes")
"""Options that say how many ranks a node has."""


def ignored_variable(facts: Facts) -> tuple[Item, ...]:
    """CUDA_VISIBLE_DEVICES beside options for which DeepSpeed's launcher drops it (one item or none)."""
    launch = launch_of(facts)
    devices = visible_devices(launch)
    if launch.launcher != "deepspeed" or not isinstance(devices, tuple) or "hostfile" in launch.options:
        return ()
    name = next((name for name in ("include", "exclude", "num_gpus", "num_nodes") if _drops(launch, name)), None)
    if name is None or _chosen(launch, name) == list(devices):
        return ()
    variable, option = launch.environment[VARIABLE], launch.options[name]
    is_apart = b" " in launch.source.data[option.span.start : option.span.end]
    fields = {
        "devices": ",".join(devices),
        "option": f"--{name}",
        "variable_span": _place_of_variable(launch, variable),
        "option_span": option_place(launch, option),
        "include": f"--include{' ' if is_apart else '='}localhost:{','.join(devices)}",
    }
    return (Item(fields, launch.source, variable.span, ((launch.options[name].span, "this counts alone"),)),)


def _place_of_variable(launch: Launch, variable: Argument) -> Span | Unknown:
    """`NAME=value` where it is for this command alone, or is exported in a file that starts nothing else."""
    data = launch.source.data
    between = data[variable.span.end : launch.launcher_span.start]
    is_written = data[variable.span.start : variable.span.end].startswith(f"{VARIABLE}=".encode())
    is_of_command = re.search(rb"[;&|]|(?<!\\)\n", between) is None and b"export" not in between
    is_alone = is_of_command or _starts_nothing_else(launch)
    return variable.span if is_written and is_alone and not launch.is_in_text else UNDECIDABLE


def _starts_nothing_else(launch: Launch) -> bool:
    """Whether the file has one launch command, no other word of Python, and no other of the variable."""
    from dslint.documents.shell_reader import read_shell
    from dslint.runs.launch.reading import launches

    data = launch.source.data
    is_only_one = len(launches(read_shell(launch.source))) == 1 and b"python" not in data
    return is_only_one and data.count(VARIABLE.encode()) == 1


def _drops(launch: Launch, name: str) -> bool:
    """Whether the launcher drops the variable for this option (deepspeed/launcher/runner.py, main)."""
    option = launch.options.get(name)
    if option is None:
        return False
    if name in ("include", "exclude"):
        return isinstance(option.value, str) and option.value != ""
    count = number(option)
    return isinstance(count, int) and count > (1 if name == "num_nodes" else 0)


def _chosen(launch: Launch, name: str) -> list[str] | None:
    """The devices that an option picks, where it says so by itself."""
    option = launch.options[name]
    count = number(option)
    if name == "num_gpus" and isinstance(count, int):
        return [str(place) for place in range(min(count, 4096))]
    if name == "include" and isinstance(option.value, str):
        try:
            return [str(slot) for slot in read_filter(option.value).get("localhost", ())]
        except FilterError:
            return None
    return None


def too_many_ranks(facts: Facts) -> tuple[Item, ...]:
    """More ranks a node than GPUs: `kind` "gpus" (--gpus), "visible", "slurm" or "hostfile" (one item or none)."""
    launch, count = launch_of(facts), gpus(facts)
    option = next((launch.options[name] for name in COUNTS if name in launch.options), None)
    if not isinstance(count, int) or option is None or launch.launcher in ("srun", "mpirun", "python"):
        return ()
    for kind, limit, source, span in _limits(facts, launch):
        if count > limit:
            fields = {
                "kind": kind,
                "ranks": count,
                "gpus": limit,
                "count": _count_for(facts, launch, limit),
                "value_span": value_place(launch, option),
                "reserved": number_place(launch, span, limit) if span and kind == "slurm" else UNDECIDABLE,
            }
            elsewhere = () if source is None or span is None else ((source, span, "the GPUs"),)
            return (Item(fields, launch.source, option.span, elsewhere=elsewhere),)
    return ()


def _count_for(facts: Facts, launch: Launch, per_node: int) -> int | Unknown:
    """What the option has to say for so many ranks a node: Accelerate's counts those of all machines."""
    many = machines(launch, facts.run.accelerate) if launch.launcher == "accelerate" else 1
    return per_node * many if isinstance(many, int) else many


def _limits(facts: Facts, launch: Launch) -> Iterator[tuple[str, int, Source | None, Span | None]]:
    """What tells the number of GPUs, the surest first."""
    visible = visible_devices(launch)
    if facts.run.options.gpus is not None:
        yield "gpus", facts.run.options.gpus, None, None
    if isinstance(visible, tuple) and launch.launcher != "deepspeed":
        yield "visible", len(visible), launch.source, launch.environment[VARIABLE].span
    ids = launch.options.get("gpu_ids")
    if launch.launcher == "accelerate" and ids is not None and isinstance(ids.value, str) and ids.value != "all":
        yield "visible", len([one for one in ids.value.split(",") if one.strip()]), launch.source, ids.span
    yield from _reserved(launch)
    yield from _in_hostfile(facts, launch)


def _reserved(launch: Launch) -> Iterator[tuple[str, int, Source, Span]]:
    """GPUs of a node that the `#SBATCH` lines ask for."""
    values: Mapping[str, tuple[str, Span]] = directive_values(launch.directives)
    for name in ("gres", "gpus_per_node"):
        if name in values:
            text, span = values[name]
            count = gpu_count(text, name == "gres")
            if count is not None:
                yield "slurm", count, launch.source, span


def _in_hostfile(facts: Facts, launch: Launch) -> Iterator[tuple[str, int, Source, Span]]:
    source = facts.run.named.get("hostfile")
    if source is None or launch.launcher != "deepspeed":
        return
    read = read_hostfile(source)
    if read.problem is None and read.slots:
        yield "hostfile", max(read.slots.values()), launch.source, launch.options["hostfile"].span

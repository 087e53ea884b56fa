"""Launchers on several nodes, and launchers inside of launchers."""

from __future__ import annotations

from collections.abc import Iterator

from dslint.documents.source import Source, Span
from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.launch.facts import RANK_VARIABLES, is_alone, launch_of, nodes
from dslint.runs.launch.launch import Launch
from dslint.runs.launch.places import number_place, value_place
from dslint.runs.launch.slurm import directive_values
from dslint.runs.launch.world import machines, number, tasks
from dslint.runs.unknown import UNDECIDABLE, Unknown


def without_meeting_place(facts: Facts) -> tuple[Item, ...]:
    """A torchrun on several nodes that isn't told where they meet ("address"), or which is which ("rank")."""
    launch, many = launch_of(facts), nodes(facts)
    is_of_torch = launch.launcher in ("torchrun", "torch.distributed.launch")
    if not is_of_torch or not isinstance(many, int) or many < 2 or launch.options_incomplete:
        return ()
    if any(name.startswith("PET_") for name in launch.environment):
        return ()
    backend = launch.options.get("rdzv_backend")
    is_static = backend is None or backend.value == "static"
    span = launch.options["nnodes"].span
    if not {"rdzv_endpoint", "master_addr"} & set(launch.options):
        return (Item({"kind": "address", "nodes": many}, launch.source, span),)
    if is_static and "node_rank" not in launch.options:
        return (Item({"kind": "rank", "nodes": many}, launch.source, span),)
    return ()


def accelerate_without_address(facts: Facts) -> tuple[Item, ...]:
    """Accelerate on several machines without the address of the first (one item or none)."""
    launch = launch_of(facts)
    many = machines(launch, facts.run.accelerate) if launch.launcher == "accelerate" else 1
    if not isinstance(many, int) or many < 2 or launch.options_incomplete or _has_hostfile(facts, launch):
        return ()
    in_file = {} if facts.run.accelerate is None else facts.run.accelerate.value
    if (
        facts.run.accelerate is None
        and "config_file" not in launch.options
        and "num_machines" not in launch.options
    ):
        return ()
    if "main_process_ip" in launch.options or in_file.get("main_process_ip"):
        return ()
    option = launch.options.get("num_machines") or launch.options.get("config_file")
    span = launch.span if option is None else option.span
    return (Item({"machines": many}, launch.source, span),)


def _has_hostfile(facts: Facts, launch: Launch) -> bool:
    """Whether Accelerate hands a hostfile on to DeepSpeed's launcher."""
    section = {} if facts.run.accelerate is None else facts.run.accelerate.value.get("deepspeed_config")
    return "deepspeed_hostfile" in launch.options or bool(
        isinstance(section, dict) and section.get("deepspeed_hostfile")
    )


def uneven_processes(facts: Facts) -> tuple[Item, ...]:
    """Accelerate's processes that its machines can't share evenly (one item or none)."""
    launch = launch_of(facts)
    option = launch.options.get("num_processes")
    if launch.launcher != "accelerate" or option is None:
        return ()
    total, many = number(option), machines(launch, facts.run.accelerate)
    if not isinstance(total, int) or not isinstance(many, int) or total < 1 or many < 2 or total % many == 0:
        return ()
    fields = {
        "processes": total,
        "machines": many,
        "per_machine": total // many,
        "started": total // many * many,
        "more": (total // many + 1) * many,
        "all": total * many,
        "value_span": value_place(launch, option),
    }
    return (Item(fields, launch.source, option.span),)


def multiplied(facts: Facts) -> tuple[Item, ...]:
    """A launcher that srun or mpirun starts more often than it knows of (one item or none)."""
    launch = launch_of(facts)
    if not launch.outer or launch.options_incomplete or "no_ssh" in launch.options:
        return ()
    outer = launch.outer[-1]
    started = _tasks_of(launch)
    expected = _launchers_expected(facts, launch)
    if started is None or expected is None or started <= expected:
        return ()
    fields = {
        "outer": outer.launcher,
        "tasks": started,
        "expected": expected,
        "launcher": launch.launcher,
        "per_node_span": _place_of_tasks_per_node(launch, started, expected),
    }
    related = ((launch.launcher_span, "started by each task"),)
    return (Item(fields, launch.source, _span_of_tasks(launch), related),)


def _tasks_of(launch: Launch) -> int | None:
    outer = launch.outer[-1]
    if outer.launcher == "srun":
        found = tasks(launch, outer.options)
        return None if found is None else found.total
    count = number(outer.options.get("n"))
    return count if isinstance(count, int) else None


def _launchers_expected(facts: Facts, launch: Launch) -> int | None:
    """How many launchers of this kind make up one run; None where that can't be told."""
    if launch.launcher == "deepspeed":
        return 1
    if launch.launcher == "accelerate":
        many: int | Unknown = machines(launch, facts.run.accelerate)
        return (
            many if isinstance(many, int) and ("num_machines" in launch.options or facts.run.accelerate) else None
        )
    option = launch.options.get("nnodes")
    if option is not None and (not isinstance(option.value, str) or not option.value.isdigit()):
        return None
    return 1 if option is None else int(str(option.value))


def _place_of_tasks_per_node(launch: Launch, started: int, expected: int) -> Span | Unknown:
    """The number of tasks a node, where 1 instead of it starts as many launchers as are expected."""
    option = launch.outer[-1].options.get("ntasks_per_node")
    each = None if option is None else number(option)
    is_enough = isinstance(each, int) and each > 0 and started == each * expected
    is_all = not {"ntasks", "n"} & set(launch.outer[-1].options)
    return value_place(launch, option) if option is not None and is_enough and is_all else UNDECIDABLE


def _span_of_tasks(launch: Launch) -> Span:
    outer = launch.outer[-1]
    for name in ("ntasks_per_node", "ntasks", "n", "nodes"):
        if name in outer.options:
            return outer.options[name].span
    return outer.span


def idle_nodes(facts: Facts) -> tuple[Item, ...]:
    """Nodes that the `#SBATCH` lines reserve, and a command that runs on the first alone (one item or none)."""
    launch, many = launch_of(facts), nodes(facts)
    is_local = launch.launcher in ("deepspeed", "torchrun", "torch.distributed.launch", "accelerate")
    found = tasks(launch, {})
    if launch.outer or not is_local or many != 1 or found is None or found.nodes is None or found.nodes < 2:
        return ()
    fields = {"reserved": found.nodes, "number": _place_of_nodes(launch, found.nodes)}
    return (Item(fields, launch.source, launch.launcher_span),)


def _place_of_nodes(launch: Launch, reserved: int) -> Span | Unknown:
    """The number of nodes among the `#SBATCH` lines, where no other of them counts tasks over all nodes."""
    values = directive_values(launch.directives)
    if "nodes" not in values or {"ntasks", "nodelist"} & set(values) or b"SLURM_" in launch.source.data:
        return UNDECIDABLE
    return number_place(launch, values["nodes"][1], reserved)


def plain_python(facts: Facts) -> tuple[Item, ...]:
    """A script with DeepSpeed's engine that Python starts without a launcher (one item or none)."""
    launch, deeds = launch_of(facts), facts.run.script
    if launch.launcher != "python" or deeds is None or not is_alone(facts, launch) or _sets_ranks(facts):
        return ()
    if facts.framework not in ("raw", "pipeline"):
        return ()
    start = next(_starts(facts), None)
    related = () if start is None else (start,)
    fields = {"framework": facts.framework, "python": _word_python(launch)}
    return (Item(fields, launch.source, launch.span, elsewhere=related),)


def _word_python(launch: Launch) -> Span | Unknown:
    """The word `python`, where the script's name follows it right away."""
    data, script = launch.source.data, launch.script
    if launch.is_in_text or script is None or launch.is_module:
        return UNDECIDABLE
    span = launch.launcher_span
    is_python = data[span.start : span.end] in (b"python", b"python3")
    is_next = data[span.end : script.span.start].strip() == b"" and span.end < script.span.start
    return span if is_python and is_next else UNDECIDABLE


def _starts(facts: Facts) -> Iterator[tuple[Source, Span, str]]:
    deeds = facts.run.script
    assert deeds is not None
    for call in deeds.calls:
        if call.name in ("deepspeed.initialize", "deepspeed.init_distributed"):
            yield (*deeds.script.place(call.node), "needs to know its rank")


def _sets_ranks(facts: Facts) -> bool:
    """Whether the script says itself which rank it is, or starts the process group in a way of its own."""
    deeds = facts.run.script
    assert deeds is not None
    text = deeds.script.source.data
    is_named = any(f'"{name}"'.encode() in text or f"'{name}'".encode() in text for name in RANK_VARIABLES)
    return is_named or any(call.dotted.endswith("init_process_group") for call in deeds.calls)

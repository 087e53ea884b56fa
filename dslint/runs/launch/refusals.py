"""What the launchers refuse in their own options, before a script runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest

from dslint.documents.source import Span
from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.launch.facts import launch_of, nodes
from dslint.runs.launch.launch import Launch, Option, UnknownOption
from dslint.runs.launch.node_filter import FilterError, read_filter
from dslint.runs.launch.option_tables import option_table
from dslint.runs.launch.places import name_place, option_place, value_place, whole_place
from dslint.runs.near_names import Near, advice, near_name
from dslint.runs.unknown import UNDECIDABLE, Unknown

RETIRED = frozenset(["elastic_training", "min_elastic_nodes", "max_elastic_nodes"])
"""Options that DeepSpeed's launcher had before 0.19.8."""

COMMANDS = {
    "deepspeed": "deepspeed",
    "torchrun": "torchrun",
    "torch.distributed.launch": "torch.distributed.launch",
    "accelerate": "accelerate launch",
}
"""What the launchers are called on a command line."""


def unknown_options(facts: Facts) -> tuple[Item, ...]:
    """Options before the script that the launcher doesn't have."""
    launch = launch_of(facts)
    return tuple(_unknown_options(launch)) if launch.launcher in COMMANDS else ()


def _unknown_options(launch: Launch) -> Iterator[Item]:
    table = option_table(launch.launcher)
    for option in launch.unknown_options:
        name = option.name.lstrip("-").replace("-", "_")
        if name in RETIRED and launch.launcher == "deepspeed":
            continue
        if launch.launcher != "deepspeed" and not _is_of_another(name, launch.launcher):
            continue
        near = near_name(option.name, [spelling for spelling in table.names if spelling.startswith("--")])
        meant = COUNTS.get(name, {}).get(launch.launcher)
        yield _item(
            launch,
            option.span,
            option=option.name,
            command=COMMANDS[launch.launcher],
            advice=_advice(launch, name, advice(near)),
            meant=meant or (near.key if near is not None else None),
            is_sure=_is_sure(launch, name, near),
            name_span=name_place(launch, option.span, option.name),
        )


def retired_options(facts: Facts) -> tuple[Item, ...]:
    """Options of DeepSpeed's launcher that went with elastic training."""
    launch = launch_of(facts)
    if launch.launcher != "deepspeed":
        return ()
    found = [option for option in launch.unknown_options if option.name.removeprefix("--") in RETIRED]
    places = [_retired_place(launch, option) for option in found]
    ordered = dict(zip_longest(("first", "second", "third"), places[: len(RETIRED)]))
    return tuple(_item(launch, option.span, option=option.name, **ordered) for option in found)


def _retired_place(launch: Launch, option: UnknownOption) -> Span | Unknown:
    """An option of elastic training with its value, which all but the switch have."""
    takes_value = option.name != "--elastic_training"
    written = launch.source.data[option.span.start : option.span.end]
    has_value = option.whole != option.span or b"=" in written
    return whole_place(launch, option) if takes_value is has_value else UNDECIDABLE


def _is_of_another(name: str, launcher: str) -> bool:
    """Whether another launcher has an option of this name; the newer options of one's own are not all known."""
    others = (option_table(other).names.values() for other in COMMANDS if other != launcher)
    return name in (*COUNTS, "deepspeed", "deepspeed_config") or any(name in names for names in others)


COUNTS = {
    "num_gpus": {"torchrun": "--nproc_per_node", "accelerate": "--num_processes"},
    "num_nodes": {"torchrun": "--nnodes", "accelerate": "--num_machines"},
    "nproc_per_node": {"deepspeed": "--num_gpus", "accelerate": "--num_processes"},
    "nnodes": {"deepspeed": "--num_nodes", "accelerate": "--num_machines"},
    "num_processes": {"deepspeed": "--num_gpus", "torchrun": "--nproc_per_node"},
    "num_machines": {"deepspeed": "--num_nodes", "torchrun": "--nnodes"},
}
"""By the name of an option, what the other launchers call the same."""


PER_NODE = ("num_gpus", "nproc_per_node")
"""Options that count the ranks of one node; Accelerate's num_processes counts those of all."""


def _is_sure(launch: Launch, name: str, near: Near | None) -> bool:
    """Whether nothing but the option's name has to change."""
    if launch.launcher in COUNTS.get(name, {}):
        return name in PER_NODE and launch.launcher != "accelerate"
    return near is not None and near.is_slip


def _advice(launch: Launch, name: str, near: str) -> str:
    """The end of the message: what is meant, as far as that can be told."""
    meant = COUNTS.get(name, {}).get(launch.launcher)
    if meant:
        return f"; here it is `{meant}`"
    if near:
        return near
    script = (
        launch.script.text if launch.script is not None and isinstance(launch.script.text, str) else "the script"
    )
    return f"; an argument for the script belongs behind {script}"


@dataclass(frozen=True)
class _Values:
    """What an option takes: a whole number, or one of some words."""

    words: tuple[str, ...] = ()
    is_number: bool = False


_WHOLE = _Values(is_number=True)
VALUES: Mapping[str, Mapping[str, _Values]] = {
    "deepspeed": {
        **dict.fromkeys(("num_gpus", "num_nodes", "master_port", "node_rank", "ssh_port"), _WHOLE),
        "autotuning": _Values(("tune", "run")),
        "log_level": _Values(("debug", "info", "warning", "error", "critical")),
    },
    "torchrun": dict.fromkeys(("node_rank", "master_port", "max_restarts"), _WHOLE),
    "accelerate": {
        **dict.fromkeys(
            ("num_processes", "num_machines", "machine_rank", "main_process_port", "zero_stage"), _WHOLE
        ),
        "mixed_precision": _Values(("no", "fp16", "bf16", "fp8")),
    },
}
"""By launcher and option, the values that its parser takes, as far as they matter."""


def bad_values(facts: Facts) -> tuple[Item, ...]:
    """Values of the launcher's options that its parser refuses."""
    launch = launch_of(facts)
    return tuple(
        _item(
            launch,
            option.span,
            option=f"--{name}",
            value=option.value,
            wants=_wants(values),
            command=COMMANDS[launch.launcher],
            meant=_meant(name, str(option.value)),
            whole=option_place(launch, option),
            value_span=value_place(launch, option),
        )
        for name, values in VALUES.get(launch.launcher, {}).items()
        if (option := launch.options.get(name)) is not None and _is_refused(option, values)
    )


ALL = ("all", "auto", "gpu", "max")
"""Words for all GPUs, which DeepSpeed's launcher takes anyhow."""

OTHER_WORDS = {
    "mixed_precision": {
        **{"float16": "fp16", "half": "fp16", "bfloat16": "bf16", "float8": "fp8"},
        **{"none": "no", "off": "no", "false": "no", "fp32": "no", "float32": "no"},
    },
    "log_level": {"warn": "warning", "fatal": "critical"},
}
"""By option, other words for what its parser calls otherwise."""


def _meant(name: str, value: str) -> str | None:
    """The allowed word that a value stands for; "all" where it means all GPUs."""
    if name == "num_gpus":
        return "all" if value.lower() in ALL else None
    words = {word for values in VALUES.values() for word in values.get(name, _WHOLE).words}
    return value.lower() if value.lower() in words else OTHER_WORDS.get(name, {}).get(value.lower())


def _is_refused(option: Option, values: _Values) -> bool:
    if not isinstance(option.value, str):
        return False
    if not values.is_number:
        return option.value not in values.words
    try:
        int(option.value)
    except ValueError:
        return True
    return False


def _wants(values: _Values) -> str:
    return "a whole number" if values.is_number else "one of " + ", ".join(values.words)


def conflicts(facts: Facts) -> tuple[Item, ...]:
    """Options that exclude one another: `kind` "counts", "filters", "module", "node rank" or "accelerate"."""
    return tuple(_conflicts(launch_of(facts)))


def _conflicts(launch: Launch) -> Iterator[Item]:
    options = launch.options
    if launch.launcher == "deepspeed":
        filters = [name for name in ("include", "exclude") if _is_given(options, name)]
        if len(filters) == 2:
            agrees = _are_apart(options["include"], options["exclude"])
            yield _pair(launch, "filters", "include", "exclude", agrees=agrees)
        counts = [name for name in ("num_gpus", "num_nodes") if _is_count(options.get(name))]
        for name in counts if filters else ():
            agrees = filters == ["include"] and _counts_the_same(options[name], name, options["include"])
            yield _pair(launch, "counts", name, filters[0], agrees=agrees)
        if "no_ssh" in options and "node_rank" not in options and not launch.options_incomplete:
            yield _item(launch, options["no_ssh"].span, kind="node rank", one="--no_ssh", other="--node_rank")
    if launch.launcher in COMMANDS and "module" in options and "no_python" in options:
        yield _pair(launch, "module", "no_python", "module")
    if launch.launcher == "accelerate":
        chosen = [name for name in ("use_deepspeed", "multi_gpu", "cpu", "tpu", "use_fsdp") if name in options]
        for name in chosen[1:]:
            yield _pair(launch, "accelerate", name, chosen[0], agrees=name == "multi_gpu")


def _is_given(options: Mapping[str, Option], name: str) -> bool:
    return name in options and isinstance(options[name].value, str) and options[name].value != ""


def _is_count(option: Option | None) -> bool:
    """Whether a count is given that excludes filters, 0 included."""
    try:
        return option is not None and isinstance(option.value, str) and int(option.value) >= 0
    except ValueError:
        return False


def _are_apart(include: Option, exclude: Option) -> bool:
    """Whether --exclude leaves out nothing that --include takes."""
    try:
        taken, left_out = read_filter(str(include.value)), read_filter(str(exclude.value))
    except FilterError:
        return False
    return all(host not in taken or _are_other(slots, taken[host]) for host, slots in left_out.items())


def _are_other(slots: tuple[int, ...], taken: tuple[int, ...]) -> bool:
    """Whether two choices of a host's slots, none of which means all of them, have none in common."""
    return bool(slots) and bool(taken) and not set(slots) & set(taken)


def _counts_the_same(count: Option, name: str, include: Option) -> bool:
    """Whether a count is that of what --include names."""
    try:
        chosen = read_filter(str(include.value))
    except FilterError:
        return False
    numbers = {len(slots) for slots in chosen.values()} if name == "num_gpus" else {len(chosen)}
    return numbers == {int(str(count.value))}


def _pair(launch: Launch, kind: str, one: str, other: str, agrees: bool = False) -> Item:
    """Two options; `agrees` says that the first asks for nothing that the other doesn't."""
    fields = {
        "kind": kind,
        "one": f"--{one}",
        "other": f"--{other}",
        "agrees": agrees,
        "one_span": option_place(launch, launch.options[one]),
        "other_span": option_place(launch, launch.options[other]),
    }
    related = ((launch.options[other].span, "beside this"),)
    return Item(fields, launch.source, launch.options[one].span, related)


BACKENDS = ("pdsh", "openmpi", "mpich", "impi", "slurm", "mvapich")
"""What DeepSpeed's launcher starts other nodes with (deepspeed/launcher/constants.py)."""


def unknown_backends(facts: Facts) -> tuple[Item, ...]:
    """A --launcher that DeepSpeed doesn't have, for several nodes (one item or none)."""
    launch = launch_of(facts)
    option = launch.options.get("launcher")
    if launch.launcher != "deepspeed" or option is None or not isinstance(option.value, str):
        return ()
    if option.value.lower() in BACKENDS or "no_ssh" in launch.options or not _is_on_many_nodes(facts, launch):
        return ()
    fields = {"value_span": value_place(launch, option), "whole": option_place(launch, option)}
    return (_item(launch, option.span, name=option.value, **fields),)


def _is_on_many_nodes(facts: Facts, launch: Launch) -> bool:
    count = nodes(facts)
    return (
        "hostfile" in facts.run.named and isinstance(count, int) and (count > 1 or "force_multi" in launch.options)
    )


def _item(launch: Launch, span: Span, **fields: object) -> Item:
    return Item(fields, launch.source, span)

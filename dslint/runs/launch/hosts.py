"""Hosts and slots that DeepSpeed's launcher doesn't find: in filters, and in the hostfile."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from dslint.documents.source import Span
from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.launch.facts import launch_of
from dslint.runs.launch.hostfile import read_hostfile
from dslint.runs.launch.launch import Launch, Option
from dslint.runs.launch.node_filter import FilterError, Slots, mended, read_filter, selected
from dslint.runs.launch.places import value_place
from dslint.runs.launch.world import number, slots_in
from dslint.runs.unknown import UNDECIDABLE, Unknown


def filter_problems(facts: Facts) -> tuple[Item, ...]:
    """Why the launcher refuses --include or --exclude: `kind` "syntax", "host" or "slot"."""
    launch = launch_of(facts)
    if launch.launcher != "deepspeed":
        return ()
    options = [
        (name, launch.options[name]) for name in ("include", "exclude") if is_given(launch.options.get(name))
    ]
    return tuple(found for name, option in options for found in _problems(facts, launch, name, option))


def is_given(option: Option | None) -> bool:
    """Whether an option has a text that is known and not empty."""
    return option is not None and isinstance(option.value, str) and option.value != ""


def _problems(facts: Facts, launch: Launch, name: str, option: Option) -> Iterator[Item]:
    error = _refusal(facts, name, str(option.value))
    if error is not None:
        new = mended(str(option.value))
        fields = {
            "option": f"--{name}",
            "value": option.value,
            "kind": error.kind,
            "why": str(error),
            "meant": new if new is not None and _refusal(facts, name, new) is None else None,
            "value_span": value_place(launch, option),
        }
        yield _item(launch, option.span, fields)


def _refusal(facts: Facts, name: str, text: str) -> FilterError | None:
    """Why the launcher refuses a filter."""
    try:
        read_filter(text)
        pool = known_slots(facts)
        if pool is not None:
            selected(pool, **{"include": "", "exclude": "", name: text})
    except FilterError as error:
        return error
    return None


def whole_hosts(facts: Facts) -> tuple[Item, ...]:
    """Hosts that --include names without slots (one item or none)."""
    launch = launch_of(facts)
    option = launch.options.get("include") if launch.launcher == "deepspeed" else None
    try:
        chosen = read_filter(str(option.value)) if option is not None and is_given(option) else {}
    except FilterError:
        return ()
    bare = [host for host, slots in chosen.items() if not slots]
    if option is None or not bare:
        return ()
    fields = {
        "hosts": bare,
        "are_all": len(bare) == len(chosen),
        "meant": _with_all_slots(chosen, known_slots(facts) or {}),
        "value_span": value_place(launch, option),
    }
    return (_item(launch, option.span, fields),)


def _with_all_slots(chosen: Slots, pool: Mapping[str, int]) -> str | Unknown:
    """A filter in which each host has its slots; Unknown where the hostfile doesn't tell them."""
    if not all(slots or 0 < pool.get(host, 0) <= MOST_SLOTS for host, slots in chosen.items()):
        return UNDECIDABLE
    parts = [f"{host}:{','.join(map(str, slots or range(pool[host])))}" for host, slots in chosen.items()]
    return "@".join(parts)


MOST_SLOTS = 64
"""Slots of a host that are written out."""


def known_slots(facts: Facts) -> Mapping[str, int] | None:
    """The number of slots of each host, where a hostfile or --gpus tells it."""
    launch = launch_of(facts)
    if "hostfile" in launch.options:
        return slots_in(facts.run.named.get("hostfile"))
    count = facts.run.options.gpus
    return None if count is None or launch.options_incomplete or _another_host(launch) else {"localhost": count}


def _another_host(launch: Launch) -> str | None:
    """A host other than this machine in a filter."""
    for name in ("include", "exclude"):
        option = launch.options.get(name)
        try:
            chosen = read_filter(str(option.value)) if option is not None and is_given(option) else {}
        except FilterError:
            continue
        others = [host for host in chosen if host != "localhost"]
        if others:
            return others[0]
    return None


def needs_hostfile(facts: Facts) -> tuple[Item, ...]:
    """What needs a hostfile, where none is named: --num_nodes above 1, or another host (one item or none)."""
    launch = launch_of(facts)
    if launch.launcher != "deepspeed" or launch.options_incomplete or "hostfile" in launch.options:
        return ()
    count = number(launch.options.get("num_nodes"))
    if isinstance(count, int) and count > 1:
        return (_item(launch, launch.options["num_nodes"].span, {"wants": f"{count} nodes"}),)
    host = _another_host(launch)
    if host is None:
        return ()
    option = launch.options.get("include") or launch.options["exclude"]
    return (_item(launch, option.span, {"wants": f"the host {host}"}),)


def hostfile_problems(facts: Facts) -> tuple[Item, ...]:
    """Why the launcher refuses the hostfile (one item or none)."""
    launch, source = launch_of(facts), facts.run.named.get("hostfile")
    problem = None if source is None else read_hostfile(source).problem
    if source is None or problem is None or launch.launcher != "deepspeed":
        return ()
    option = launch.options["hostfile"]
    if problem.kind == "empty":
        return (
            _item(
                launch, option.span, {"kind": problem.kind, "line": "", "why": "no host stands in the hostfile"}
            ),
        )
    place = ((launch.source, option.span, "the hostfile of this command"),)
    line = source.slice(problem.span)
    fields = {"kind": problem.kind, "line": line, "why": f"`{line.split()[0]}` stands in the hostfile twice"}
    return (Item(fields, source, problem.span, elsewhere=place),)


def missing_hostfile(facts: Facts) -> tuple[Item, ...]:
    """A hostfile that is named, and isn't where the script is (one item or none)."""
    launch = launch_of(facts)
    option = launch.options.get("hostfile") if launch.launcher == "deepspeed" else None
    if option is None or not is_given(option) or option.value == "/dev/null" or "hostfile" in facts.run.named:
        return ()
    path = str(option.value)
    is_made_here = launch.source.data.count(os.path.basename(path).encode()) > 1
    if os.path.isabs(path) or facts.run.script is None or launch.environment_unknown or is_made_here:
        return ()
    return (_item(launch, option.span, {"path": path}),)


def slurm_filters(facts: Facts) -> tuple[Item, ...]:
    """Chosen slots, or different numbers of them, under --launcher slurm (one item or none)."""
    launch = launch_of(facts)
    backend = launch.options.get("launcher")
    if launch.launcher != "deepspeed" or backend is None or str(backend.value).lower() != "slurm":
        return ()
    pool = _chosen(facts, launch)
    for host, slots in pool.items():
        if slots != tuple(range(len(slots))):
            why = f"slots {', '.join(map(str, slots))} of {host} are chosen"
            return (_item(launch, _span(launch), {"why": why, **_first_slots(launch, pool)}),)
    counts = {host: len(slots) for host, slots in pool.items()}
    if len(set(counts.values())) < 2:
        return ()
    why = "there are " + ", ".join(f"{count} slots on {host}" for host, count in list(counts.items())[:3])
    return (_item(launch, _span(launch), {"why": why, "meant": None, "value_span": UNDECIDABLE}),)


def _first_slots(launch: Launch, pool: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """An --include of as many slots of each host, the first ones, where all hosts give the same number."""
    include = launch.options.get("include")
    if include is None or len({len(slots) for slots in pool.values()}) != 1:
        return {"meant": None, "value_span": UNDECIDABLE}
    parts = [f"{host}:{','.join(map(str, range(len(slots))))}" for host, slots in pool.items()]
    return {"meant": "@".join(parts), "value_span": value_place(launch, include)}


def _chosen(facts: Facts, launch: Launch) -> dict[str, tuple[int, ...]]:
    """The slots that are surely asked for, by host."""
    include, exclude = (launch.options.get(name) for name in ("include", "exclude"))
    if not is_absent_count(launch) or (include is not None and exclude is not None):
        return {}
    texts = ["" if option is None else option.value for option in (include, exclude)]
    if not all(isinstance(text, str) for text in texts):
        return {}
    slots = known_slots(facts)
    try:
        found: Slots = read_filter(str(texts[0])) if texts[0] else {}
        found = found if slots is None else selected(slots, str(texts[0]), str(texts[1]))
    except FilterError:
        return {}
    return {host: numbers for host, numbers in found.items() if numbers}


def is_absent_count(launch: Launch) -> bool:
    """Whether neither --num_gpus nor --num_nodes changes what the filters leave."""
    return not launch.options_incomplete and not {"num_gpus", "num_nodes"} & set(launch.options)


def _span(launch: Launch) -> Span:
    names = ("include", "exclude", "hostfile", "launcher")
    return next(launch.options[name].span for name in names if name in launch.options)


def _item(launch: Launch, span: Span, fields: dict[str, Any]) -> Item:
    return Item(fields, launch.source, span)

"""The local rank: as an argument that a launcher adds, or as a variable that it sets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from dslint.documents.source import Span
from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.launch.facts import gpus, launch_of
from dslint.runs.launch.launch import Launch
from dslint.runs.script.arguments import HfParser, Parser
from dslint.runs.script.events import Call
from dslint.runs.script.facts.command_line import knows, strict_parses
from dslint.runs.script.facts.here import Here, is_path
from dslint.runs.script.items import item, item_at
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Thing, Value
from dslint.runs.unknown import UNDECIDABLE, Unknown


def added_argument(launch: Launch) -> str | None:
    """The argument that the launcher surely puts before the script's own; None where it may add none."""
    if launch.options_incomplete or "no_python" in launch.options:
        return None
    if launch.launcher == "deepspeed":
        backend = launch.options.get("launcher")
        is_usual = backend is None or backend.value == "pdsh" or "no_ssh" in launch.options
        return "--local_rank" if is_usual and "no_local_rank" not in launch.options else None
    if launch.launcher == "torch.distributed.launch" and "use_env" not in launch.options:
        return "--local-rank"
    return None


def refused(facts: Facts) -> tuple[Item, ...]:
    """Where the script's parser refuses the local rank that the launcher adds (one item for each parser)."""
    launch, deeds = launch_of(facts), facts.run.script
    flag = added_argument(launch)
    if deeds is None or flag is None:
        return ()
    return tuple(
        _refused(launch, deeds, call, flag) for call in strict_parses(deeds) if not knows(call.receiver, flag)
    )


def _refused(launch: Launch, deeds: Deeds, call: Call, flag: str) -> Item:
    other = "--local_rank" if flag == "--local-rank" else "--local-rank"
    fields = {
        "flag": flag,
        "is_dataclass": isinstance(call.receiver, HfParser),
        "knows_other": knows(call.receiver, other),
        "launcher": launch.launcher,
        **_declarations(deeds, call),
    }
    found = item(deeds.script, call, fields, ())
    place = (launch.source, launch.launcher_span, "this launcher adds it")
    return Item(found.fields, found.source, found.span, found.related, (*found.elsewhere, place))


def _declarations(deeds: Deeds, call: Call) -> dict[str, Any]:
    """What a fix needs: the parser's name, and where the other spelling is declared (`both` with this one)."""
    here, func = Here(deeds, call.node), call.node.func
    is_named = isinstance(call.receiver, Parser) and isinstance(func, ast.Attribute) and is_path(func.value)
    name = here.code(func.value) if is_named and isinstance(func, ast.Attribute) else UNDECIDABLE
    declared = _declared(call.receiver) if isinstance(call.receiver, Parser) else None
    both = UNDECIDABLE if declared is None else _with_both(here.code(declared))
    return {"parser": name, "declaration": here.span(declared), "both": both}


def _declared(parser: Parser) -> ast.AST | None:
    """Where a parser declares --local_rank."""
    found = [option.node for option in parser.options if "--local_rank" in option.flags]
    return found[0] if len(found) == 1 else None


def _with_both(text: str) -> str | Unknown:
    """A declaration of --local_rank with both spellings."""
    written = re.findall(r"""["']--local_rank["']""", text)
    if len(written) != 1 or "\n" in text:
        return UNDECIDABLE
    hyphen = written[0].replace("_", "-")
    return text.replace(written[0], f"{hyphen}, {written[0]}")


def mismatches(facts: Facts) -> tuple[Item, ...]:
    """deepspeed.initialize with args whose local_rank is one and the same number on all ranks of a node."""
    return tuple(_mismatches(facts)) if _has_several_ranks_without_argument(facts) else ()


def _has_several_ranks_without_argument(facts: Facts) -> bool:
    launch, count = launch_of(facts), gpus(facts)
    sets_variable_only = launch.launcher in ("torchrun", "accelerate") or "no_local_rank" in launch.options
    return sets_variable_only and isinstance(count, int) and count > 1


def _mismatches(facts: Facts) -> Iterator[Item]:
    deeds = facts.run.script
    for call in deeds.calls if deeds is not None else ():
        if deeds is None or call.name != "deepspeed.initialize":
            continue
        args = call.argument(0, "args")
        rank: Value = args.attributes.get("local_rank") if isinstance(args, Thing) else None
        if _is_number(rank) and rank >= 0 and not call.spot.guards:
            place = {"default": _default_of_local_rank(deeds, call, rank)}
            yield _item(facts, deeds, call, _node(call, 0, "args"), rank, place)


def _default_of_local_rank(deeds: Deeds, call: Call, rank: int) -> Span | Unknown:
    """The default that the file's one declaration of --local_rank has."""
    parsers = {id(one.receiver): one.receiver for one in deeds.calls if isinstance(one.receiver, Parser)}
    nodes = [
        option.node
        for parser in parsers.values()
        for option in parser.options
        if option.destination == "local_rank"
    ]
    keywords = nodes[0].keywords if len(nodes) == 1 and isinstance(nodes[0], ast.Call) else []
    values = [one.value for one in keywords if one.arg == "default"]
    is_it = len(values) == 1 and isinstance(values[0], ast.Constant) and values[0].value == rank
    return Here(deeds, call.node).span(values[0]) if is_it else UNDECIDABLE


def shared_devices(facts: Facts) -> tuple[Item, ...]:
    """Where a script takes `args.local_rank` for its device, and all ranks of a node get the same number."""
    deeds = facts.run.script
    if deeds is None or not _has_several_ranks_without_argument(facts):
        return ()
    return tuple(
        _item(facts, deeds, call, call.node.args[0], call.positional[0], _code_of_device(deeds, call))
        for call in deeds.calls
        if call.dotted.rpartition(".")[2] == "set_device" and _is_constant_local_rank(call)
    )


def _code_of_device(deeds: Deeds, call: Call) -> dict[str, Any]:
    here = Here(deeds, call.node)
    return {"os": here.module("os"), "code": here.code(call.node.args[0])}


def _is_constant_local_rank(call: Call) -> bool:
    if len(call.positional) != 1 or len(call.node.args) != 1 or call.spot.guards:
        return False
    node, value = call.node.args[0], call.positional[0]
    is_of_args = isinstance(node, ast.Attribute) and node.attr == "local_rank"
    return is_of_args and _is_number(value) and value >= 0


def _is_number(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _item(facts: Facts, deeds: Deeds, call: Call, node: ast.AST, rank: int, fields: Mapping[str, Any]) -> Item:
    launch = launch_of(facts)
    found = item_at(deeds.script, call, node, {"rank": rank, "launcher": launch.launcher, **fields})
    place = (launch.source, launch.launcher_span, "this launcher tells the local rank in LOCAL_RANK only")
    return Item(found.fields, found.source, found.span, found.related, (*found.elsewhere, place))


def _node(call: Call, position: int, name: str) -> ast.AST:
    from dslint.runs.script.config_use import node_of

    return node_of(call, position, name)

"""Whether DeepSpeed's process group is there when a script comes to a place."""

from __future__ import annotations

import builtins
import sys

from dslint.runs.script.events import Call
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Thing, origins

_HARMLESS = sys.stdlib_module_names | {"torch", "numpy", "torchvision", "tokenizers", "tqdm"} | set(dir(builtins))
"""Packages whose functions don't start DeepSpeed's process group."""


def is_surely_down(deeds: Deeds, call: Call) -> bool:
    """Whether nothing before a call can have started the process group.

    torch.distributed.init_process_group alone doesn't start deepspeed.comm (deepspeed/comm/comm.py).
    """
    if not call.spot.is_called or not deeds.is_complete:
        return False
    before = (one for one in deeds.calls if one.spot.is_called and one.spot.order < call.spot.order)
    return not any(map(is_foreign, before))


def is_foreign(call: Call) -> bool:
    """Whether a call runs code that may do anything: of other files, of other packages."""
    if call.receiver is not None:
        return any(map(_is_foreign, origins(call.receiver)))
    return _is_foreign_name(call.dotted)


def _is_foreign(thing: Thing) -> bool:
    if thing.kind in ("parameter", "exception", "unread"):
        return True
    made = thing.call
    return made is not None and made.receiver is None and _is_foreign_name(made.dotted)


def _is_foreign_name(name: str) -> bool:
    top = name.partition(".")[0]
    if top == "deepspeed":
        return "init" in name.rpartition(".")[2] and not name.endswith(".Init")
    return top not in _HARMLESS

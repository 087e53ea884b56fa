"""Whether what lies on the disk now is still what a script finds there, when it comes to load it."""

from __future__ import annotations

import os
import re

from dslint.runs.files import Place
from dslint.runs.launch.launch import Launch
from dslint.runs.script.events import Call, Guard
from dslint.runs.script.reading import Deeds
from dslint.runs.script.values import Thing, Value

PREPARES = re.compile(
    rb"\b(python3?|rm|mv|cp|rsync|scp|ln|tar|unzip|wget|curl|aws|gsutil|azcopy|rclone|git|hf|huggingface-cli"
    rb"|deepspeed|torchrun|accelerate|srun|mpirun|mpiexec|docker|bash|sh)\b[ \t]"
)
"""Commands of a shell script that may bring, change or take a checkpoint before the training begins."""

EXISTS = frozenset(["os.path.exists", "os.path.isdir", "os.path.isfile", "exists", "is_dir", "is_file"])
"""Calls that ask whether something is on the disk."""

SAVES = frozenset(["save_checkpoint", "save_state"])
"""Methods that write a checkpoint into the folder that they are given first."""

CHANGES = frozenset(["extractall", "rename", "unlink", "rmdir", "symlink_to", "snapshot_download"])
"""Further methods and functions after which a folder may hold something else."""

MODULES = frozenset(["engine", "model", "compiled_model", "lightning_module", "parallel_model"])
"""Kinds of things whose `train()` only switches a mode."""

CHANGING = (
    *("shutil.", "subprocess.", "os.system", "os.popen", "os.rename", "os.replace", "os.remove", "os.unlink"),
    *("os.symlink", "os.rmdir", "huggingface_hub.", "deepspeed.checkpoint.", "deepspeed.utils.zero_to_fp32."),
)
"""How the names of functions begin after which it may do so too."""

LOOKS = ("os.path.", "os.listdir", "os.makedirs", "os.mkdir", "os.scandir", "print", "pathlib.", "logging.", "len")
"""How the names of functions begin that are given a path and leave what lies there as it is."""


def is_prepared(launch: Launch | None) -> bool:
    """Whether the script runs in a container, or commands before it may change what it loads."""
    if launch is None:
        return False
    before = launch.source.data[: launch.span.start]
    lines = [line for line in before.split(b"\n") if not line.lstrip().startswith(b"#")]
    is_elsewhere = launch.is_in_text or launch.environment_unknown
    return is_elsewhere or PREPARES.search(b"\n".join(lines)) is not None


def is_changed_before(deeds: Deeds, load: Call, folder: str) -> bool:
    """Whether the script itself may change a folder before it loads what lies there."""
    return any(
        _may_change(call, folder)
        for call in deeds.calls
        if call is not load and call.spot.is_called and call.spot.order < load.spot.order
    )


def _may_change(call: Call, folder: str) -> bool:
    last = call.dotted.rpartition(".")[2]
    if last in SAVES:
        where = next(iter((*call.positional, *call.keywords.values())), None)
        return not isinstance(where, str) or _touches(where, folder)
    if last == "train":
        return not (isinstance(call.receiver, Thing) and call.receiver.kind in MODULES)
    if last in CHANGES or (call.receiver is None and call.dotted.startswith(CHANGING)):
        return True
    is_of_a_kind = isinstance(call.result, Thing) and call.result.kind != "result"
    if is_of_a_kind or call.dotted.startswith(LOOKS) or last in EXISTS or _is_parser(call.receiver):
        return call.dotted in ("open", "io.open") and _is_given(call, folder)
    return last not in ("load_checkpoint", "load_state") and _is_given(call, folder)


def _is_given(call: Call, folder: str) -> bool:
    """Whether a call is given the folder, one above it or something in it."""
    values = (call.receiver, *call.positional, *call.keywords.values())
    return any(isinstance(value, str) and _touches(value, folder) for value in values)


def _is_parser(value: Value) -> bool:
    return isinstance(value, Thing) and value.kind in ("parser", "hf_parser")


def _touches(path: str, folder: str) -> bool:
    one, other = (os.path.join(os.path.normpath(each), "") for each in (path, folder))
    return bool(path) and (one.startswith(other) or other.startswith(one))


def is_there(guard: Guard, place: Place) -> bool:
    """Whether a condition is surely met since it asks for files that are on the disk."""
    return _holds(guard.test, guard.holds, place)


def _holds(test: Value, holds: bool, place: Place) -> bool:
    if not isinstance(test, Thing):
        return False
    if test.kind == "not":
        return _holds(test.inputs[0], not holds, place)
    if test.kind == "logic" and test.name == "and" and holds:
        return all(_holds(part, True, place) for part in test.inputs)
    call = test.call
    if not holds or not isinstance(call, Call) or call.dotted not in EXISTS:
        return False
    path = call.argument(0, "path") if call.receiver is None else call.receiver
    return isinstance(path, str) and bool(path) and _is_on_disk(path, place)


def _is_on_disk(path: str, place: Place) -> bool:
    above = place.folder(os.path.dirname(path))
    names = place.names(above) if above is not None else None
    return place.folder(path) is not None or (names is not None and os.path.basename(path) in names)

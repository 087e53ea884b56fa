"""What a trial of a script needs before its ranks are forked: its files, its modules, a port."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from dslint.smoke.mirror import Mirror
from dslint.smoke.rank.launching import PRELOADED
from dslint.smoke.script_trial import ScriptTrial

TINY = Path(__file__).parent / "proofs" / "tiny.py"
"""The module that lies beside every script."""

IMPORTED_FOR = {
    "peft": ("peft",),
    "causal_lm": ("transformers.models.llama.modeling_llama",),
    "PipelineModule": ("deepspeed.runtime.pipe.engine",),
}
"""Modules that the server imports once a script has this word, which else each such script would pay for."""


class UnsafeNameError(ValueError):
    """A file of a trial would lie outside of its folder."""


def write_files(trial: ScriptTrial, folder: Path) -> None:
    """Write the trial's files; beside them the user's own, or else `tiny.py` unless it has its own.

    Raises:
        UnsafeNameError: for a name that is no relative path within the folder.
    """
    folder.mkdir(exist_ok=True)
    for name in (*trial.files, trial.where):
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise UnsafeNameError(name)
    if trial.beside:
        parents = {Path(name).parent for name in trial.files}
        inner = {Path(trial.where), *([Path(trial.script).parent] if trial.script else [])}
        Mirror(folder).fill(Path(trial.beside), inner, parents)
    own = {} if trial.beside else {"tiny.py": TINY.read_text("utf-8")}
    before = {} if trial.before is None else trial.before.files
    for name, text in {**own, **trial.files}.items():
        path = folder / name
        if trial.before is not None and name not in (*own, *before) and path.exists():
            continue  # what the run before has written
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(text.encode(errors="surrogateescape"))


def modules_for(trial: ScriptTrial) -> Iterator[str]:
    """What the trial, and those after it, shall find imported."""
    yield from PRELOADED
    for word, modules in IMPORTED_FOR.items():
        if any(word in text for text in trial.files.values()):
            yield from modules


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])

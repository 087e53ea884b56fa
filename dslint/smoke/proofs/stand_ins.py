"""Whether the files that an example names stand for those that the run before it really writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from dslint.smoke.script_outcome import Outcome
from dslint.smoke.script_trial import ScriptTrial

PARTS = ("_model_states.pt", "_optim_states.pt")
"""How the files of a checkpoint end whose names a reader goes by."""

NAMED = ("latest", "latest_universal")
"""Further files that it reads."""


def complaints(trial: ScriptTrial, outcome: Outcome) -> Iterator[str]:
    """Where the run before a trial fails, or writes files of other names than those that stand for them."""
    if trial.before is None:
        return
    before = outcome.before or {"failure": "nothing was heard of it", "files": []}
    if before["failure"]:
        yield f"what runs before fails: {before['failure']}"
        return
    written = set(before["files"])
    own = {*trial.before.files, *_own_files(trial)}
    missing = sorted(name for name in trial.files if name not in own and name not in written)
    if missing:
        yield f"what runs before doesn't write {', '.join(missing)}, but {', '.join(sorted(written))}"
    folders = {PurePosixPath(name).parent for name in trial.files if name not in own}
    beside = sorted(name for name in written - set(trial.files) if _is_told_by(name, folders))
    if beside:
        yield f"what runs before also writes {', '.join(beside)}"


def _own_files(trial: ScriptTrial) -> Iterator[str]:
    """The files of a trial that hold something: a script, a config, a command."""
    for name, text in trial.files.items():
        if text and PurePosixPath(name).name not in NAMED:
            yield name


def _is_told_by(name: str, folders: set[PurePosixPath]) -> bool:
    """Whether a reader of folders' names would see a file."""
    path = PurePosixPath(name)
    return path.parent in folders and (path.name in NAMED or path.name.endswith(PARTS))

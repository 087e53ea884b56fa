"""The folder in which a trial's script runs: what lies there, where modules are found, what has been written."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from dslint.smoke.rank.launchers.started import Started
from dslint.smoke.rank.write_protection import places_of_libraries, write_only_below
from dslint.smoke.rank.written_files import written_files
from dslint.smoke.script_trial import ScriptTrial

State = tuple[int, int]
"""When a file was changed last, and its size."""


class ScriptFolder:
    """The working folder when it is made, before anything of the script runs.

    Attributes:
        own_files: the names of the trial's files, by path.
    """

    def __init__(self, trial: ScriptTrial) -> None:
        self._trial = trial
        self._top = Path.cwd()
        self.own_files = {str(self._top / name): name for name in trial.files}
        self._known = [*trial.files, "tiny.py"]
        self._before = _states(self._top) if trial.beside or trial.before else {}

    def enter(self) -> None:
        """Go to where the command runs; where it is a mirror, nothing outside of it shall be written any more.

        What a mirror links is the user's, and so may be what a script names by its whole path.
        """
        if self._trial.beside:
            write_only_below([self._top.parent, *places_of_libraries()])
        os.chdir(self._top / self._trial.where)

    def search_modules(self, started: Started) -> None:
        """Find modules as in a direct run: beside the script, then where PYTHONPATH says."""
        if not self._trial.beside:
            sys.path.insert(0, str(self._top))
            return
        more = [entry for entry in self._trial.environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
        script = Path.cwd() if started.is_module else Path(started.script).absolute().parent
        sys.path[:0] = [str(script), *(str(Path(entry).absolute()) for entry in more)]

    def written_files(self) -> list[dict[str, Any]]:
        """The files that have come, or have changed, since the beginning."""
        os.chdir(self._top)
        now = _states(self._top) if self._before else {}
        unchanged = [name for name, state in now.items() if self._before.get(name) == state]
        return written_files([*self._known, *unchanged])


def _states(folder: Path) -> dict[str, State]:
    """The state of each file below a folder, links to folders left aside."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            state = path.stat()
            found[path.relative_to(folder).as_posix()] = (state.st_mtime_ns, state.st_size)
    return found

"""A user's own script as one rank, as torchrun starts it: `intercept.py FOLDER STEPS -- SCRIPT ARGS…`.

It is started by its path and not by `-m`, so that neither PYTHONPATH nor anything else of the user's environment
has to change for it. It imports neither torch nor DeepSpeed, since the script may set variables for them first.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dslint.smoke.reporting import Reporter
    from dslint.smoke.script.interception import Interception


def main() -> int:
    """Run the script as the rank that the environment names; the exit code."""
    folder, steps, script, arguments = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[4], sys.argv[5:]
    search_as_for(script)
    from dslint.smoke.children import redirect_output, show_stack_on_signal
    from dslint.smoke.reporting import Reporter, output_file
    from dslint.smoke.script.interception import Interception

    rank = int(os.environ["RANK"])
    reporter = Reporter(folder, rank)
    reporter.tell(pid=os.getpid())
    redirect_output(output_file(folder, rank))
    show_stack_on_signal(folder, rank)
    interception = Interception(reporter, folder, steps)
    interception.begin()
    return run(script, arguments, reporter, interception)


def search_as_for(script: str) -> None:
    """Search modules as in a direct run of the script, and dslint's own after all others."""
    own = str(Path(__file__).resolve().parents[3])
    if not getattr(sys.flags, "safe_path", False):  # since Python 3.11; then no script's folder is searched
        sys.path[0] = str(Path(script).resolve().parent)
    if own not in sys.path:
        sys.path.append(own)


def run(script: str, arguments: list[str], reporter: Reporter, interception: Interception) -> int:
    """Run the script, report how it ended unless that is settled, and give the exit code."""
    error: BaseException | None = None
    try:
        execute(script, arguments)
    except BaseException as raised:  # SystemExit is an outcome too
        error = raised
    if interception.over is not None:  # what the script does once it has been told to end doesn't count
        return interception.over
    if error is not None and not _is_normal_end(error):
        traceback.print_exception(error)
        interception.fail(error)
        return 1
    interception.end_early(error)
    return 0


def execute(script: str, arguments: list[str]) -> None:
    """Execute a file like Python itself does: as the module `__main__`, which stays until the process ends.

    runpy.run_path takes that module away when the script's code has run, while its `atexit` functions, its threads
    and workers that it has yet to start still want it.
    """
    path = str(Path(script).absolute())
    module = ModuleType("__main__")
    module.__file__ = path
    module.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    sys.argv = [script, *arguments]
    sys.modules["__main__"] = module
    exec(compile(Path(path).read_bytes(), path, "exec", dont_inherit=True), vars(module))


def _is_normal_end(error: BaseException) -> bool:
    return isinstance(error, SystemExit) and error.code in (None, 0)


if __name__ == "__main__":
    sys.exit(main())

"""The fork server: imports torch and DeepSpeed once, then forks a child for each trial.

Runs as `python -m dslint.smoke.server`. It reads one trial a line from its input and answers with lines of JSON:
first `hello`, then for each trial any number of `progress` and one `heard`, with an entry for each rank.
"""

from __future__ import annotations

import functools
import gc
import importlib
import importlib.util
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dslint.smoke.children import ServerClosedError, adopt_orphans, run_forked_group
from dslint.smoke.listening import Heard, Progress
from dslint.smoke.rank import accelerate_config, hugging_face
from dslint.smoke.reporting import report_file
from dslint.smoke.script_place import free_port, modules_for, write_files
from dslint.smoke.script_trial import KIND, ScriptTrial
from dslint.smoke.trial import Trial

IMPORTED = (
    "torch",
    "torch._dynamo",
    "torch.utils.cpp_extension",
    "deepspeed",
    "deepspeed.runtime.zero.muon.original_muon",
    "hjson",
)
"""Modules that a trial would otherwise import itself, each time for seconds."""

Answer = Callable[..., None]


def main() -> None:
    """Serve until the input ends. Arguments: the folder for trials, then the ops to load at once."""
    folder, *ops = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever the libraries print stays out of the answers

    def answer(**values: Any) -> None:
        print(json.dumps(values), file=answers, flush=True)

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    adopt_orphans()
    if not _can_import(answer):
        return
    answer(hello=_ready(ops, answer))
    _serve(Path(folder), sys.stdin.fileno(), ops, answer)


def _can_import(answer: Answer) -> bool:
    missing = [name for name in ("torch", "deepspeed") if importlib.util.find_spec(name) is None]
    if missing:
        answer(missing=missing)
    return not missing


def _ready(ops: list[str], answer: Answer) -> dict[str, Any]:
    """Import everything a trial needs, without starting CUDA: a child can't use it after that."""
    from dslint.smoke.ops import use_own_folder

    use_own_folder()
    for name in IMPORTED:
        if name in ("torch", "deepspeed"):
            answer(progress={"importing": name})
        _import_if_there(name)
    for name in (*hugging_face.PRELOADED, *accelerate_config.PRELOADED):
        _import_if_there(name)
    importlib.import_module("dslint.smoke.rank.training")
    import torch

    gc.collect()
    gc.freeze()  # what a trial collects is its own; going through all of torch each time would cost 0.3 s
    cuda = torch.cuda.is_available()
    if cuda:
        _name_architecture()
    return {
        "device": "cuda" if cuda else "cpu",
        "count": torch.cuda.device_count() if cuda else 0,
        "transformers": importlib.util.find_spec("transformers") is not None,
        "deepspeed": version("deepspeed"),
        "ops": [name for name in ops if _load(name, answer)],
        "cuda_started": torch.cuda.is_initialized(),
    }


def _import_if_there(name: str) -> None:
    """Import a module that other releases, or other environments, may lack."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise


def _name_architecture() -> None:
    """Say for which GPU ops are built; DeepSpeed would start CUDA to find out (CUDAOpBuilder)."""
    if "TORCH_CUDA_ARCH_LIST" in os.environ:
        return
    command = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    found = sorted({line.strip() for line in told.stdout.splitlines() if line.strip()})
    if found:
        os.environ["TORCH_CUDA_ARCH_LIST"] = ";".join(found)


def _load(op: str, answer: Answer) -> bool:
    """Load an op before any fork, building it if need be; False if it doesn't work here."""
    from deepspeed.accelerator import get_accelerator

    from dslint.smoke.ops import building, is_built, lock_of

    try:
        builder = get_accelerator().create_op_builder(f"{op}Builder")
        answer(progress={"building": builder.name, "built_before": is_built(builder.name)})
        answer(progress={"own_lock": str(lock_of(builder.name) or "")})
        with building(builder.name):
            builder.load()
    except Exception as error:  # no compiler, or an op that this release or device does not have
        print(f"{op}: {error}", file=sys.stderr)
        return False
    finally:
        answer(progress={"built": op, "own_lock": ""})
    return True


class _Input:
    """Lines of the input, and whether it is still open while nobody reads it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._text = b""
        self.open = True

    def line(self) -> bytes | None:
        """The next line; None at the end."""
        while b"\n" not in self._text and self.open:
            self._read()
        line, found, self._text = self._text.partition(b"\n")
        return line if found else None

    def still_open(self) -> bool:
        """Whether somebody may still want an answer."""
        if select.select([self._descriptor], [], [], 0)[0]:
            self._read()
        return self.open

    def _read(self) -> None:
        chunk = os.read(self._descriptor, 1 << 16)
        self._text += chunk
        self.open = bool(chunk)


def _serve(folder: Path, descriptor: int, ops: list[str], answer: Answer) -> None:
    """Try one trial after the other; `ops` are loaded already."""
    requests = _Input(descriptor)
    loaded = set(ops)
    wanted: set[str] = set()
    while (line := requests.line()) is not None:
        for op in wanted - loaded:  # one trial had to load it; from now on none has to
            loaded.add(op)
            _load(op, answer)
        data = json.loads(line)
        place = Path(tempfile.mkdtemp(dir=folder))
        try:
            ranks = (_try_script if data.get("kind") == KIND else _try_config)(data, place, requests, answer)
        except ServerClosedError:
            return
        finally:
            shutil.rmtree(place, ignore_errors=True)
        wanted |= {op for heard in ranks for op in heard.seen.get("loaded_ops", ())}
        answer(heard=[heard.as_data() for heard in ranks])


def _try_config(data: Mapping[str, Any], place: Path, requests: _Input, answer: Answer) -> list[Heard]:
    """Try a config, in a child for each rank that is really there."""
    from dslint.smoke.rank.training import simulate, train_as_one_of

    trial = Trial.from_data(data)
    port = free_port()
    works = (
        [functools.partial(train_as_one_of, trial, rank, port) for rank in range(trial.ranks)]
        if trial.real
        else [functools.partial(simulate, trial)]
    )
    told = _kept_informed(requests, answer)
    return run_forked_group(works, place, trial.timeout, *told, alone=True, silence=trial.silence)


def _try_script(data: Mapping[str, Any], place: Path, requests: _Input, answer: Answer) -> list[Heard]:
    """Run a script, in a child for each rank that is really there."""
    trial = ScriptTrial.from_data(data)
    count = len(sys.modules)
    for name in modules_for(trial):
        _import_if_there(name)
    from dslint.smoke.rank.script_run import run_script

    if len(sys.modules) > count:
        gc.collect()
        gc.freeze()  # as in _ready

    before = None if trial.before is None else _run_before(trial.before, place, requests, answer)
    write_files(trial, place / "work")
    port = free_port()
    works = [
        functools.partial(run_script, trial, rank, port, report_file(place, rank))
        for rank in range(trial.ranks if trial.real else 1)
    ]
    told = _kept_informed(requests, answer)
    ranks = run_forked_group(works, place, trial.timeout, *told, alone=True, silence=trial.silence)
    if before is not None:
        ranks[0].seen["before"] = before
    return ranks


def _run_before(trial: ScriptTrial, place: Path, requests: _Input, answer: Answer) -> dict[str, Any]:
    """Run what comes before a trial, and leave its folder to that one; the files it wrote, and how it failed."""
    from dslint.smoke.script_outcome import outcome

    earlier = place / "before"
    earlier.mkdir()
    came = outcome(_try_script(trial.as_data(), earlier, requests, answer))
    (earlier / "work").rename(place / "work")
    return {
        "failure": "" if came.ended else f"{came.exception} in {came.phase}: {came.message}",
        "files": sorted(came.files),
    }


def _kept_informed(requests: _Input, answer: Answer) -> tuple[Progress, Callable[[], bool]]:
    """Who hears of the progress, and whether somebody still waits for the result."""
    return lambda line: answer(progress=line), requests.still_open


if __name__ == "__main__":
    main()

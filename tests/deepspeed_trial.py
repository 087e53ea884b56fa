"""What real DeepSpeed does with a config, in a fraction of a second, on one CPU, for any number of ranks.

A server process imports torch and DeepSpeed once and forks a child for each trial. The child is rank 0 of
a fake process group, reads the config as DeepSpeed or as Hugging Face would, initializes an engine, takes two
optimizer steps and saves. Whatever happens to the child, the server answers with one JSON line.

As a program: `python tests/deepspeed_trial.py FILE.json... --ranks 8 [--loader hf|deepspeed]`.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import fcntl
import functools
import hashlib
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

STAGES = ("read", "hf", "parse", "initialize", "step", "save", "done")
DIED, TIMEOUT = "Died", "Timeout"  # stand in for an exception class when the child ended without one
HIDDEN = 320  # 320 x 320 weights lie above stage3_param_persistence_threshold, so ZeRO-3 really splits them
STEPS = 2
TRAINING_STEPS = 100  # what Hugging Face would put for "auto" total_num_steps
OPS = ("ShareMemComm", "CPUAdam", "FusedAdam", "CPULion", "CPUAdagrad", "PinMemory")
PRELOADED = ("torch", "deepspeed", "torch._dynamo", "deepspeed.runtime.zero.muon.original_muon")

Config = dict[str, Any]
Report = Callable[..., None]


@dataclass(frozen=True)
class Trial:
    """What one trial came to; `stage` is the one that failed, or "done"."""

    stage: str
    exception: str | None = None
    mro: tuple[str, ...] = ()
    message: str = ""
    batch: tuple[int, int, int] | None = None
    zero: int | None = None
    save16: bool | None = None
    optimizer: str | None = None
    dtype: str | None = None
    seconds: float = 0.0

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any]) -> Trial:
        """The trial that a line of the server tells of."""
        known = {field.name for field in fields(cls)}
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in answer.items()
            if key in known
        }
        return cls(**values)

    @property
    def done(self) -> bool:
        """Whether the config trained and came to its end."""
        return self.stage == "done"

    def raised(self, name: str) -> bool:
        """Whether it failed with this exception class or a subclass of it."""
        return name == self.exception or name in self.mro


# --- a child process and its outcome ---


def forked(work: Callable[[Report], None], timeout: float) -> dict[str, Any]:
    """Run `work` in a child and merge what it reported; nothing the child does can hurt this process."""
    reading, writing = os.pipe()
    with tempfile.TemporaryDirectory(prefix="deepspeed-trial-", ignore_cleanup_errors=True) as folder:
        pid = os.fork()
        if pid == 0:
            _run_child(work, writing, folder)
        os.close(writing)
        try:
            lines, in_time = _listen(pid, reading, timeout)
        finally:
            status = _end(pid)
            os.close(reading)
        return _outcome(lines, in_time, timeout, status, _last_output(folder))


def _run_child(work: Callable[[Report], None], writing: int, folder: str) -> None:
    """The child's whole life: it must never return into the parent's code."""
    try:
        os.setsid()
        os.chdir(folder)
        _redirect_output(Path(folder, "output.txt"))
        _attempt(work, writing)
    finally:
        os._exit(0)


def _redirect_output(path: Path) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)


def _attempt(work: Callable[[Report], None], writing: int) -> None:
    def report(**values: Any) -> None:
        os.write(writing, json.dumps(values, default=str).encode() + b"\n")

    started = time.monotonic()
    try:
        work(report)
    except BaseException as error:  # SystemExit is an outcome too
        names = [base.__name__ for base in type(error).__mro__ if base is not object]
        report(exception=names[0], mro=names, message=str(error))
    report(seconds=round(time.monotonic() - started, 3), finished=True)


def _listen(pid: int, reading: int, timeout: float) -> tuple[list[bytes], bool]:
    """The child's lines until it finished, died or ran out of time, and whether it kept the time."""
    deadline = time.monotonic() + timeout
    heard = b""
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            return heard.splitlines(), False
        if select.select([reading], [], [], min(left, 0.2))[0]:
            chunk = os.read(reading, 1 << 16)
            heard += chunk
            if not chunk or heard.endswith(b'"finished": true}\n'):
                return heard.splitlines(), True
        elif os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return heard.splitlines(), True  # dead, though a grandchild may still hold the pipe


def _end(pid: int) -> int:
    """End the child and all it started; the exit code, negative for a signal."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _last_output(folder: str, size: int = 2000) -> str:
    try:
        return Path(folder, "output.txt").read_bytes()[-size:].decode(errors="replace").strip()
    except OSError:
        return ""


def _outcome(lines: Iterable[bytes], in_time: bool, timeout: float, status: int, output: str) -> dict[str, Any]:
    result: dict[str, Any] = {"stage": STAGES[0], "exception": None, "mro": [], "message": ""}
    for line in lines:
        with contextlib.suppress(json.JSONDecodeError):  # a line cut off by the child's death
            result.update(json.loads(line))
    if not result.pop("finished", False):
        if in_time:
            what, why = DIED, f"exit code {status}"
        else:
            what, why = TIMEOUT, f"no result after {timeout:g} s"
        result.update(exception=what, mro=[what], message=f"{why}; last output: {output}")
    return result


# --- how Hugging Face reads a config ---


def fixed(config: Config, key: str, default: Any = None) -> Any:
    """The value that the config gives for a dotted key, or the default if it's absent, null or "auto"."""
    value: Any = config
    for name in key.split("."):
        value = value.get(name)
        if value is None:
            return default
    return default if isinstance(value, str) and value == "auto" else value


def training_arguments(config: Config) -> dict[str, Any]:
    """Arguments by which the Trainer would agree with the config's fixed values, as far as any can."""
    bf16 = fixed(config, "bf16.enabled", True) is not False and fixed(config, "fp16.enabled") is not True
    steps = fixed(config, "scheduler.params.warmup_num_steps", 1)
    rate = fixed(config, "optimizer.params.lr", fixed(config, "scheduler.params.warmup_max_lr", 5e-5))
    return {
        "per_device_train_batch_size": fixed(config, "train_micro_batch_size_per_gpu", 1),
        "gradient_accumulation_steps": fixed(config, "gradient_accumulation_steps", 1),
        "max_grad_norm": fixed(config, "gradient_clipping", 1.0),
        "learning_rate": rate,
        "adam_betas": fixed(config, "optimizer.params.betas", [0.9, 0.999]),
        "adam_epsilon": fixed(config, "optimizer.params.eps", 1e-8),
        "weight_decay": fixed(config, "optimizer.params.weight_decay", 0.0),
        "warmup_steps": max(1, steps) if isinstance(steps, int) else steps,
        "max_steps": fixed(config, "scheduler.params.total_num_steps", TRAINING_STEPS),
        "fp16": fixed(config, "fp16.enabled") is True,
        "bf16": bf16,
    }


def expected_values(arguments: Mapping[str, Any], ranks: int) -> dict[str, Any]:
    """What the Trainer fills in for "auto" and compares with a fixed value."""
    micro, steps = arguments["per_device_train_batch_size"], arguments["gradient_accumulation_steps"]
    return {
        "train_micro_batch_size_per_gpu": micro,
        "gradient_accumulation_steps": steps,
        "train_batch_size": ranks * micro * steps,
        "gradient_clipping": arguments["max_grad_norm"],
        "optimizer.params.lr": arguments["learning_rate"],
        "optimizer.params.betas": arguments["adam_betas"],
        "optimizer.params.eps": arguments["adam_epsilon"],
        "optimizer.params.weight_decay": arguments["weight_decay"],
        "scheduler.params.warmup_max_lr": arguments["learning_rate"],
        "scheduler.params.total_num_steps": arguments["max_steps"],
        "scheduler.params.warmup_num_steps": arguments["warmup_steps"],
        "fp16.enabled": arguments["fp16"],
        "bf16.enabled": arguments["bf16"],
    }


FILLED_ONLY: Mapping[str, Any] = {
    "scheduler.params.warmup_min_lr": 0,
    "zero_optimization.stage": 2,
    "zero_optimization.reduce_bucket_size": HIDDEN * HIDDEN,
    "zero_optimization.stage3_prefetch_bucket_size": int(0.9 * HIDDEN * HIDDEN),
    "zero_optimization.stage3_param_persistence_threshold": 10 * HIDDEN,
    "zero_optimization.stage3_gather_16bit_weights_on_model_save": False,
    "zero_optimization.offload_optimizer.device": "none",
    "zero_optimization.offload_optimizer.nvme_path": "none",
    "zero_optimization.offload_param.device": "none",
    "zero_optimization.offload_param.nvme_path": "none",
}


def fill_like_hugging_face(config: Config, ranks: int, given: Mapping[str, Any]) -> Config:
    """The dict that the Trainer and Accelerate hand to DeepSpeed for this config.

    Raises:
        ValueError: as they do for a mismatch, an "auto" nobody fills, or a missing zero_optimization.
    """
    filled = copy.deepcopy(config)
    if "zero_optimization" not in filled:
        raise ValueError("Please specify the ZeRO optimization config in the DeepSpeed config.")
    arguments = {**training_arguments(filled), **given}
    expected = expected_values(arguments, ranks)
    mismatches = [line for key in expected if (line := _fill(filled, key, expected[key], must_match=True))]
    if mismatches:
        raise ValueError("DeepSpeed config values mismatch TrainingArguments: " + "; ".join(mismatches))
    for key, value in FILLED_ONLY.items():
        _fill(filled, key, value, must_match=False)
    _add_defaults(filled, arguments)
    for key in _left_auto(filled):
        raise ValueError(f"`{key}` not found in kwargs: nothing fills in this 'auto'")
    return filled


def _fill(config: Config, key: str, value: Any, *, must_match: bool) -> str | None:
    """Put a value where "auto" stands; a line of complaint if another value stands there."""
    *sections, name = key.split(".")
    section: Any = config
    for each in sections:
        section = section.get(each)
        if section is None:
            return None
    there = section.get(name)
    if isinstance(there, str) and there == "auto":
        section[name] = value
    elif must_match and there is not None and there != value:
        return f"ds {key}={there} vs hf {value}"
    return None


def _add_defaults(config: Config, arguments: Mapping[str, Any]) -> None:
    """The keys that Accelerate adds when they are absent, and the one that it always overwrites."""
    config["steps_per_print"] = float("inf")
    config.setdefault("gradient_accumulation_steps", 1)
    fp16 = {"enabled": True, "auto_cast": True} if arguments["fp16"] else {"enabled": False}
    config.setdefault("fp16", fp16)
    config.setdefault("bf16", {"enabled": bool(arguments["bf16"])})


def _left_auto(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _left_auto(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, str) and value == "auto":
        yield path


def chosen_loader(config: Config | str) -> str:
    """A config with "auto" is meant for Hugging Face."""
    text = config if isinstance(config, str) else json.dumps(config)
    return "hf" if '"auto"' in text else "deepspeed"


# --- the trial itself, in the child ---


@dataclass
class _Watch:
    """Follows `deepspeed.initialize` and keeps the parsed config."""

    report: Report
    config: Any = None

    def install(self) -> None:
        """Report a stage when DeepSpeed has read, and when it has parsed, its config."""
        import deepspeed
        from deepspeed.runtime.config import DeepSpeedConfig

        load, parse = deepspeed.load_ds_config, DeepSpeedConfig.__init__

        @functools.wraps(load)
        def loaded(*args: Any, **kwargs: Any) -> Any:
            value = load(*args, **kwargs)
            self.report(stage="parse")
            return value

        @functools.wraps(parse)
        def parsed(config: Any, *args: Any, **kwargs: Any) -> None:
            parse(config, *args, **kwargs)
            if self.config is None:
                self.config = config
                self.report(stage="initialize")

        deepspeed.load_ds_config, DeepSpeedConfig.__init__ = loaded, parsed


def run_trial(request: Mapping[str, Any], report: Report) -> None:
    """Take a config through DeepSpeed, reporting each stage before it is entered."""
    _set_environment(request["ranks"])
    _set_abilities(fp16=request["fp16"], bf16=request["bf16"])
    sys.modules.update(dict.fromkeys(request["without"]))
    _join_process_group(request["ranks"])
    watch = _Watch(report)
    watch.install()
    engine = _initialize(_loaded_config(request, report), watch)
    report(stage="step", **_described(engine))
    _train(engine)
    report(stage="save")
    report(save16=engine.save_16bit_model("saved"))
    report(stage="done")


def _set_environment(ranks: int) -> None:
    os.environ.update(
        RANK="0",
        WORLD_SIZE=str(ranks),
        LOCAL_RANK="0",
        LOCAL_SIZE="1",  # else the shared-memory collective waits for its peers
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT="29500",
    )


def _set_abilities(*, fp16: bool, bf16: bool) -> None:
    """Make the accelerator answer like a GPU with, or without, these types."""
    import torch
    from deepspeed.accelerator import get_accelerator

    accelerator = get_accelerator()
    types = [torch.float, *([torch.half] if fp16 else []), *([torch.bfloat16] if bf16 else [])]
    accelerator.is_fp16_supported = lambda: fp16
    accelerator.is_bf16_supported = lambda: bf16
    accelerator.supported_dtypes = lambda: list(types)


def _join_process_group(ranks: int) -> None:
    import torch
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())


def _loaded_config(request: Mapping[str, Any], report: Report) -> Config | str:
    """What the loader hands to `deepspeed.initialize`: a dict, or the path of a file."""
    config: Config | str = request["config"]
    if request["loader"] == "hf":
        config = json.loads(config) if isinstance(config, str) else config
        report(stage="hf")
        config = fill_like_hugging_face(config, request["ranks"], request["arguments"])
    elif isinstance(config, str):
        Path("ds_config.json").write_bytes(config.encode(errors="surrogateescape"))
        return "ds_config.json"
    report(stage="parse")  # there is nothing left to read
    return config


def _initialize(config: Config | str, watch: _Watch) -> Any:
    import deepspeed

    model = _model()
    optimizer = None if _names_optimizer(config) else functools.partial(_client_optimizer, watch)
    return deepspeed.initialize(
        model=model, optimizer=optimizer, config=config, model_parameters=list(model.parameters())
    )[0]


def _names_optimizer(config: Config | str) -> bool:
    if isinstance(config, str):
        import hjson

        with contextlib.suppress(Exception):  # DeepSpeed will say what is wrong with it
            config = hjson.loads(Path(config).read_text())
    section = config.get("optimizer") if isinstance(config, dict) else None
    return isinstance(section, dict) and "type" in section


def _client_optimizer(watch: _Watch, parameters: Any) -> Any:
    """What a script would bring: AdamW, or DeepSpeed's CPU Adam where the optimizer is offloaded."""
    import torch
    from deepspeed.ops.adam import DeepSpeedCPUAdam

    offload = watch.config.zero_config.offload_optimizer
    if offload is not None and offload.device != "none":
        return DeepSpeedCPUAdam(parameters, lr=1e-4)
    return torch.optim.AdamW(parameters, lr=1e-4)


def _model() -> Any:
    import torch

    class Tiny(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(HIDDEN, HIDDEN)
            self.second = torch.nn.Linear(HIDDEN, HIDDEN)

        def forward(self, batch: Any, **_: Any) -> Any:
            return self.second(torch.relu(self.first(batch))).float().square().mean()

    torch.manual_seed(0)
    return Tiny()


def _described(engine: Any) -> dict[str, Any]:
    batch = (
        engine.train_batch_size(),
        engine.train_micro_batch_size_per_gpu(),
        engine.gradient_accumulation_steps(),
    )
    return {
        "batch": [int(size) for size in batch],
        "zero": int(engine.zero_optimization_stage()),
        "optimizer": type(engine.basic_optimizer).__name__,
        "dtype": str(next(engine.module.parameters()).dtype).removeprefix("torch."),
    }


def _train(engine: Any) -> None:
    import torch

    weight = next(engine.module.parameters())
    size = int(engine.train_micro_batch_size_per_gpu())
    for _ in range(STEPS * int(engine.gradient_accumulation_steps())):
        batch = torch.randn(size, HIDDEN).to(device=engine.device, dtype=weight.dtype)
        engine.backward(engine(batch))
        engine.step()


# --- the server ---


def extensions_folder() -> Path:
    """Where DeepSpeed's compiled ops are kept, apart from any other environment's."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    environment = hashlib.sha256(sys.prefix.encode()).hexdigest()[:8]  # two that share a folder rebuild for ever
    return cache / "dslint" / f"ops-torch{version('torch')}-deepspeed{version('deepspeed')}-{environment}"


def server_environment() -> dict[str, str]:
    """The server's environment; what the caller has set wins, but for the path to ninja."""
    defaults = {
        "TORCH_EXTENSIONS_DIR": str(extensions_folder()),
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",  # asking for CUDA must not start it before the fork
        "DS_ACCELERATOR": "cpu",
        "OMP_NUM_THREADS": "1",
        "MAX_JOBS": str(os.cpu_count() or 1),
    }
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return {**defaults, **os.environ, "PATH": path}


def _load_ops() -> list[str]:
    """Load, or build, the ops before any fork; the names of those that work here."""
    from deepspeed.accelerator import get_accelerator

    folder = Path(os.environ["TORCH_EXTENSIONS_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    loaded = []
    with (folder / "trial-server.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder == extensions_folder():
            _remove_stale_locks(folder)
        for name in OPS:
            with contextlib.suppress(Exception):  # no compiler, or an op this release does not have
                get_accelerator().create_op_builder(f"{name}Builder").load()
                loaded.append(name)
    return loaded


def _remove_stale_locks(folder: Path) -> None:
    """A lock that a killed build left makes every later load wait for ever; nobody else builds in here."""
    for stale in folder.glob("*/lock"):
        stale.unlink(missing_ok=True)


def serve() -> None:
    """Answer requests, one JSON line each, until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever the libraries print stays out of the answers
    for name in PRELOADED:
        importlib.import_module(name)
    print(json.dumps({"ops": _load_ops()}), file=answers, flush=True)
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        answer = forked(functools.partial(run_trial, request), request["timeout"])
        print(json.dumps(answer), file=answers, flush=True)


class TrialServer:
    """A process that runs trials, as a context manager.

    Attributes:
        ops: the compiled ops that work here, such as "CPUAdam" (known once the server has started).
    """

    def __init__(self, *, start_timeout: float = 900) -> None:
        self.ops: tuple[str, ...] = ()
        self._start_timeout = start_timeout  # the ops are built the first time
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the server
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> TrialServer:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
            env=server_environment(),
        )
        self.ops = tuple(self._answer(self._start_timeout)["ops"])
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._end(self._process)
        self._log.close()

    @staticmethod
    def _end(process: subprocess.Popen[str]) -> None:
        """Close the server's input, at which it ends by itself; end it if it doesn't."""
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()

    def run(
        self,
        config: Config | str,
        *,
        ranks: int = 8,
        loader: str | None = None,
        bf16: bool = True,
        fp16: bool = True,
        timeout: float = 60,
        arguments: Mapping[str, Any] | None = None,
        without: Sequence[str] = (),
    ) -> Trial:
        """Try a config, given as a dict or as the text of a file.

        Args:
            config: a dict, or the text of a config file.
            ranks: the number of ranks that DeepSpeed believes in.
            loader: "hf" or "deepspeed"; by default "hf" for a config with "auto".
            bf16: whether the device knows bfloat16.
            fp16: whether the device knows float16.
            timeout: seconds until the child is ended.
            arguments: TrainingArguments for the "hf" loader, instead of those that agree with the config.
            without: packages that shall seem not to be installed.
        """
        request = {
            "config": config,
            "ranks": ranks,
            "loader": loader or chosen_loader(config),
            "bf16": bf16,
            "fp16": fp16,
            "timeout": timeout,
            "arguments": dict(arguments or {}),
            "without": list(without),
        }
        self._send(request)
        return Trial.from_answer(self._answer(timeout + 30))

    def _send(self, request: Mapping[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def _answer(self, timeout: float) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], timeout)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            self._process.kill()
            raise RuntimeError(f"the trial server {'ended' if ready else 'is stuck'}: {self._last_words()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _last_words(self, size: int = 2000) -> str:
        self._log.seek(0)
        return self._log.read()[-size:].decode(errors="replace")


def main() -> None:
    """Run the trials that the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE.json")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--loader", choices=["hf", "deepspeed"], help='default: hf for a file with "auto"')
    parser.add_argument("--no-bf16", action="store_true", help="answer like a GPU without bfloat16")
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--without", action="append", default=[], metavar="PACKAGE", help="hide a package")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
    else:
        _try_files(options)


def _try_files(options: argparse.Namespace) -> None:
    with TrialServer() as server:
        for path in options.files:
            trial = server.run(
                path.read_bytes().decode(errors="surrogateescape"),
                ranks=options.ranks,
                loader=options.loader,
                bf16=not options.no_bf16,
                timeout=options.timeout,
                without=options.without,
            )
            print(json.dumps({"file": path.name, **asdict(trial)}), flush=True)


if __name__ == "__main__":
    main()

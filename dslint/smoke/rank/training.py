"""The trial itself, in the child: a tiny model through the config, from reading to one step after a restore."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

from dslint.smoke.rank import inspection
from dslint.smoke.rank.memory_meter import MemoryMeter
from dslint.smoke.rank.model import THRESHOLD, batch, tiny_model
from dslint.smoke.rank.script_calls import make_calls
from dslint.smoke.rank.simulation import (
    hide_packages,
    join_fake_group,
    set_abilities,
    set_rank_environment,
    share_gpus,
    skip_check_of_peers,
    without_shared_memory_collective,
)
from dslint.smoke.rank.watch import Watch
from dslint.smoke.reporting import Reporter
from dslint.smoke.trial import PATIENCE, Trial
from dslint.smoke.verdict import LONGEST_START

CONFIG, ACCELERATE = Path("ds_config.json"), Path("accelerate.yaml")
WEIGHTS, CHECKPOINT, TAG = Path("weights"), "checkpoint", "smoke"

THRESHOLD_KEYS = ("stage3_param_persistence_threshold", "param_persistence_threshold")
"""Both are read (deepspeed/runtime/zero/config.py, DeepSpeedZeroConfig)."""


def simulate(trial: Trial, reporter: Reporter) -> None:
    """Take a trial through DeepSpeed as rank 0 of a fake group."""
    set_rank_environment(gpus=trial.gpus, ranks=trial.ranks, launcher=trial.launcher)
    os.environ["LOCAL_SIZE"] = "1"  # else the shared-memory collective of the CPU waits for its peers
    prepare(trial)
    join_fake_group(trial.ranks)
    run(trial, reporter)


def train_as_one_of(trial: Trial, rank: int, port: int, reporter: Reporter) -> None:
    """Take a trial through DeepSpeed as the real rank of this number; all ranks meet at `port`."""
    set_rank_environment(rank=rank, gpus=trial.gpus, ranks=trial.ranks, launcher=trial.launcher, port=port)
    train_as_rank(trial, reporter)


def train_as_rank(trial: Trial, reporter: Reporter) -> None:
    """Take a trial through DeepSpeed as the real rank that the launcher's environment names."""
    prepare(trial)
    if trial.shared:
        share_gpus()
    run(trial, reporter)
    if torch.distributed.is_initialized():
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()


def prepare(trial: Trial) -> None:
    """What has to hold before DeepSpeed is touched, on a simulated rank and on a real one."""
    set_abilities(fp16=trial.fp16, bf16=trial.bf16)
    without_shared_memory_collective()
    hide_packages(trial.missing)


def run(trial: Trial, reporter: Reporter) -> None:
    """All phases of a trial, on a rank that has its environment."""
    reporter.tell(**inspection.versions())
    watch = Watch(reporter)
    watch.follow_warnings()
    watch.follow_builds()
    watch.follow_phases()
    memory = MemoryMeter(on_cpu=trial.metered)
    try:
        with memory:
            _phases(trial, reporter, watch)
    finally:
        reporter.tell(warned=watch.warned, redirected=watch.redirected, peak_memory=memory.peak)


def _phases(trial: Trial, reporter: Reporter, watch: Watch) -> None:
    reporter.enter("read")
    config = _write_files(trial)
    model = tiny_model(_threshold(config), floats=trial.floats)
    shapes = inspection.shapes_of(model)
    engine = _initialize(trial, config, model, watch)
    if _absent_peers(trial):
        skip_check_of_peers(engine)
    make_calls(trial.calls, engine, CONFIG)
    reporter.enter("step")
    reporter.tell(**inspection.engine_facts(engine))
    if trial.detailed:
        reporter.tell(settings=inspection.engine_settings(engine))
    train(engine, trial.steps, reporter)
    reporter.enter("save")
    _save_weights(engine, shapes, reporter)
    if trial.thorough:
        _save_and_load(engine, reporter, peers=_absent_peers(trial))
    reporter.enter("done")


# --- the engine ---


def _write_files(trial: Trial) -> dict[str, Any]:
    """Write the files that the loaders read; the config as far as it can be read here."""
    if trial.accelerate is not None:
        _write(ACCELERATE, trial.accelerate)
    if trial.config is None:
        return {}
    _write(CONFIG, trial.config)
    import hjson

    with contextlib.suppress(Exception):  # DeepSpeed, or Hugging Face, will say what is wrong with it
        config = hjson.loads(trial.config)
        return dict(config) if isinstance(config, dict) else {}
    return {}


def _write(path: Path, text: str) -> None:
    """Write a file that all ranks write, so that none sees half of it."""
    own = path.with_name(f"{os.getpid()}-{path.name}")
    own.write_bytes(text.encode(errors="surrogateescape"))
    own.replace(path)


def _threshold(config: Mapping[str, Any]) -> int:
    """The number of elements below which stage 3 leaves a parameter whole."""
    section = config.get("zero_optimization")
    given = section if isinstance(section, dict) else {}
    value: Any = next((given[name] for name in THRESHOLD_KEYS if name in given), None)
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        return max(int(float(value)), 1)
    return THRESHOLD


def _initialize(trial: Trial, config: Mapping[str, Any], model: torch.nn.Module, watch: Watch) -> Any:
    if trial.accelerate is not None:
        from dslint.smoke.rank import accelerate_config

        named = None if trial.config is None else CONFIG
        settings = accelerate_config.launch_settings(ACCELERATE, named, trial.ranks)
        watch.reporter.enter("fill")
        return accelerate_config.prepare(settings, model)
    if trial.loader == "hf":
        from dslint.smoke.rank import hugging_face

        strict = json.loads(str(trial.config))
        watch.reporter.enter("fill")
        agreeing = hugging_face.agreeing_arguments(strict, trial.ranks, bf16=trial.bf16 is not False)
        arguments = {**agreeing, **trial.arguments}
        return hugging_face.initialize(CONFIG, model, arguments)
    return _initialize_by_deepspeed(config, model, watch)


def _initialize_by_deepspeed(config: Mapping[str, Any], model: torch.nn.Module, watch: Watch) -> Any:
    import deepspeed

    section = config.get("optimizer")
    named = isinstance(section, dict) and "type" in section
    return deepspeed.initialize(
        model=model,
        optimizer=None if named else functools.partial(_client_optimizer, watch),
        config=str(CONFIG),
        model_parameters=list(model.parameters()),
    )[0]


def _client_optimizer(watch: Watch, parameters: Any) -> Any:
    """What a script would bring: AdamW, or DeepSpeed's CPU Adam where the optimizer is offloaded."""
    zero = watch.config.zero_config
    if zero.stage > 0 and zero.offload_optimizer is not None and zero.offload_optimizer.device != "none":
        from deepspeed.ops.adam import DeepSpeedCPUAdam

        return DeepSpeedCPUAdam(parameters, lr=1e-4)
    return torch.optim.AdamW(parameters, lr=1e-4)


# --- the steps ---


def train(engine: Any, steps: int, reporter: Reporter) -> None:
    """Take optimizer steps; some more while none of them can move anything."""
    before = inspection.masters(engine)
    computed = inspection.follow_type(engine.module.head)
    losses: list[Any] = []
    rates: list[float | None] = []
    moving = 0
    while len(losses) < steps or (not moving and _is_worth_another(len(losses), steps, _skipped(engine))):
        rates.append(inspection.rate(engine))
        skipped = _skipped(engine)
        losses.append(step(engine, len(losses)))
        moving += rates[-1] != 0 and _skipped(engine) == skipped
        reporter.tell(losses=losses, rates=rates, steps=int(engine.global_steps), skipped=_skipped(engine))
    after = inspection.masters(engine)
    reporter.tell(norm=inspection.norm(after))
    moved = inspection.differ(before, after)
    reporter.tell(moved=moved, loss_scale=inspection.loss_scale(engine), computed=" ".join(sorted(computed)))
    reporter.tell(traces=inspection.traces(own=(CONFIG, ACCELERATE)))


def _is_worth_another(count: int, wanted: int, skipped: int) -> bool:
    """Whether to go on while nothing moves: all steps overflowed, or a warm-up's learning rate is still 0."""
    return count < wanted + PATIENCE and count - skipped < max(wanted, LONGEST_START)


def step(engine: Any, number: int) -> Any:
    """The accumulation cycle of this number; its mean loss, as text if it isn't finite."""
    size = max(int(engine.train_micro_batch_size_per_gpu()), 1)
    cycle = max(int(engine.gradient_accumulation_steps()), 1)
    losses = []
    for micro in range(cycle):
        loss = engine(batch(size, engine, seed=number * cycle + micro))
        engine.backward(loss)
        engine.step()
        losses.append(float(loss.detach()))
    mean = sum(losses) / len(losses)
    return round(mean, 6) if math.isfinite(mean) else str(mean)


def _skipped(engine: Any) -> int:
    return int(getattr(engine, "skipped_steps", 0))


# --- saving and loading ---


def _save_weights(engine: Any, shapes: inspection.Shapes, reporter: Reporter) -> None:
    saved = engine.save_16bit_model(str(WEIGHTS))
    file = WEIGHTS / "pytorch_model.bin"
    written = file.exists()
    reporter.tell(saved=bool(saved) if saved is not None else written)
    if written and file.stat().st_size and engine.global_rank == 0:
        reporter.tell(weights=inspection.compare_weights(file, shapes))


def _absent_peers(trial: Trial) -> range:
    """The ranks of a simulated group that are not there to save their parts."""
    simulated = torch.distributed.get_backend() == "fake"
    return range(1, trial.ranks) if simulated else range(0)


def _stand_in(peers: range, splits: int) -> None:
    """Let rank 0's parts stand for those of ranks that are not there: some settings load the parts of all.

    Args:
        peers: the ranks that are not there.
        splits: over how many ranks a layer is split.
    """
    _link_as("zero_pp_rank_0_", [f"zero_pp_rank_{rank}_" for rank in peers])
    if peers:
        _link_as("mp_rank_00_", [f"mp_rank_{rank:02d}_" for rank in range(1, splits)])


def _link_as(own: str, others: Iterable[str]) -> None:
    for part in list(Path(CHECKPOINT, TAG).glob(f"*{own}*")):
        for name in others:
            other = part.with_name(part.name.replace(own, name))
            if not other.exists():
                os.link(part, other)


def _save_and_load(engine: Any, reporter: Reporter, peers: range) -> None:
    """Save a checkpoint, step away from it, load it back, compare, and step once more."""
    engine.save_checkpoint(CHECKPOINT, tag=TAG)
    _stand_in(peers, splits=int(engine.mp_world_size))
    steps, parameters = int(engine.global_steps), inspection.local_parameters(engine)
    step(engine, steps)
    reporter.enter("load")
    path, _ = engine.load_checkpoint(CHECKPOINT, tag=TAG)
    changed = inspection.differ(parameters, inspection.local_parameters(engine))
    reporter.tell(
        loaded=path is not None,
        restored_steps=int(engine.global_steps) == steps,
        restored_parameters=None if changed is None else not changed,
    )
    reporter.tell(last_loss=step(engine, steps))

"""What a script may call after `initialize`: some sections of a config are read only there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any


def make_calls(names: Iterable[str], engine: Any, config: Path) -> None:
    """Make these calls as a script would, each after `initialize`."""
    for name in names:
        CALLS[name](engine, config)


def _compile(engine: Any, _config: Path) -> None:
    engine.compile()


def _configure_checkpointing(_engine: Any, config: Path) -> None:
    import deepspeed

    deepspeed.checkpointing.configure(None, deepspeed_config=str(config))


def _convert_to_random_ltd(engine: Any, _config: Path) -> None:
    from deepspeed.runtime.data_pipeline.data_routing.helper import convert_to_random_ltd

    from dslint.smoke.rank.model import Block

    convert_to_random_ltd(engine, Block)


def _load_data(engine: Any, _config: Path) -> None:
    engine.deepspeed_io([0] * engine.train_batch_size())


CALLS: Mapping[str, Callable[[Any, Path], None]] = {
    "compile": _compile,
    "configure_checkpointing": _configure_checkpointing,
    "convert_to_random_ltd": _convert_to_random_ltd,
    "load_data": _load_data,
}

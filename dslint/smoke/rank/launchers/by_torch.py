"""torch's launchers: `torchrun …` and `python -m torch.distributed.launch …`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch.distributed.run

from dslint.smoke.rank.launchers.started import Started, python_command

COUNTED = ("gpu", "auto")
"""Numbers of ranks that follow from the machine's GPUs."""


def start(words: Sequence[str], rank: int, gpus: int) -> Started:
    """The rank of this number, as torchrun starts it (torch/distributed/run.py)."""
    return start_parsed(torch.distributed.run.parse_args(list(words)), rank, gpus)


def start_by_launch(words: Sequence[str], rank: int, gpus: int) -> Started:
    """The same for the older module, which hands the local rank over as an argument."""
    import torch.distributed.launch

    launch: Any = torch.distributed.launch
    parsed: list[Any] = []
    launch.run = parsed.append
    launch.launch(launch.parse_args(list(words)))
    return start_parsed(parsed[0], rank, gpus)


def start_parsed(options: Any, rank: int, gpus: int) -> Started:
    """The rank of this number of a command that is read already."""
    module: Any = torch.distributed.run
    count = module.determine_local_world_size
    module.determine_local_world_size = lambda asked: gpus if asked in COUNTED else count(asked)
    try:
        config, _, arguments = module.config_from_args(options)
    finally:
        module.determine_local_world_size = count
    own = config.nproc_per_node
    environment = _environment(rank, own, own * config.max_nodes)
    words = [word.replace(module.macros.local_rank, environment["LOCAL_RANK"]) for word in arguments]
    command = words if options.no_python or options.run_path else ["python", *words]
    return python_command(command, environment, "torchrun")


def _environment(rank: int, local: int, world: int) -> dict[str, str]:
    """What torchrun's agent sets (torch/distributed/elastic/agent/server/local_elastic_agent.py)."""
    local_rank = rank % local if local else 0
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(local_rank),
        "WORLD_SIZE": str(world),
        "LOCAL_WORLD_SIZE": str(local),
        "GROUP_RANK": str(rank // local if local else 0),
        "GROUP_WORLD_SIZE": str(world // local if local else 1),
        "ROLE_RANK": str(rank),
        "ROLE_WORLD_SIZE": str(world),
        "ROLE_NAME": "default",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": "0",
        "TORCHELASTIC_RUN_ID": "none",
    }

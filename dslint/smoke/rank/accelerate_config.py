"""A DeepSpeed engine as `accelerate launch --config_file X.yaml` and `Accelerator()` in the script make it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from dslint.smoke.rank.hugging_face import simulate_gpu_for_accelerate

PRELOADED = ("accelerate.commands.launch", "torch.distributed.run")
"""What the server imports before it forks, beside the modules for the Trainer."""

STEPS = 100
"""The length of the training, which a script tells a scheduler that the config names."""

OTHER_LAUNCHERS = (
    "multi_gpu_launcher",
    "sagemaker_launcher",
    "simple_launcher",
    "tpu_launcher",
    "tpu_pod_launcher",
)

SETTINGS = ("ACCELERATE_", "PARALLELISM_CONFIG_", "NCCL_")
"""How the variables begin that concern the training; others, such as the visible devices, are the machine's."""

CONFIG_FILE = "ACCELERATE_DEEPSPEED_CONFIG_FILE"


class NotDeepSpeedError(Exception):
    """`accelerate launch` would start this run without DeepSpeed."""


def initialize(
    yaml_path: Path, config_path: Path | None, model: Any, *, ranks: int | None = None, micro_batch: int = 1
) -> Any:
    """`launch_settings` and `prepare` in one.

    Args:
        yaml_path: the file for Accelerate.
        config_path: where the config lies that `deepspeed_config_file` names, if the file names one.
        model: see `prepare`.
        ranks: number of ranks; by default those of the process group.
        micro_batch: see `prepare`.

    Raises:
        NotDeepSpeedError: where the file asks for another kind of training.
    """
    import torch

    ranks = ranks or torch.distributed.get_world_size()
    return prepare(launch_settings(yaml_path, config_path, ranks), model, micro_batch=micro_batch)


def launch_settings(yaml_path: Path, config_path: Path | None, ranks: int) -> dict[str, str]:
    """The variables through which `accelerate launch` tells a script's Accelerator what the file says.

    Accelerate's own command does it (accelerate/commands/launch.py, launch_command), up to where torchrun would
    start the processes. Their number and the port are the trial's, as if given on the command line.

    Args:
        yaml_path: the file for Accelerate.
        config_path: where the config lies that `deepspeed_config_file` names, if the file names one; without it
            that name is taken as it is.
        ranks: number of ranks.

    Raises:
        NotDeepSpeedError: where it would start another kind of training.
    """
    import accelerate.commands.launch
    import torch.distributed.run

    command: Any = accelerate.commands.launch
    torchrun: Any = torch.distributed.run
    settings: dict[str, str] = {}
    torchrun.run = lambda _: settings.update(_settings())  # called while the variables are set
    for name in OTHER_LAUNCHERS:
        setattr(command, name, _refuse(name))
    command.launch_command(command.launch_command_parser().parse_args(_command_line(yaml_path, ranks)))
    if config_path is not None and CONFIG_FILE in settings:
        settings[CONFIG_FILE] = str(config_path)
    return settings


def _command_line(yaml_path: Path, ranks: int) -> list[str]:
    options = {
        "--config_file": str(yaml_path),
        "--num_processes": str(ranks),
        "--main_process_port": "0",  # any free one: the trial's own ranks have met already
        "--deepspeed_multinode_launcher": "standard",  # others take the same settings
    }
    return [*(word for option in options.items() for word in option), "script.py"]


def _settings() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(SETTINGS)}


def _refuse(launcher: str) -> Callable[..., NoReturn]:
    def refuse(*_: object) -> NoReturn:
        raise NotDeepSpeedError(f"accelerate launch takes its {launcher}, which does not start DeepSpeed")

    return refuse


def prepare(settings: Mapping[str, str], model: Any, *, micro_batch: int = 1) -> Any:
    """The DeepSpeed engine that a script gets from `Accelerator().prepare(model, optimizer, loader)`.

    The script brings what Accelerate's documentation asks for: DummyOptim and DummyScheduler where the config
    names an optimizer and a scheduler, else torch's AdamW. What is raised on the way comes out as it is.

    Args:
        settings: variables from `launch_settings`.
        model: a module; "auto" bucket sizes are computed from its `config.hidden_size`.
        micro_batch: batch size of the script's data loader, which stands for an "auto" micro batch.
    """
    from accelerate import Accelerator

    os.environ.update(settings)
    simulate_gpu_for_accelerate()
    accelerator = Accelerator()
    config = accelerator.state.deepspeed_plugin.deepspeed_config
    return accelerator.prepare(model, *_brought_along(config, model, micro_batch))[0]


def _brought_along(config: Mapping[str, Any], model: Any, micro_batch: int) -> list[Any]:
    """Optimizer and data loader, and a scheduler where the config names one."""
    import torch
    from accelerate.utils import DummyOptim, DummyScheduler

    parameters = [each for each in model.parameters() if each.requires_grad]
    optimizer = DummyOptim(parameters) if "optimizer" in config else torch.optim.AdamW(parameters)
    loader: Any = torch.utils.data.DataLoader([{}] * micro_batch, batch_size=micro_batch)  # type: ignore[arg-type]
    if "scheduler" not in config:
        return [optimizer, loader]
    total = STEPS * torch.distributed.get_world_size()  # prepare() divides it by the number of ranks
    return [optimizer, loader, DummyScheduler(optimizer, total_num_steps=total, warmup_num_steps=1)]

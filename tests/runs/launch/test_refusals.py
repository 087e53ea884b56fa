"""The values that the launchers' own parsers refuse."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from dslint.runs.launch.refusals import BACKENDS, VALUES

PARSERS = {
    "deepspeed": ("deepspeed.launcher.runner", lambda module: module.parse_args),
    "torchrun": ("torch.distributed.run", lambda module: module.get_args_parser().parse_args),
    "accelerate": ("accelerate.commands.launch", lambda module: module.launch_command_parser().parse_args),
}
CASES = [(launcher, name) for launcher, options in VALUES.items() for name in options]


@pytest.mark.deepspeed
@pytest.mark.parametrize(("launcher", "name"), CASES)
def test_the_parser_refuses_other_values(launcher: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module, parser_of = PARSERS[launcher]
    parse: Any = parser_of(pytest.importorskip(module))
    values = VALUES[launcher][name]
    for value in ("7",) if values.is_number else values.words:
        parse([f"--{name}={value}", "train.py"])
    with pytest.raises(SystemExit) as ended:
        parse([f"--{name}=all", "train.py"])
    assert ended.value.code == 2


@pytest.mark.deepspeed
def test_the_backends_are_those_of_deepspeed() -> None:
    pytest.importorskip("deepspeed")
    runner = importlib.import_module("deepspeed.launcher.runner")
    assert set(BACKENDS) == set(runner.LAUNCHER_CLASSES)

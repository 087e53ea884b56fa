"""Follows builds of DeepSpeed's ops in the user's own folder, which are told and otherwise left alone."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from dslint.smoke.rank.watch import Watch
from dslint.smoke.reporting import Reporter


def mark_beginning(folder: Path) -> None:
    """Keep in the folder for reports when the run began."""
    _beginning(folder).touch()


def _beginning(folder: Path) -> Path:
    return folder / "beginning"


def follow_builds(watch: Watch, reporter: Reporter, folder: Path) -> None:
    """Tell of each build or loading of an op, and where it happens (op_builder/builder.py, OpBuilder.jit_load).

    torch waits for ever while a file `lock` lies in an op's folder (torch/utils/file_baton.py, FileBaton). One
    that is older than the run may be left over from a killed build: such a wait isn't told as a build, so that the
    trial's clock goes on. Where there is no lock, the one that comes is this run's to remove if it is killed.
    """
    from deepspeed.ops.op_builder.builder import OpBuilder

    began = _made(_beginning(folder)) or 0.0
    load = OpBuilder.jit_load
    watch.follow_builds()
    followed = OpBuilder.jit_load

    @functools.wraps(load)
    def loaded(builder: Any, *args: Any, **kwargs: Any) -> Any:
        lock = _folder_of(builder.name) / "lock"
        made = _made(lock)
        if made is not None and made < began:
            reporter.tell(old_lock=str(lock))
            return load(builder, *args, **kwargs)
        if made is None:
            reporter.tell(own_lock=str(lock))
        return followed(builder, *args, **kwargs)

    OpBuilder.jit_load = loaded


def _folder_of(op: str) -> Path:
    """The op's folder, which torch makes, as it is about to do anyway (torch/utils/cpp_extension.py)."""
    from torch.utils.cpp_extension import _get_build_directory

    return Path(_get_build_directory(op, False))


def _made(file: Path) -> float | None:
    try:
        return file.stat().st_mtime
    except OSError:
        return None

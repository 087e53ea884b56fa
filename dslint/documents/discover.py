"""Finds the files to check below a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatch

CONFIG_ENDINGS = (".json", ".hjson", ".jsonc", ".json5")
YAML_ENDINGS = (".yaml", ".yml")
SCRIPT_ENDINGS = (".py", ".ipynb")
SHELL_ENDINGS = (".sh", ".bash", ".slurm", ".sbatch")
CODE_ENDINGS = SCRIPT_ENDINGS + SHELL_ENDINGS

_CONFIG_NAMES = ("ds_config*", "*deepspeed*", "zero*", "*ds_config*")
_CONFIG_WORDS = (b"zero_optimization", b"train_micro_batch_size_per_gpu", b"train_batch_size")
_YAML_WORDS = (b"deepspeed_config", b"DEEPSPEED")
_SCRIPT_WORDS = (b"deepspeed", b"DeepSpeed")
_SHELL_WORDS = (b"deepspeed", b"accelerate", b"torchrun", b"torch.distributed", b"python", b"srun", b"mpi")
_SKIPPED_FOLDERS = {"node_modules", "site-packages", "__pycache__", "venv"}
_LARGEST_CANDIDATE = 1024 * 1024  # bytes


def files_below(folder: str) -> list[str]:
    """The files below a folder that may concern a DeepSpeed run, in the order of their paths.

    In a git checkout that is what git knows or would add, so .gitignore counts; elsewhere every file outside
    of hidden folders and installed packages. The paths begin with `folder` as it was given.
    """
    listed = _listed_by_git(folder)
    found = listed if listed is not None else list(_walk(folder))
    return sorted(path for path in found if _may_concern_deepspeed(path))


def _listed_by_git(folder: str) -> list[str] | None:
    import subprocess

    command = ["git", "-C", folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    names = {os.fsdecode(name) for name in done.stdout.split(b"\0") if name}
    return [path for name in names if os.path.isfile(path := _join(folder, name))]


def _walk(folder: str) -> Iterator[str]:
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _SKIPPED_FOLDERS]
        for name in files:
            yield _join(here, name)


def _join(folder: str, name: str) -> str:
    return name if folder in (".", "./") else os.path.join(folder, name).removeprefix("./")


def _may_concern_deepspeed(path: str) -> bool:
    name = os.path.basename(path).lower()
    if name.endswith(CONFIG_ENDINGS):
        return has_config_name(name) or _has_word(path, _CONFIG_WORDS)
    if name.endswith(SCRIPT_ENDINGS):
        return _has_word(path, _SCRIPT_WORDS)
    if name.endswith(SHELL_ENDINGS):  # what a command starts may speak of DeepSpeed where the command doesn't
        return _has_word(path, _SHELL_WORDS)
    return name.endswith(YAML_ENDINGS) and _has_word(path, _YAML_WORDS)


def has_config_name(path: str) -> bool:
    """Whether a file is called as DeepSpeed configs usually are: ds_config.json, zero3.json."""
    return any(fnmatch(os.path.basename(path).lower(), pattern) for pattern in _CONFIG_NAMES)


def _has_word(path: str, words: tuple[bytes, ...]) -> bool:
    try:
        if os.path.getsize(path) > _LARGEST_CANDIDATE:
            return False
        with open(path, "rb") as stream:
            data = stream.read()
    except OSError:
        return False
    return any(word in data for word in words)

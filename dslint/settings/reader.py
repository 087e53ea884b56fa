"""Reads a settings file and checks it: every mistake comes out here, with its line."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from dslint.rulebook.labels import Labelled, unknown_label
from dslint.rulebook.rule import SEVERITIES
from dslint.settings.globs import is_glob
from dslint.settings.loading import OWN_FILE, PYPROJECT, SettingsError
from dslint.settings.settings import Hardware, Ignore, Settings, StatedRun
from dslint.settings.toml_lines import TomlPath, line_of, toml_lines

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FAIL_ON = (*SEVERITIES, "never")
LOADERS = ("hf", "deepspeed")
HARDWARE = ("gpus", "nodes", "gpu", "deepspeed")
RUN_FILES = ("config", "script", "launch", "accelerate")
RUN_KEYS = ("name", *RUN_FILES, *HARDWARE)
KEYS = ("select", "ignore", "fail-on", *HARDWARE, "loader", "exclude", "per-file-ignores", "ignore-keys", "runs")
ALL = "all"


def read_settings(path: str, data: bytes, rules: Sequence[Labelled]) -> Settings | None:
    """The settings in a file; None for a pyproject.toml (or any file but dslint.toml) without [tool.dslint].

    Args:
        path: the file.
        data: its content.
        rules: all rules, so that labels can be told from slips.

    Raises:
        SettingsError: the file is no TOML, or says something that can't be used.
    """
    shown = path_from_here(path)
    text, content = _parsed(shown, data)
    top: TomlPath = ("tool", "dslint")
    table = content.get("tool", {})
    table = table.get("dslint") if isinstance(table, dict) else None
    if table is None:
        # A dslint.toml has its keys at the top; of any other file we only want the table that is ours.
        if os.path.basename(path) == PYPROJECT or (content and not _is_own(path, content)):
            return None
        top, table = (), content
    return _Reader(shown, os.path.dirname(os.path.abspath(path)), text, top, rules).settings(table)


def path_from_here(path: str) -> str:
    """The path as seen from the working folder, where the file lies below it; else the absolute path."""
    absolute = os.path.abspath(path)
    try:
        relative = os.path.relpath(absolute)
    except ValueError:  # another drive
        return absolute
    return absolute if relative.split(os.sep)[0] == os.pardir else relative


def _is_own(path: str, content: Mapping[str, Any]) -> bool:
    return os.path.basename(path) == OWN_FILE or any(key in KEYS for key in content)


def _parsed(shown: str, data: bytes) -> tuple[str, dict[str, Any]]:
    try:
        text = data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{shown}:{line}: not UTF-8 text") from None
    try:
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(_syntax_message(shown, text, str(error))) from None
    except RecursionError:
        raise SettingsError(f"{shown}:1: nested too deep") from None
    except ValueError as error:  # such as a number with too many digits for Python
        raise SettingsError(f"{shown}:1: not valid TOML: {error}") from None


def _syntax_message(shown: str, text: str, message: str) -> str:
    """The parser's message ("… (at line 3, column 7)", "… (at end of document)") with its place in front."""
    what, _, where = message.rpartition(" (at ")
    line = re.match(r"line (\d+)", where)
    number = line[1] if line else text.rstrip("\n").count("\n") + 1
    return f"{shown}:{number}: not valid TOML: {what or message}"


class _Reader:
    """Builds the settings from one table."""

    def __init__(self, shown: str, folder: str, text: str, top: TomlPath, rules: Sequence[Labelled]) -> None:
        self.shown = shown
        self.folder = folder
        self.toml = text
        self.top = top
        self.rules = rules

    @cached_property
    def lines(self) -> Mapping[TomlPath, int]:
        """Where everything stands; needed for runs, and once something is wrong."""
        return toml_lines(self.toml)

    def settings(self, table: Any) -> Settings:
        if not isinstance(table, dict):
            raise self.error((), "must be a table")
        self.check_keys(table, KEYS, ())
        select = self.texts(table, ("select",)) if "select" in table else None
        self.check_labels(select or (), ("select",))
        ignore = self.texts(table, ("ignore",))
        self.check_labels(ignore, ("ignore",))
        return Settings(
            file=self.shown,
            folder=self.folder,
            select=select,
            ignore=ignore,
            fail_on=self.choice(table, ("fail-on",), FAIL_ON),
            hardware=self.hardware(table, ()),
            loader=self.choice(table, ("loader",), LOADERS),
            exclude=self.globs(self.texts(table, ("exclude",)), ("exclude",)),
            per_file_ignores=self.ignores(table, "per-file-ignores", self.check_glob),
            ignore_keys=self.ignores(table, "ignore-keys", self.check_config_key),
            runs=self.runs(table),
        )

    def error(self, path: TomlPath, message: str) -> SettingsError:
        line = line_of(self.lines, (*self.top, *path))
        names = [f"{name}" for name in path if isinstance(name, str)]
        return SettingsError(f"{self.shown}:{line}: {'.'.join(names) or '[tool.dslint]'}: {message}")

    def check_keys(self, table: Iterable[str], known: Sequence[str], path: TomlPath) -> None:
        for key in table:
            if key not in known:
                from difflib import get_close_matches

                near = get_close_matches(key.replace("_", "-"), known, n=1)
                hint = f": did you mean `{near[0]}`?" if near else f"; there are {', '.join(known)}"
                raise self.error((*path, key), f"there is no such setting{hint}")

    def text(self, table: Mapping[str, Any], path: TomlPath) -> str | None:
        """A text that isn't empty; None where the key is absent."""
        value = table.get(str(path[-1]))
        if value is not None and not (isinstance(value, str) and value.strip()):
            raise self.error(path, f"must be a text, not {_shown(value)}")
        return value

    def texts(self, table: Mapping[str, Any], path: TomlPath) -> tuple[str, ...]:
        return self.list_of_texts(table.get(str(path[-1]), []), path)

    def list_of_texts(self, value: Any, path: TomlPath) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise self.error(path, f"must be a list of texts, not {_shown(value)}")
        for index, element in enumerate(value):
            if not (isinstance(element, str) and element.strip()):
                raise self.error((*path, index), f"must be a list of texts, and has {_shown(element)}")
        return tuple(value)

    def choice(self, table: Mapping[str, Any], path: TomlPath, allowed: Sequence[str]) -> str | None:
        value = table.get(str(path[-1]))
        if value is not None and value not in allowed:
            raise self.error(path, f"must be one of {', '.join(allowed)}, not {_shown(value)}")
        return value

    def count(self, table: Mapping[str, Any], path: TomlPath) -> int | None:
        value = table.get(str(path[-1]))
        if value is None:
            return None
        is_whole = isinstance(value, (int, float)) and not isinstance(value, bool) and value == value // 1
        if not is_whole or value < 1:  # 8.0 is whole too, as a schema has it
            raise self.error(path, f"must be a whole number of at least 1, not {_shown(value)}")
        return int(value)

    def hardware(self, table: Mapping[str, Any], path: TomlPath) -> Hardware:
        return Hardware(
            gpus=self.count(table, (*path, "gpus")),
            nodes=self.count(table, (*path, "nodes")),
            gpu=self.gpu(table, (*path, "gpu")),
            deepspeed=self.release(table, (*path, "deepspeed")),
        )

    def gpu(self, table: Mapping[str, Any], path: TomlPath) -> str | None:
        name = self.text(table, path)
        if name is not None and name != "auto":
            from dslint.runs.gpus import UnknownGpu, find_gpu

            try:
                find_gpu(name)
            except UnknownGpu as error:
                raise self.error(path, str(error)) from None
        return name

    def release(self, table: Mapping[str, Any], path: TomlPath) -> str | None:
        text = self.text(table, path)
        if text is not None:
            from dslint.runs.releases import parse_release

            try:
                parse_release(text)
            except ValueError as error:
                raise self.error(path, str(error)) from None
        return text

    def check_labels(self, labels: Sequence[str], path: TomlPath, also: str | None = None) -> None:
        for index, label in enumerate(labels):
            trouble = None if label == also else unknown_label(label, self.rules)
            if trouble is not None:
                raise self.error((*path, index), trouble)

    def globs(self, patterns: Sequence[str], path: TomlPath) -> tuple[str, ...]:
        for index, pattern in enumerate(patterns):
            self.check_glob(pattern, (*path, index))
        return tuple(patterns)

    def check_glob(self, pattern: str, path: TomlPath) -> None:
        if not is_glob(pattern):
            raise self.error(path, f"`{pattern}` is not a pattern for paths")

    def check_config_key(self, key: str, path: TomlPath) -> None:
        if not all(key.split(".")):
            raise self.error(path, "must be a dotted config key, such as zero_optimization.stage or fp16.*")

    def ignores(
        self, table: Mapping[str, Any], name: str, check: Callable[[str, TomlPath], None]
    ) -> tuple[Ignore, ...]:
        entries = table.get(name, {})
        if not isinstance(entries, dict):
            raise self.error((name,), f"must be a table of lists, not {_shown(entries)}")
        found = []
        for pattern, labels in entries.items():
            path = (name, pattern)
            check(pattern, path)
            if isinstance(labels, dict):
                raise self.error(path, "must be a list of texts, not a table: write a key with dots in quotes")
            found.append(Ignore(pattern, self.list_of_texts(labels, path)))
            self.check_labels(labels, path, also=ALL)
        return tuple(found)

    def runs(self, table: Mapping[str, Any]) -> tuple[StatedRun, ...]:
        entries = table.get("runs", [])
        if not isinstance(entries, list):
            raise self.error(("runs",), "must be a list of tables: write [[tool.dslint.runs]]")
        return tuple(self.run(entry, ("runs", index)) for index, entry in enumerate(entries))

    def run(self, table: Any, path: TomlPath) -> StatedRun:
        if not isinstance(table, dict):
            raise self.error(path, f"must be a table, not {_shown(table)}")
        self.check_keys(table, RUN_KEYS, path)
        if not any(key in table for key in RUN_FILES):
            raise self.error(path, f"names no file: give one of {', '.join(RUN_FILES)}")
        whole: TomlPath = (*self.top, *path)
        return StatedRun(
            name=self.text(table, (*path, "name")),
            **{key: self.run_file(table, (*path, key)) for key in RUN_FILES},
            hardware=self.hardware(table, path),
            line=line_of(self.lines, whole),
            lines={key: line_of(self.lines, (*whole, key)) for key in table},
        )

    def run_file(self, table: Mapping[str, Any], path: TomlPath) -> str | None:
        name = self.text(table, path)
        if name is None:
            return None
        file = os.path.join(self.folder, name)
        if "\0" in name or not os.path.isfile(file):
            raise self.error(path, f"there is no file {_shown(name)} beside {os.path.basename(self.shown)}")
        return path_from_here(file)


def _shown(value: Any) -> str:
    """A value in an error message."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."

"""Finds whole runs: which launch command starts which script, and which config that script takes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from dslint.documents.config_reader import read_config
from dslint.documents.document import Document
from dslint.documents.python_reader import Script, read_script
from dslint.documents.source import Source
from dslint.documents.yaml_reader import read_yaml
from dslint.runs import accelerate
from dslint.runs.accelerate_plugin import plugin_config
from dslint.runs.files import Files, Place
from dslint.runs.linking import Pairing
from dslint.runs.run import Options
from dslint.runs.script.config_use import ConfigUse, as_document, config_uses, reference_of
from dslint.runs.script.reading import Deeds, OneOfSeveral, Surroundings, read_deeds
from dslint.runs.script.values import NOTHING, Table
from dslint.runs.unknown import Unknown

if TYPE_CHECKING:
    from dslint.runs.launch.launch import Launch

LARGEST_MODULE = 200_000
"""Bytes of a module that is still read along with the script that imports it."""

TELLING = re.compile(
    rb"deepspeed|zero_optimization|train_batch_size|add_argument|TrainingArguments|Accelerator|save_pretrained|get_rank|is_main_process|DataLoader"
    rb"|from_pretrained|nn\.Module|optim|Trainer",
    re.I,
)
"""What the text of a module has that may matter to the script that imports it."""

TRAINING = ("initialize", "trainer", "accelerate", "lightning")
"""Takers of configs that train with them; the others only build models."""

MOST_RUNS = 4
"""Runs of one script that are looked into."""

CONFIG_OPTIONS = ("deepspeed_config", "deepspeed", "ds_config", "deepspeed_config_file", "ds_config_path")
"""Script arguments that name the DeepSpeed config, by custom."""


HOSTFILES = {"deepspeed": "hostfile", "accelerate": "deepspeed_hostfile"}
"""By launcher, the option that names a hostfile."""


@dataclass(frozen=True)
class Found:
    """The files from which runs are made.

    Attributes:
        configs: files that may be DeepSpeed configs.
        accelerate: Accelerate files that use DeepSpeed.
        scripts: Python files.
        launches: launch commands, in order.
        embedded: configs that a shell script writes itself, by the path they get.
        beside: paths of files that nobody named, and that are only there since they speak of one that was named.
    """

    configs: tuple[Source, ...]
    accelerate: tuple[Document, ...]
    scripts: tuple[Source, ...]
    launches: tuple[Launch, ...]
    embedded: tuple[tuple[str, Source], ...] = ()
    beside: frozenset[str] = frozenset()


def found_in(
    configs: Sequence[Source],
    accelerate_files: Sequence[Document],
    scripts: Sequence[Source],
    shells: Sequence[Source],
) -> Found:
    """What the files hold: the launch commands of the shell scripts, the configs that they write."""
    launches: list[Launch] = []
    embedded: list[tuple[str, Source]] = []
    for shell in shells:
        in_shell, written = launches_in(shell)
        launches += in_shell
        embedded += written
    return Found(tuple(configs), tuple(accelerate_files), tuple(scripts), tuple(launches), tuple(embedded))


def whole_runs(found: Found, files: Files) -> list[Pairing]:
    """The runs that the scripts and launch commands form; configs that none of them takes are left out."""
    linker = _Linker(found, files)
    runs = [run for launch in found.launches for run in linker.runs_of_launch(launch)]
    for source in sorted(found.scripts, key=lambda source: b"__main__" not in source.data):
        if concerns_deepspeed(source) and not _is_part_of(source, runs):
            runs += linker.runs_of_script(source, None, None)
    return _with_neighbours(runs, found)


def _is_part_of(source: Source, runs: Iterable[Pairing]) -> bool:
    """Whether a script is launched, or read along as a module of another that has no main part of its own."""
    path = os.path.realpath(source.path)
    for deeds in (run.script for run in runs if run.script is not None):
        modules = () if b"__main__" in source.data else deeds.modules
        if any(os.path.realpath(one.source.path) == path for one in (deeds.script, *modules)):
            return True
    return False


def pairings_of(
    found: Found, files: Files, *, config: Source | None, accelerate: Document | None, options: Options
) -> list[Pairing]:
    """The runs of files that somebody says belong together; what is said stands above what they show.

    Args:
        found: the script and the launch commands.
        files: where further files are looked up.
        config: the config, where one is said.
        accelerate: the Accelerate file, where one is said.
        options: the run's hardware and versions.
    """
    linker = _Linker(found, files)
    runs = [run for launch in found.launches for run in linker.runs_of_launch(launch) if run.script or run.launch]
    if not any(run.script is not None for run in runs):
        runs = [run for source in found.scripts for run in linker.runs_of_script(source, None, accelerate)]
    if not runs:
        runs = [Pairing(config, accelerate)]
    runs = [replace(run, config=config or run.config, accelerate=accelerate or run.accelerate) for run in runs]
    return [replace(run, stated=options) for run in runs]


def launches_in(source: Source) -> tuple[tuple[Launch, ...], tuple[tuple[str, Source], ...]]:
    """The launch commands of a shell script, and the configs that it writes itself."""
    from dslint.documents.shell_reader import read_shell
    from dslint.runs.launch.embedded import embedded_files
    from dslint.runs.launch.reading import launches

    document = read_shell(source)
    return launches(document), embedded_files(document)


def concerns_deepspeed(source: Source) -> bool:
    """Whether a script says a word of DeepSpeed at all."""
    return b"deepspeed" in source.data.lower()


@dataclass(frozen=True)
class Whence:
    """From where a name is looked up.

    Attributes:
        folders: in this order.
        shell: the shell script that says it, which may write the file itself.
    """

    folders: tuple[str, ...]
    shell: str | None


class _Linker:
    def __init__(self, found: Found, files: Files) -> None:
        self.found = found
        self.files = files
        self.scripts: dict[str, Script] = {}
        self.deeds: dict[tuple[str, tuple[str | None, ...] | None, OneOfSeveral | None], Deeds] = {}

    def runs_of_launch(self, launch: Launch) -> Iterator[Pairing]:
        """The runs that one command starts."""
        named = self._named_files(launch)
        for run in self._runs_of_launch(launch):
            yield replace(run, named=named) if run.launch is not None else run

    def _named_files(self, launch: Launch) -> dict[str, Source]:
        """The hostfile that a command names, where it is there."""
        option = launch.options.get(HOSTFILES.get(launch.launcher, ""))
        if option is None or not isinstance(option.value, str):
            return {}
        source = self.files.find(option.value, self._whence(launch, None).folders)
        return {} if source is None else {"hostfile": source}

    def _runs_of_launch(self, launch: Launch) -> Iterator[Pairing]:
        started_by = self._accelerate_file(launch)
        source = self._script(launch)
        if source is not None and (concerns_deepspeed(source) or _uses_deepspeed(launch, started_by)):
            yield from self.runs_of_script(source, launch, started_by)
        elif source is None and _uses_deepspeed(launch, started_by):
            reference = _named_by(launch)
            config = self._config_file(reference, self._whence(launch, None)) if reference else None
            yield Pairing(config or self._accelerate_config(started_by), started_by, None, launch)

    def runs_of_script(
        self, source: Source, launch: Launch | None, started_by: Document | None
    ) -> Iterator[Pairing]:
        """The runs of one script: one for each config that it trains with."""
        whence = self._whence(launch, source)
        deeds = self._deeds_of(source, launch, whence)
        uses = config_uses(deeds)
        configs = self._configs([use for use in uses if use.taker in TRAINING] or uses, deeds, whence)
        whole = Pairing(None, started_by, deeds, launch, place=Place(self.files, whence.folders))
        if len(configs) > 1:
            for config, one in configs[:MOST_RUNS]:
                yield replace(whole, config=config, script=self._deeds_of(source, launch, whence, one))
            return
        if configs:
            yield replace(whole, config=configs[0][0])
            return
        references = [reference_of(use.value) for use in uses]
        named = None if launch is None else _named_by(launch)
        reference = next((one for one in (*references, named) if one is not None), None)
        file = None if reference is None else self._config_file(reference, whence)
        taken = file or self._accelerate_config(started_by) or plugin_config(deeds, started_by, launch)
        yield replace(whole, config=taken, missing=None if taken is not None else reference)

    def _configs(
        self, uses: Iterable[ConfigUse], deeds: Deeds, whence: Whence
    ) -> list[tuple[Source | Document, OneOfSeveral]]:
        """The configs that uses lead to, each once, with what takes it; what can't be followed is left out."""
        configs: dict[object, Source | Document] = {}
        takers: dict[object, list[ConfigUse]] = {}
        for use in uses:
            key, config = self._config_of(use, deeds, whence)
            if config is not None:
                configs.setdefault(key, config)
                takers.setdefault(key, []).append(use)
        return [(config, _one_of_several(takers[key])) for key, config in configs.items()]

    def _config_of(self, use: ConfigUse, deeds: Deeds, whence: Whence) -> tuple[object, Source | Document | None]:
        """The config that a use leads to, and what makes it one and the same as another."""
        reference = reference_of(use.value)
        kind = use.taker == "initialize"  # an engine of one's own beside a Trainer is another run
        if reference is not None:
            source = self._config_file(reference, whence)
            return (kind, source and source.path), source
        if not isinstance(use.value, Table):
            return None, None
        file = self._config_file(use.value.file, whence) if isinstance(use.value.file, str) else None
        loaded = None if file is None else read_config(file)
        return (kind, id(use.value)), as_document(use.value, deeds.script, loaded)

    def _config_file(self, reference: str, whence: Whence) -> Source | None:
        """A file that is named: one that the command's own shell script writes, or one on the disk."""
        name = os.path.normpath(reference)
        for path, source in self.found.embedded:
            is_it = os.path.normpath(path) == name or os.path.basename(path) == os.path.basename(name)
            if is_it and source.path == whence.shell:
                return source
        return self.files.find(reference, whence.folders)

    def _accelerate_config(self, started_by: Document | None) -> Source | None:
        """The config that an Accelerate file names."""
        named = None if started_by is None else accelerate.config_file(started_by)
        if started_by is None or named is None:
            return None
        return self.files.find(named[0], [".", os.path.dirname(started_by.source.path)])

    def _accelerate_file(self, launch: Launch) -> Document | None:
        """The file that `accelerate launch --config_file` names."""
        option = launch.options.get("config_file") if launch.launcher == "accelerate" else None
        if option is None or not isinstance(option.value, str):
            return None
        source = self.files.find(option.value, self._whence(launch, None).folders)
        for known in self.found.accelerate:
            if source is not None and os.path.realpath(known.source.path) == os.path.realpath(source.path):
                return known
        if source is None:
            return None
        document = read_yaml(source)
        return document if accelerate.is_accelerate(document) else None

    def _script(self, launch: Launch) -> Source | None:
        """The script that a command names; the only one at hand where its name can't be told."""
        text = None if launch.script is None else launch.script.text
        if not isinstance(text, str):
            is_only_one = len(self.found.scripts) == 1 and launch.script is not None
            return self.found.scripts[0] if is_only_one and launch.source.path not in self.found.beside else None
        if launch.is_module:
            text = text.replace(".", "/") + ".py"
        found = self.files.find(text, self._whence(launch, None).folders)
        if found is None and launch.source.path not in self.found.beside:
            found = _by_last_name(text, self.found.scripts)
        return found

    def _data(self, whence: Whence, path: str) -> Any:
        """What a JSON file holds that a script loads."""
        config = self._config_file(path, whence)
        value = None if config is None else read_config(config).value
        return value if isinstance(value, dict) else NOTHING

    def _module(self, name: str, level: int, importer: str) -> Script | None:
        """The user's own module behind an import."""
        for path in _module_paths(name, level, importer):
            source = self.files.at(path)
            if source is not None and len(source.data) <= LARGEST_MODULE and TELLING.search(source.data):
                if source.path not in self.scripts:
                    self.scripts[source.path] = script_in(source)
                return self.scripts[source.path]
        return None

    def _whence(self, launch: Launch | None, script: Source | None) -> Whence:
        """Where names are looked up that a command or a script says."""
        shell = None if launch is None else launch.source.path
        if launch is not None and launch.directory and os.path.isabs(launch.directory):
            # Known for sure, so that a file that isn't there isn't anywhere else.
            return Whence((launch.directory,), shell)
        folders = ["."]
        if launch is not None:
            here = os.path.dirname(launch.source.path)
            if launch.directory:
                folders = [os.path.join(here, launch.directory), launch.directory, *folders]
            folders.append(here)
        if script is not None:
            folders.append(os.path.dirname(script.path))
        return Whence(tuple(dict.fromkeys(folder or "." for folder in folders)), shell)

    def _deeds_of(
        self, source: Source, launch: Launch | None, whence: Whence, one: OneOfSeveral | None = None
    ) -> Deeds:
        words = None if launch is None else words_of(launch)
        key = (source.path, words, one)
        if key not in self.deeds:
            if source.path not in self.scripts:
                self.scripts[source.path] = script_in(source)

            is_started = launch is not None or is_entry(source)
            around = Surroundings(partial(self._data, whence), self._module if is_started else _no_module)
            self.deeds[key] = read_deeds(self.scripts[source.path], words, around, one)
        return self.deeds[key]


def _one_of_several(uses: Sequence[ConfigUse]) -> OneOfSeveral:
    engines = frozenset(use.call.node for use in uses if use.taker == "initialize")
    return OneOfSeveral(uses[0].taker, engines)


def is_entry(source: Source) -> bool:
    """Whether a script looks like one that is started, rather than a module of a package."""
    in_package = os.path.isfile(os.path.join(os.path.dirname(source.path), "__init__.py"))
    return b"__main__" in source.data or not in_package


def _no_module(name: str, level: int, importer: str) -> Script | None:
    return None


def _module_paths(name: str, level: int, importer: str) -> Iterator[str]:
    """Where the module of an import may stand: beside its importer, or in the folders above for `from ..x`."""
    folder = os.path.dirname(importer)
    for _ in range(level - 1):
        folder = (
            os.path.join(folder, "..") if folder in ("", ".") or folder.endswith("..") else os.path.dirname(folder)
        )
    path = os.path.join(folder, *name.split(".")) if name else folder
    if name:
        yield path + ".py"
    yield os.path.join(path, "__init__.py")


def script_in(source: Source) -> Script:
    """A Python file, or a notebook, parsed."""
    if source.path.endswith(".ipynb"):
        from dslint.documents.notebook_reader import read_notebook

        return read_notebook(source)
    return read_script(source)


def words_of(launch: Launch) -> tuple[str | None, ...]:
    """The words that the script gets; None for one that can't be told."""
    words = [None if isinstance(one.text, Unknown) else one.text for one in launch.arguments]
    if launch.launcher == "deepspeed" and not launch.options.get("no_local_rank"):
        words = ["--local_rank", None, *words]  # another number on each rank
    return tuple(words)


def _named_by(launch: Launch) -> str | None:
    """The config that a command's script arguments name by a customary option."""
    texts = [one.text for one in launch.arguments]
    for name in CONFIG_OPTIONS:
        for index, text in enumerate(texts):
            if not isinstance(text, str):
                continue
            flag, has_value, value = text.partition("=")
            if flag.lstrip("-").replace("-", "_") != name or not flag.startswith("--"):
                continue
            following = texts[index + 1] if index + 1 < len(texts) else None
            value = value if has_value else following if isinstance(following, str) else ""
            if value and not value.startswith("-"):
                return value
    option = launch.options.get("deepspeed_config_file") if launch.launcher == "accelerate" else None
    return option.value if option is not None and isinstance(option.value, str) else None


def _uses_deepspeed(launch: Launch, started_by: Document | None) -> bool:
    if launch.launcher == "deepspeed" or started_by is not None:
        return True
    if launch.launcher == "accelerate" and "use_deepspeed" in launch.options:
        return True
    return _named_by(launch) is not None


def _by_last_name(reference: str, sources: Iterable[Source]) -> Source | None:
    name = os.path.basename(reference)
    found = [source for source in sources if os.path.basename(source.path) == name]
    return found[0] if len(found) == 1 else None


def _with_neighbours(runs: list[Pairing], found: Found) -> list[Pairing]:
    """Gives a run that lacks a config, or an Accelerate file, the only one that nobody else takes."""
    taken = {os.path.realpath(run.path) for run in runs if run.config is not None}
    taken |= {os.path.realpath(run.accelerate.source.path) for run in runs if run.accelerate is not None}
    spare = [config for config in found.configs if os.path.realpath(config.path) not in taken]
    files = [one for one in found.accelerate if os.path.realpath(one.source.path) not in taken]
    scripts = {run.script.script.source.path for run in runs if run.script is not None}
    lacking = [run for run in runs if run.config is None and run.accelerate is None and run.missing is None]
    if len(scripts) != 1 or not lacking or len(lacking) != len(runs):
        return runs
    if len(files) == 1:
        named = accelerate.config_file(files[0])
        config = next((one for one in spare if named and one.path.endswith(os.path.basename(named[0]))), None)
        return [replace(run, accelerate=files[0], config=config) for run in runs]
    if len(spare) == 1:
        return [replace(run, config=spare[0]) for run in runs]
    return runs

"""The runs that the files at hand form, those that settings state among them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dslint.documents.discover import SCRIPT_ENDINGS, has_config_name
from dslint.documents.document import Document
from dslint.documents.source import Source
from dslint.inputs import FileTrouble, Reading, read
from dslint.runs.linking import Pairing, pair, run_of
from dslint.runs.run import Options, Run
from dslint.runs.schema import load_schema

if TYPE_CHECKING:
    from dslint.settings.settings import Settings


TRAINER_NAMES = ("output_dir", "per_device_train_batch_size", "model_name_or_path", "num_train_epochs")
"""Arguments of Hugging Face's Trainer, and of scripts around it, that no DeepSpeed config has at its top."""


def find_runs(
    paths: Sequence[str], options: Options, settings: Settings | None = None
) -> tuple[list[Run], tuple[FileTrouble, ...]]:
    """The runs that files and folders form, and the files that could not be read."""
    reading = read(paths, settings.excludes if settings else None)
    merged = settings.options(options) if settings else options
    runs = []
    for pairing in runs_in(reading, settings, options):
        run = run_of(pairing, merged)
        may_be_foreign = pairing.is_file_alone and pairing.path in reading.found
        if not may_be_foreign or is_surely_a_config(run.config):
            runs.append(run)
    return runs, reading.troubles


def runs_in(reading: Reading, settings: Settings | None, options: Options) -> list[Pairing]:
    """The runs that the files form.

    First those that settings state of one of the files, then whole ones by their scripts and commands, then the
    configs that are left.
    """
    has_stated = settings is not None and bool(settings.runs)
    beside = _beside(reading)
    if not reading.scripts and not reading.shells and not has_stated and not beside:
        return pair(reading.configs, reading.accelerate)
    from dslint.runs.files import Files
    from dslint.runs.whole_runs import found_in, whole_runs

    scripts = [*reading.scripts, *(one for one in beside if one.path.endswith(SCRIPT_ENDINGS))]
    shells = [*reading.shells, *(one for one in beside if not one.path.endswith(SCRIPT_ENDINGS))]
    found = found_in(reading.configs, reading.accelerate, scripts, shells)
    found = replace(found, beside=frozenset(source.path for source in beside))
    sources = [*reading.configs, *reading.scripts, *reading.shells, *(one.source for one in reading.accelerate)]
    files = Files([*sources, *beside])
    stated: list[Pairing] = []
    if settings is not None and has_stated:
        from dslint.runs.stated_runs import stated_runs

        at_hand = {os.path.realpath(source.path) for source in sources}
        stated = stated_runs(settings, options, files, at_hand)
    spoken_for = {os.path.realpath(source.path) for run in stated for source in run.sources}
    asked = {os.path.realpath(source.path) for source in sources}
    whole = [
        run
        for run in whole_runs(found, files)
        if not _is_spoken_for(run, spoken_for) and (not beside or _is_asked_for(run, asked))
    ]
    taken = {os.path.realpath(source.path) for run in (*stated, *whole) for source in run.sources}
    configs = [config for config in reading.configs if os.path.realpath(config.path) not in taken]
    accelerate = [one for one in reading.accelerate if os.path.realpath(one.source.path) not in taken]
    return [*pair(configs, accelerate), *stated, *whole]


def _is_spoken_for(run: Pairing, spoken_for: set[str]) -> bool:
    """Whether all files of a run stand in runs that settings state."""
    return all(os.path.realpath(source.path) in spoken_for for source in run.sources)


def _is_asked_for(run: Pairing, asked: set[str]) -> bool:
    """Whether one of a run's files is among those to check."""
    return any(os.path.realpath(source.path) in asked for source in run.sources)


def _beside(reading: Reading) -> list[Source]:
    """The scripts and commands near files that were named one by one; in a folder they are found anyway."""
    named = [source for source in (*reading.configs, *reading.scripts) if source.path not in reading.found]
    named += [document.source for document in reading.accelerate if document.source.path not in reading.found]
    if not named or reading.found or reading.shells:
        return []
    from dslint.neighbours import files_naming

    return files_naming([source for source in named if os.path.isfile(source.path)])


def is_surely_a_config(document: Document) -> bool:
    """Whether a file that nobody named is a DeepSpeed config: by its name and a key, or by two keys."""
    value = document.value
    if not isinstance(value, dict):
        return document.problem is not None or bool(document.placeholders)
    if any(name in value for name in TRAINER_NAMES):
        return False  # the Trainer's arguments in a file, some of which are called as DeepSpeed's keys
    known = load_schema()["properties"]
    return sum(name in known for name in value) >= (1 if has_config_name(document.source.path) else 2)

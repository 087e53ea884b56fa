"""A config that script or command name, and that isn't there."""

from __future__ import annotations

import os
import re

from dslint.documents.source import Source, Span
from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.launch.facts import launch_of
from dslint.runs.launch.launch import Launch
from dslint.runs.script.config_use import config_uses, reference_of
from dslint.runs.script.reading import Deeds

WRITERS = frozenset(["dump", "write_text", "write", "save", "copy", "copyfile", "safe_dump", "hf_hub_download"])
"""Last names of calls by which a script may write the file itself."""


def missing_config(facts: Facts) -> tuple[Item, ...]:
    """The path of a config that isn't where the command or the script is (one item or none).

    Silent where the file may be made on the way, and where the command's folder can't be told.
    """
    launch, deeds, path = launch_of(facts), facts.run.script, facts.run.missing
    if path is None or deeds is None or os.path.isabs(path) or launch.environment_unknown:
        return ()
    if _moves(launch) or _is_spoken_of_elsewhere(launch, path) or _may_be_written(deeds):
        return ()
    source, span = _place(facts, deeds, path)
    return (Item({"path": path}, source, span),)


def _moves(launch: Launch) -> bool:
    """Whether the command may run in a folder that can't be told."""
    return launch.directory is None and _CHANGES_FOLDER.search(launch.source.data) is not None


_CHANGES_FOLDER = re.compile(rb"\b(?:cd|pushd|chdir)\b")


def _is_spoken_of_elsewhere(launch: Launch, path: str) -> bool:
    """Whether the shell script has the file's name beside the command's own words, so that it may make it."""
    name = os.path.basename(path)
    words = [word.text for word in launch.arguments if isinstance(word.text, str)]
    return launch.source.data.count(name.encode()) > sum(name in word for word in words)


def _may_be_written(deeds: Deeds) -> bool:
    return any(call.dotted.rpartition(".")[2] in WRITERS for call in deeds.calls)


def _place(facts: Facts, deeds: Deeds, path: str) -> tuple[Source, Span]:
    launch = launch_of(facts)
    for word in launch.arguments:
        if isinstance(word.text, str) and word.text.rpartition("=")[2] == path:
            return launch.source, word.span
    use = next((use for use in config_uses(deeds) if reference_of(use.value) == path), None)
    return (launch.source, launch.span) if use is None else deeds.script.place(use.node)

"""A config that script or command name, and that isn't there."""

from __future__ import annotations

import os

from dslint.documents.source import Source, Span
from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.launch.facts import launch_of
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
    name = os.path.basename(path).encode()
    is_folder_known = launch.directory is None or isinstance(launch.directory, str)
    if not is_folder_known or launch.source.data.count(name) > 1 or _may_be_written(deeds):
        return ()
    source, span = _place(facts, deeds, path)
    return (Item({"path": path}, source, span),)


def _may_be_written(deeds: Deeds) -> bool:
    return any(call.dotted.rpartition(".")[2] in WRITERS for call in deeds.calls)


def _place(facts: Facts, deeds: Deeds, path: str) -> tuple[Source, Span]:
    launch = launch_of(facts)
    for word in launch.arguments:
        if isinstance(word.text, str) and word.text.rpartition("=")[2] == path:
            return launch.source, word.span
    use = next((use for use in config_uses(deeds) if reference_of(use.value) == path), None)
    return (launch.source, launch.span) if use is None else deeds.script.place(use.node)

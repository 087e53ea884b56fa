"""Finds the entry of a file behind a config key, so that the key can be changed where it stands."""

from __future__ import annotations

from typing import Any

from dslint.documents.document import Document, NodePath
from dslint.documents.excerpt import ExcerptSource
from dslint.runs import accelerate
from dslint.runs.facts import Facts
from dslint.runs.keys import NamePath
from dslint.runs.unknown import Unknown


class NotWritableError(Exception):
    """A config key that has no entry to change; the message says why, as the end of a sentence."""


def written_entry(facts: Facts, path: NamePath) -> tuple[Document, NodePath]:
    """The file that holds a key of the run's config, or would, and the path there.

    Old names of keys and sections are taken for what they stand for; an Accelerate file's inline keys have names
    of their own. A switch that stands for a section (`cpu_offload`) is taken for it as a whole, but has no room
    for its device: that is given a path in the new section, and a fix has to take the switch away as well.

    Raises:
        NotWritableError: if the key can't be changed in the file.
    """
    document = facts.document
    if document.language == "none":
        raise NotWritableError("the config is not among the files")
    if isinstance(document.source, ExcerptSource):
        raise NotWritableError("the config stands inside a shell script")
    if isinstance(facts.given(".".join(("config", *path))), Unknown):
        raise NotWritableError("nobody can tell from the files what stands there")
    started_by = facts.run.accelerate
    if started_by is not None and started_by.source is document.source:
        return started_by, _inline(started_by, path)
    written = _by_its_written_name(facts, path)
    _must_have_room(document.value, written)
    return document, written


def _inline(document: Document, path: NamePath) -> NodePath:
    """The path in an Accelerate file; of a section, if it has a single key of it."""
    names = accelerate.IN_DEEPSPEED_TERMS
    given = [name for name in accelerate.section_of(document) if names.get(name, ())[: len(path)] == path]
    meant = [name for name, there in names.items() if there == path] or given
    if len(meant) == 1:
        return (accelerate.SECTION, meant[0])
    if meant:
        raise NotWritableError("several of Accelerate's inline keys stand for it")
    raise NotWritableError("Accelerate's inline keys have no name for it; a DeepSpeed config file would")


def _by_its_written_name(facts: Facts, path: NamePath) -> NodePath:
    """The path under the names that the file uses."""
    names = facts.config.written_names
    for length in range(len(path), 0, -1):
        old = names.get(path[:length])
        if old is None:
            continue
        if len(old) == length:
            return (*old, *path[length:])
        return path  # a boolean, or an old switch, gives way to a section
    return path


def _must_have_room(value: Any, path: NodePath) -> None:
    """See that no value other than a section stands where sections are due.

    Raises:
        NotWritableError: naming what stands there.
    """
    for length, name in enumerate(path[:-1], 1):
        value = value.get(name) if isinstance(value, dict) else None
        is_replaceable = value is None or (isinstance(value, bool) and path[length:] == ("stage",))
        if not isinstance(value, dict) and not is_replaceable:
            raise NotWritableError(f"{'.'.join(map(str, path[:length]))} is no section")

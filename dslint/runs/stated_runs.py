"""The runs that `[[tool.dslint.runs]]` states, since the files by themselves don't show them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Set
from typing import TYPE_CHECKING

from dslint.documents.document import Document
from dslint.documents.yaml_reader import read_yaml
from dslint.runs.files import Files
from dslint.runs.linking import Pairing
from dslint.runs.run import Options
from dslint.runs.whole_runs import Found, found_in, pairings_of

if TYPE_CHECKING:
    from dslint.settings.settings import Settings, StatedRun


def stated_runs(settings: Settings, options: Options, files: Files, at_hand: Set[str]) -> list[Pairing]:
    """The stated runs that one of the checked files belongs to.

    Args:
        settings: what states them.
        options: what the command line says, which wins over them.
        files: where their files are looked up.
        at_hand: the real paths of the files that are checked.
    """
    runs: list[Pairing] = []
    for stated in settings.runs:
        if any(os.path.realpath(path) in at_hand for path in _paths(stated)):
            runs += _runs(stated, settings.options(options, stated), files)
    return runs


def _paths(stated: StatedRun) -> Iterator[str]:
    yield from (
        path for path in (stated.config, stated.script, stated.launch, stated.accelerate) if path is not None
    )


def _runs(stated: StatedRun, options: Options, files: Files) -> list[Pairing]:
    """The runs of one entry: one for each command in its launch file that starts its script."""
    script = files.at(stated.script) if stated.script else None
    shell = files.at(stated.launch) if stated.launch else None
    config = files.at(stated.config) if stated.config else None
    accelerate = _document(stated, files)
    found: Found = found_in(
        [], [accelerate] if accelerate else [], [script] if script else [], [shell] if shell else []
    )
    return pairings_of(found, files, config=config, accelerate=accelerate, options=options)


def _document(stated: StatedRun, files: Files) -> Document | None:
    source = files.at(stated.accelerate) if stated.accelerate else None
    return None if source is None else read_yaml(source)

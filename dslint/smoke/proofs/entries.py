"""Entries of a config that are said to have no effect, and the config without them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator
from typing import Any

from dslint.documents.document import Document, NodePath
from dslint.rulebook.finding import Finding
from dslint.runs.old_names import with_new_names
from dslint.runs.run import Run
from dslint.smoke.trial import Trial


def idle_entries(run: Run, named: Any, findings: Iterable[Finding]) -> tuple[Document, list[NodePath]]:
    """The entries of a run that are said to have no effect, and the document that holds them.

    Args:
        run: the run.
        named: the `ignored` of the rule's effect: one dotted key or several; anything else for where the
            findings stand.
        findings: the rule's findings in the run.
    """
    if isinstance(named, str | list | tuple):
        keys = [named] if isinstance(named, str) else named
        paths: list[NodePath] = [tuple(key.split(".")) for key in keys]
        return run.config, [path for path in paths if path in run.config.keys]
    findings = list(findings)
    document = run.config
    if run.accelerate is not None and any(one.location.source == run.accelerate.source for one in findings):
        document = run.accelerate
    starts = {one.location.span.start for one in findings if one.location.source == document.source}
    return document, [path for path, span in document.keys.items() if span.start in starts]


def parsed_names(document: Document, paths: Iterable[NodePath]) -> Iterator[str]:
    """What DeepSpeed calls these entries once they are parsed: by their new names, without `stage3_`."""
    _, written_at = with_new_names(document.value)
    for path in paths:
        for name in (path[-1], *(new[-1] for new, old in written_at.items() if old == path)):
            yield str(name).removeprefix("stage3_")


def without(trial: Trial, document: Document, paths: Iterable[NodePath]) -> Trial:
    """The trial of the same run without these entries."""
    pruned = json.dumps(_pruned(document, paths))  # which is YAML too
    if document.source.path.endswith((".yaml", ".yml")):
        return dataclasses.replace(trial, accelerate=pruned)
    return dataclasses.replace(trial, config=pruned)


def _pruned(document: Document, paths: Iterable[NodePath]) -> Any:
    value = json.loads(json.dumps(document.value))
    for *above, last in paths:
        section = value
        for step in above:
            section = section[step]
        section.pop(last, None)
    return value

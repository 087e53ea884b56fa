"""`dslint runs`: which files form which run, and every fact with where it comes from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dslint.lint import facts_of
from dslint.reports.style import Style
from dslint.runs.fact_table import FACTS
from dslint.runs.facts import ARGUMENTS, Facts
from dslint.runs.run import Run
from dslint.runs.unknown import Unknown

MAIN_FACTS = (
    *("framework", "loader", "ranks", "dp_size", "train_batch", "micro_batch", "accumulation", "zero_stage"),
    *("optimizer.kind", "scheduler.kind", "gpu.name", "gpu.memory"),
)
"""The facts beside the config's own keys that are shown to everybody; --all shows the others."""

WIDEST_VALUE = 60
"""Characters of a value that are shown."""


@dataclass(frozen=True)
class KnownFact:
    """A fact of a run, ready to be shown.

    Attributes:
        name: its name, as in rules.
        value: its value in words.
        origin: where it comes from.
    """

    name: str
    value: str
    origin: str


def text_runs(runs: Sequence[Run], style: Style, *, everything: bool) -> str:
    """The runs for people."""
    blocks = ["\n".join(_run(number, run, style, everything)) for number, run in enumerate(runs, 1)]
    count = f"{len(runs)} run" if len(runs) == 1 else f"{len(runs)} runs"
    return "\n\n".join([*blocks, f"Found {count}." if runs else "Found no runs."])


def json_runs(runs: Sequence[Run], *, everything: bool) -> str:
    """The runs as JSON: a list of {files, facts}."""
    content = [
        {
            "files": dict(files_of(run)),
            "facts": [fact.__dict__ for fact in facts_with_origin(run, everything=everything)],
        }
        for run in runs
    ]
    return json.dumps(content, indent=2, ensure_ascii=False)


def _run(number: int, run: Run, style: Style, everything: bool) -> Iterator[str]:
    yield style.bold(f"run {number}")
    for role, path in files_of(run):
        yield f"  {role:<10} {path}"
    facts = list(facts_with_origin(run, everything=everything))
    width = max((len(fact.name) for fact in facts), default=0)
    wide = max((len(fact.value) for fact in facts), default=0)
    for fact in facts:
        yield f"  {fact.name:<{width}}  {fact.value:<{wide}}  {style.dim(fact.origin)}".rstrip()


def files_of(run: Run) -> list[tuple[str, str]]:
    """The files of a run by what they are in it."""
    files = []
    if run.launch is not None:
        place = run.launch.source.place(run.launch.span.start)
        files.append(("launch", f"{run.launch.source.path}:{place} ({run.launch.launcher})"))
    if run.script is not None:
        files.append(("script", run.script.script.source.path))
    if run.accelerate is not None:
        files.append(("accelerate", run.accelerate.source.path))
    if run.config.language == "none":
        files.append(("config", "unknown: nothing that can be followed names one"))
    elif run.accelerate is None or run.config.source is not run.accelerate.source:
        files.append(("config", _config_place(run)))
    return files


def _config_place(run: Run) -> str:
    source = run.config.source
    if run.config.language != "python":
        return source.path
    return f"{source.path}:{source.place(run.config.values[()].start)} (a dict)"


def facts_with_origin(run: Run, *, everything: bool) -> Iterator[KnownFact]:
    """The facts of a run: scalars first, then what the config gives, then the Trainer's arguments.

    Args:
        run: the run.
        everything: whether to show defaults, lists and further facts too.
    """
    facts = facts_of(run)
    yield KnownFact("deepspeed", facts.release.text, _version_origin(run))
    others = [name for name, fact in FACTS.items() if not fact.fields and name not in MAIN_FACTS]
    for name in (*MAIN_FACTS, *(others if everything else ())):
        value = facts.value(name)
        if everything or not _says_nothing(value):
            yield KnownFact(name, _words(value), _origin(facts, name))
    yield from _config_facts(facts, everything)
    yield from _argument_facts(facts, everything)
    if everything:
        yield from _lists(facts)


def _config_facts(facts: Facts, everything: bool) -> Iterator[KnownFact]:
    given = [path for path in facts.document.keys if all(isinstance(step, str) for step in path)]
    names = {".".join(map(str, path)): None for path in given}
    if everything:
        names |= {".".join(path): None for path in facts.keys.paths()}
    for dotted in names:
        name = f"config.{dotted}"
        value = facts.value(name)
        if not isinstance(value, dict):
            yield KnownFact(name, _words(value), _origin(facts, name))


def _argument_facts(facts: Facts, everything: bool) -> Iterator[KnownFact]:
    if facts.arguments is None:
        return
    from dslint.runs.trainer_arguments import NAMES

    for argument in sorted(NAMES):
        name = ARGUMENTS + argument
        if everything or facts.given(name) is True:
            yield KnownFact(name, _words(facts.value(name)), _origin(facts, name))


def _lists(facts: Facts) -> Iterator[KnownFact]:
    for name, fact in FACTS.items():
        if fact.fields:
            for item in facts.value(name) or ():
                place = item.source.place(item.span.start)
                told = {key: value for key, value in item.fields.items() if not isinstance(value, Unknown)}
                yield KnownFact(name, _words(told), f"{item.source.path}:{place}")


def _says_nothing(value: Any) -> bool:
    return value is None or (isinstance(value, Unknown) and not value.needs)


def _words(value: Any) -> str:
    if isinstance(value, Unknown):
        return "unknown"
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= WIDEST_VALUE else text[: WIDEST_VALUE - 1] + "…"


def _origin(facts: Facts, name: str) -> str:
    value = facts.value(name)
    place = facts.place_if_given(name)
    where = "" if place is None else f"{place[0].path}:{place[0].place(place[1].start)}"
    if isinstance(value, Unknown):
        needs = "; ".join(sorted(value.needs))
        return ", ".join(part for part in (where, f"needs {needs}" if needs else "can't be told") if part)
    if where:
        is_filled = name.startswith("config.") and facts.written(name) == "auto" and value != "auto"
        return f"{where}, filled in by the Trainer" if is_filled else where
    if name.startswith("config."):
        return f"DeepSpeed {facts.release.text}'s default"
    if name.startswith(ARGUMENTS):
        return "the Trainer's default"
    return _inferred(facts, name)


def _inferred(facts: Facts, name: str) -> str:
    options = facts.run.options
    if name == "ranks" and options.gpus is not None:
        return "--gpus, or the settings" if options.nodes is None else "--gpus and --nodes, or the settings"
    if name.startswith("gpu."):
        return "--gpu, or the settings"
    if name == "loader" and options.loader is not None:
        return "--loader"
    if name in ("loader", "read_by_hugging_face", "framework") and facts.run.script is not None:
        return f"from what {facts.run.script.script.source.path} calls"
    return "derived"


def _version_origin(run: Run) -> str:
    if run.version is None:
        return "assumed: the newest known release"
    version = run.version
    where = version.where
    return where if version.exact else f"{where} leaves the release open"

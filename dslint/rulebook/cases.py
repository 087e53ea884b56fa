"""The examples of a rule as runs, so that they can be judged and proved."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dslint.documents.config_reader import read_config
from dslint.documents.source import Source
from dslint.documents.yaml_reader import read_yaml
from dslint.rulebook.rule_text import RuleText
from dslint.runs import accelerate
from dslint.runs.gpus import find_gpu
from dslint.runs.releases import NEWEST, parse_release
from dslint.runs.run import Options, Run
from dslint.runs.versions import KnownVersion

Case = Mapping[str, Any]

Fixed = str | Mapping[str, Any] | None
GOOD, WORDS = "good", "words"
"""What a fix makes of a bad example: the good one; nothing, since it is in words only there."""

CONFIG_PARTS = frozenset(["config", "text"])


@dataclass(frozen=True)
class Example:
    """One pair of a rule: a case that breaks it and one that keeps it.

    Attributes:
        name: what the pair shows.
        bad: the case in which the rule fires.
        good: the case in which it is silent.
        marks: the text under the finding's span in `bad`, where the rule says it.
        says: a piece of the finding's message in `bad`, where the rule says it.
        fixed: what each of the rule's ways to mend it makes of `bad`: GOOD, WORDS, the parts of the case that
            change, or None where the way isn't open.
    """

    name: str
    bad: Case
    good: Case
    marks: str | None
    says: str | None
    fixed: tuple[Fixed, ...] = ()


def examples(rule: RuleText) -> Iterator[Example]:
    """The examples in a rule's file."""
    for data in rule.data["examples"]:
        fixed = data.get("fixed", [])
        yield Example(
            data["name"],
            data["bad"],
            data["good"],
            data.get("marks"),
            data.get("says"),
            tuple(fixed if isinstance(fixed, list) else [fixed]),
        )


def mended_examples(rule: RuleText) -> Iterator[Example]:
    """The examples for each way to mend them, with what the fix makes of `bad` in the place of `good`."""
    for example in examples(rule):
        for number, fixed in enumerate(example.fixed, 1):
            if isinstance(fixed, Mapping):
                way = f", fix {number}" if len(example.fixed) > 1 else ", fixed"
                yield dataclasses.replace(
                    example, name=example.name + way, good=with_changes(example.bad, fixed), fixed=()
                )


def with_changes(case: Case, parts: Mapping[str, Any]) -> Case:
    """A case with other contents for some of its files; a config as data gives way to one as text and back."""
    kept = {
        name: value for name, value in case.items() if not (name in CONFIG_PARTS and CONFIG_PARTS & set(parts))
    }
    return {**kept, **parts}


def with_files(case: Case, texts: Mapping[str, str]) -> Case:
    """A case in which some files have other texts, by the files' names."""
    parts = {PARTS[name]: text for name, text in texts.items() if name in PARTS}
    others = {name: text for name, text in texts.items() if name not in PARTS}
    files = {"files": {**case.get("files", {}), **others}} if others else {}
    return with_changes(case, {**parts, **files})


def run_of(case: Case) -> Run:
    """The run that a case describes; without a release of its own it is the newest known."""
    release = parse_release(case["deepspeed"]) if "deepspeed" in case else NEWEST
    options = Options(
        gpus=case.get("gpus"),
        nodes=case.get("nodes"),
        gpu=find_gpu(case["gpu"]) if "gpu" in case else None,
        deepspeed=release,
        loader=case.get("loader"),
        packages=case.get("packages", {}),
    )
    version = KnownVersion(release, exact=True, where="the example", path=None, line=None)
    if "script" in case or "launch" in case:
        return dataclasses.replace(_whole_run(case, options), version=version)
    if "accelerate" in case:
        started_by = read_yaml(Source("accelerate.yaml", case["accelerate"].encode()))
        config = _config(case) if _has_config(case) else accelerate.as_config(started_by)
        return Run(config, started_by, options, version)
    return Run(_config(case), None, options, version)


def _whole_run(case: Case, options: Options) -> Run:
    """The first run that the files of a case form."""
    from dslint.runs import linking
    from dslint.runs.files import GivenFiles
    from dslint.runs.whole_runs import Found, launches_in, whole_runs

    sources = {name: Source(name, text.encode()) for name, text in _files(case).items()}
    shell = sources.get(LAUNCH)
    launches, embedded = launches_in(shell) if shell is not None else ((), ())
    found = Found(
        configs=tuple(source for name, source in sources.items() if name == CONFIG),
        accelerate=tuple(read_yaml(source) for name, source in sources.items() if name == ACCELERATE),
        scripts=tuple(source for name, source in sources.items() if name == SCRIPT),
        launches=launches,
        embedded=embedded,
    )
    pairings = whole_runs(found, GivenFiles(sources))
    if not pairings:
        raise ValueError("the files of this example form no run")
    return linking.run_of(pairings[0], options)


CONFIG, SCRIPT, LAUNCH, ACCELERATE = "ds_config.json", "train.py", "run.sh", "accelerate.yaml"
"""The names of an example's files."""

PARTS = {CONFIG: "text", SCRIPT: "script", LAUNCH: "launch", ACCELERATE: "accelerate"}
"""By file, the part of a case that holds its text."""


def _files(case: Case) -> dict[str, str]:
    """The files of an example, by name."""
    files = dict(case.get("files", {}))
    for name, key in ((SCRIPT, "script"), (LAUNCH, "launch"), (ACCELERATE, "accelerate"), (CONFIG, "text")):
        if key in case:
            files[name] = case[key]
    if "config" in case:
        files[CONFIG] = json.dumps(case["config"], indent=2)
    return files


def _has_config(case: Case) -> bool:
    return "config" in case or "text" in case


def _config(case: Case) -> Any:
    text = case["text"] if "text" in case else json.dumps(case.get("config", {}), indent=2)
    return read_config(Source("ds_config.json", text.encode()))

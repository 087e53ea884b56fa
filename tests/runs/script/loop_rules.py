"""Judges a script and its config by the rules about raw training loops, DS600 to DS639."""

from __future__ import annotations

import textwrap
from functools import lru_cache
from pathlib import Path
from typing import Any

from dslint.data import data_folder
from dslint.lint import facts_of
from dslint.rulebook.cases import run_of
from dslint.rulebook.judge import judge
from dslint.rulebook.loader import load_rules
from dslint.rulebook.rule import Rule

ADAM = {"type": "AdamW", "params": {"lr": 0.001}}


@lru_cache(maxsize=1)
def rules() -> tuple[Rule, ...]:
    files = load_rules(Path(data_folder("rules")))
    return tuple(one.rule for one in files if "DS600" <= one.rule.code <= "DS639")


def config(stage: int | None = 2, **more: Any) -> dict[str, Any]:
    """A config that trains; a key of None is left out."""
    whole = {"train_micro_batch_size_per_gpu": 1, "optimizer": ADAM, **more}
    if stage is not None:
        whole["zero_optimization"] = {"stage": stage, **whole.get("zero_optimization", {})}
    return {key: value for key, value in whole.items() if value is not None}


def fired(script: str, settings: dict[str, Any] | None = None, **case: Any) -> list[str]:
    """The codes of the findings on a script beside ds_config.json, in order."""
    whole = {"script": textwrap.dedent(script), "gpus": 8, "config": settings or config(), **case}
    return sorted(finding.code for finding in judge(facts_of(run_of(whole)), rules()).findings)


def loop(body: str, before: str = "", given: str = "model=model", names: str = "engine, *_") -> str:
    """A script with a loop over batches x, y; `before` stands between the model and initialize."""
    head = f"""
import deepspeed, torch
from torch import nn
from data import make_model, loader

model = make_model()
{textwrap.dedent(before).strip()}
{names} = deepspeed.initialize({given}, config="ds_config.json")
for i, (x, y) in enumerate(loader):
"""
    return head + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n"

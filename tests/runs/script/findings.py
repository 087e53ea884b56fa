"""Judges scripts by single rules, for the tests beside it."""

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

HEAD = """
import argparse
import copy
import deepspeed
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from tiny import Net, batches

"""


@lru_cache
def _rules() -> dict[str, Rule]:
    return {one.rule.code: one.rule for one in load_rules(Path(data_folder("rules")))}


def config(stage: int, **sections: Any) -> dict[str, Any]:
    """A config of a ZeRO stage."""
    zero = {"stage": stage, **sections.pop("zero", {})}
    return {"train_micro_batch_size_per_gpu": 2, "zero_optimization": zero, **sections}


def found(code: str, script: str, stage: int = 3, **case: Any) -> list[str]:
    """The texts under the findings of a rule in a script, which begins with HEAD.

    Args:
        code: the rule.
        script: the rest of the script; it may be indented.
        stage: the ZeRO stage of the config; the key `config` in `case` stands above it.
        case: further keys of an example (`gpus`, `launch`, `files`, ...), None for none of it; two GPUs where it
            doesn't say.
    """
    text = HEAD + textwrap.dedent(script)
    case = {"config": config(stage), "gpus": 2, **case, "script": text}
    whole = {key: value for key, value in case.items() if value is not None}
    findings = judge(facts_of(run_of(whole)), [_rules()[code]]).findings
    return [finding.location.source.slice(finding.location.span) for finding in findings]

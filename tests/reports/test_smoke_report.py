"""A hang as `dslint smoke` shows it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from dslint.reports.smoke_report import smoke_json, smoke_text
from dslint.reports.style import Style
from dslint.smoke.listening import Heard
from dslint.smoke.smoking import Smoked
from dslint.smoke.verdict import judge

SCHEMA = Path(__file__).parents[2] / "schemas" / "smoke.schema.json"
SITE = "/env/lib/python3.11/site-packages"
STACK = f"""Stack (most recent call first):
  File "{SITE}/torch/distributed/distributed_c10d.py", line 5356 in barrier
  File "{SITE}/torch/distributed/c10d_logger.py", line 83 in wrapper
  File "{SITE}/deepspeed/runtime/engine.py", line 4900 in save_checkpoint
  File "{{folder}}/train.py", line 2 in <module>
  File "/tools/dslint/smoke/script/intercept.py", line 78 in execute"""
OTHER = """Stack (most recent call first):
  File "{folder}/train.py", line 3 in <module>
  File "/tools/dslint/smoke/script/intercept.py", line 78 in execute"""


@pytest.fixture
def hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Smoked:
    (tmp_path / "train.py").write_text("if rank == 0:\n    engine.save_checkpoint('out')\nwhile True: pass\n")
    monkeypatch.chdir(tmp_path)
    stacks = ["", STACK, STACK, OTHER]
    ranks = [Heard(seen={"phase": "step"}, in_time=False, stack=text.format(folder=tmp_path)) for text in stacks]
    ranks[1].output = "the end of what it printed"
    return Smoked("train.py", judge(ranks, mode="real", world=4, same_batch=False), "--gpus", "")


def test_stacks_are_shown_once_for_all_ranks_that_share_them(hang: Smoked) -> None:
    lines = smoke_text(hang, Style(colour=False)).splitlines()
    assert lines[lines.index("  ranks 1 and 2 stood at:") :] == [
        "  ranks 1 and 2 stood at:",
        "  | torch/distributed/distributed_c10d.py:5356 in barrier",
        "  | deepspeed/runtime/engine.py:4900 in save_checkpoint",
        "  | train.py:2 in <module>: engine.save_checkpoint('out')",
        "  rank 3 stood at:",
        "  | train.py:3 in <module>: while True: pass",
    ]


def test_json_tells_where_each_rank_stands(hang: Smoked) -> None:
    report = json.loads(smoke_json([hang]))
    jsonschema.validate(report, json.loads(SCHEMA.read_text()))
    silent, first, second, last = report["results"][0]["standing"]
    assert (silent["rank"], silent["state"]) == (0, "unknown")
    assert first == {
        "rank": 1, "state": "waits", "collective": "barrier", "through": "engine.save_checkpoint", "inside": None,
        "file": "train.py", "line": 2, "function": "<module>", "code": "engine.save_checkpoint('out')",
        "called_from": None,
    }  # fmt: skip
    assert second == {**first, "rank": 2}
    assert (last["state"], last["code"], last["collective"]) == ("runs", "while True: pass", None)
    assert len(report["results"][0]["stacks"]) == 3

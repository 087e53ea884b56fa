"""What runs before an example's script in the same folder, and the files that stand for its own."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from dslint.smoke.client import SmokeServer
from dslint.smoke.proofs.script_cases import script_trial_of
from dslint.smoke.proofs.stand_ins import complaints
from dslint.smoke.script_outcome import Outcome, outcome
from dslint.smoke.script_trial import ScriptTrial

PARTS = {"out/latest": "a", "out/a/mp_rank_00_model_states.pt": ""}


def trial(files: dict[str, str], before: dict[str, str] | None = None) -> ScriptTrial:
    own = {"train.py": "x", "ds_config.json": "{}"}
    return ScriptTrial({**files, **own}, before=ScriptTrial({**own, **(before or {})}))


def outcome_with(before: dict[str, Any] | None) -> Outcome:
    values: dict[str, Any] = {field.name: None for field in dataclasses.fields(Outcome)}
    return Outcome(**{**values, "before": before})


def told(files: dict[str, str], written: list[str], failure: str = "") -> list[str]:
    return list(complaints(trial(files), outcome_with({"failure": failure, "files": written})))


def test_files_that_were_written_may_be_stood_in_for() -> None:
    assert told(PARTS, [*PARTS, "out/zero_to_fp32.py", "notes.txt"]) == []


def test_a_file_that_is_not_written_is_complained_of() -> None:
    (text,) = told(PARTS, ["out/latest", "out/b/mp_rank_00_model_states.pt"])
    assert "doesn't write out/a/mp_rank_00_model_states.pt" in text


def test_a_part_that_nothing_stands_for_is_complained_of() -> None:
    (text,) = told(PARTS, [*PARTS, "out/a/zero_pp_rank_0_mp_rank_00_optim_states.pt"])
    assert text.endswith("also writes out/a/zero_pp_rank_0_mp_rank_00_optim_states.pt")
    (text,) = told({"out/a/mp_rank_00_model_states.pt": "", "out/log": ""}, [*PARTS, "out/log"])
    assert text.endswith("also writes out/latest")


def test_a_failure_is_all_that_is_told() -> None:
    assert told(PARTS, [], "E in script: no") == ["what runs before fails: E in script: no"]
    assert list(complaints(trial(PARTS), outcome_with(None))) != []


def test_without_anything_before_there_is_nothing_to_say() -> None:
    assert list(complaints(ScriptTrial({"a": ""}), outcome_with(None))) == []


def test_it_survives_the_way_to_the_server() -> None:
    whole = trial(PARTS)
    assert ScriptTrial.from_data(json.loads(json.dumps(whole.as_data()))) == whole


def test_it_has_real_ranks_unless_it_says_otherwise() -> None:
    case = {"script": "x", "gpus": 8, "before": {"script": "y", "gpus": 2}}
    found = script_trial_of(case, {}, has_gpu=False)
    assert found.before is not None
    assert (found.mode, found.before.mode, found.before.ranks) == ("simulated", "real", 2)


def test_the_script_finds_what_was_written_before_it(server: SmokeServer) -> None:
    before = {"script": "import os\nopen(f'rank{os.environ[\"RANK\"]}.txt', 'w').write('real')\n", "gpus": 2}
    script = "from tiny import say\nsay(both=[open(f'rank{rank}.txt').read() for rank in (0, 1)])\n"
    case = {
        "script": script,
        "gpus": 4,
        "files": {"rank0.txt": "", "rank1.txt": "", "own.txt": ""},
        "before": before,
    }
    whole = script_trial_of(case, {}, has_gpu=False)
    found = outcome(server.run_script(whole))
    assert found.said == {"both": ["real", "real"]}
    assert found.before == {"failure": "", "files": ["rank0.txt", "rank1.txt"]}
    assert dict(found.files) == {}
    assert list(complaints(whole, found)) == ["what runs before doesn't write own.txt, but rank0.txt, rank1.txt"]


def test_a_script_before_that_fails_is_told_of(server: SmokeServer) -> None:
    case = {"script": "pass", "gpus": 2, "before": {"script": "raise ValueError('no')", "gpus": 1}}
    whole = script_trial_of(case, {}, has_gpu=False)
    assert list(complaints(whole, outcome(server.run_script(whole)))) == [
        "what runs before fails: ValueError in script: no"
    ]

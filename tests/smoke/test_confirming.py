"""Findings on a user's run: whether what they predict happens, on real DeepSpeed."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from dslint.documents.source import Source, Span
from dslint.lint import facts_of
from dslint.rulebook.cache import shipped_rule_text, shipped_rules
from dslint.rulebook.finding import Finding, Location
from dslint.rulebook.judge import judge
from dslint.runs.files import Files
from dslint.runs.linking import Pairing, run_of
from dslint.runs.releases import parse_release
from dslint.runs.run import Options
from dslint.runs.whole_runs import found_in, whole_runs
from dslint.smoke.confirming import CONFIRMED, NOT_REPRODUCED, NOT_RUN, SEEN, Confirmation, Confirmer, Question
from dslint.smoke.environment import SmokeError
from dslint.smoke.listening import Progress
from dslint.smoke.planning import SmokeOptions
from dslint.smoke.script_place import TINY

OPTIONS = SmokeOptions(
    gpus=8,
    nodes=None,
    gpu=None,
    mode=None,
    device="cpu",
    loader=None,
    steps=2,
    timeout=60.0,
    python=sys.executable,
)
PLAIN = {"train_micro_batch_size_per_gpu": 1}
BOTH = {**PLAIN, "fp16": {"enabled": True}, "bf16": {"enabled": True}}
ADAM = {"type": "AdamW", "params": {"lr": 0.001, "torch_adam": True}}
TWO_RANKS = "torchrun --nproc_per_node=2 train.py"


class Heard:
    """What a Confirmer tells on the way.

    Attributes:
        begun: the paths of what was tried, in order.
        lines: what was told of it.
    """

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.lines: list[dict[str, Any]] = []

    def begin(self, path: str) -> Progress:
        self.begun.append(path)
        return self.lines.append


@pytest.fixture(scope="module")
def heard() -> Heard:
    return Heard()


@pytest.fixture(scope="module")
def confirmer(heard: Heard) -> Iterator[Confirmer]:
    pytest.importorskip("deepspeed")
    with Confirmer(OPTIONS, heard.begin) as confirmer:
        yield confirmer


# --- runs and questions ---


def alone(folder: Path, config: Mapping[str, Any], **stated: Any) -> Pairing:
    """A config by itself."""
    source = Source(str(folder / "ds_config.json"), json.dumps(config, indent=2).encode())
    return Pairing(source, None, stated=Options(gpus=8, **stated) if stated else None)


def whole(folder: Path, script: str, config: Mapping[str, Any] | None = None, launch: str = TWO_RANKS) -> Pairing:
    """A script, its config and its launch command, which lie on the disk, and beside them the module `tiny`."""
    files = {"train.py": script, "run.sh": launch, "tiny.py": TINY.read_text()}
    if config is not None:
        files["ds_config.json"] = json.dumps(config, indent=2)
    for name, text in files.items():
        (folder / name).write_text(text)
    sources = {name: Source(str(folder / name), text.encode()) for name, text in files.items()}
    configs = [sources["ds_config.json"]] if config is not None else []
    found = found_in(configs, [], [sources["train.py"]], [sources["run.sh"]])
    return whole_runs(found, Files(sources.values()))[0]


def with_script(pairing: Pairing, script: str) -> Pairing:
    """The same run with another text of the script, which isn't written to the disk."""
    assert pairing.script is not None
    assert pairing.launch is not None
    source = Source(pairing.script.script.source.path, script.encode())
    others = [one for one in pairing.sources if one is not pairing.script.script.source]
    found = found_in([one for one in others if one.path.endswith(".json")], [], [source], [pairing.launch.source])
    return whole_runs(found, Files([*others, source]))[0]


def finding(pairing: Pairing, code: str) -> Finding:
    rules = [rule for rule in shipped_rules() if rule.code == code]
    return judge(facts_of(run_of(pairing, OPTIONS.of_run())), rules).findings[0]


def ask(
    confirmer: Confirmer,
    code: str,
    before: Pairing,
    after: Pairing | None = None,
    effect: Mapping[str, Any] | None = None,
) -> Confirmation:
    text = shipped_rule_text(code)
    assert text is not None
    return confirmer.answer(Question(finding(before, code), effect or text.data["effect"], before, after))


# --- a tiny model through the config ---

pytestmark = pytest.mark.deepspeed


def test_an_exception_that_the_fix_takes_away_is_confirmed(confirmer: Confirmer, tmp_path: Path) -> None:
    found = ask(confirmer, "DS101", alone(tmp_path, BOTH), alone(tmp_path, {**PLAIN, "bf16": {"enabled": True}}))
    assert found.verdict == CONFIRMED
    assert found.told == (
        "AssertionError ends it during parse: bfloat16 and fp16 modes cannot be simultaneously enabled; "
        "with the fix it trains, saves and loads"
    )


def test_batch_sizes_are_tried_on_the_ranks_of_the_run(confirmer: Confirmer, tmp_path: Path) -> None:
    sizes = {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}
    before, after = (alone(tmp_path, {**sizes, "train_batch_size": size}) for size in (32, 64))
    found = ask(confirmer, "DS201", before, after)
    assert found.verdict == CONFIRMED
    assert "32 != 4 * 2 * 8" in found.told
    assert ask(confirmer, "DS201", before).verdict == SEEN


def test_a_key_without_effect_is_confirmed_by_leaving_it_out(confirmer: Confirmer, tmp_path: Path) -> None:
    config = {**PLAIN, "zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}}
    found = ask(
        confirmer, "DS401", alone(tmp_path, config), alone(tmp_path, {**PLAIN, "zero_optimization": {"stage": 2}})
    )
    assert found.verdict == CONFIRMED
    assert found.told.startswith("it trains the same with and without offload_param")


def test_weights_that_are_not_saved_are_seen_and_with_a_fix_confirmed(
    confirmer: Confirmer, tmp_path: Path
) -> None:
    zero = {"stage": 3, "stage3_gather_16bit_weights_on_model_save": True}
    before = alone(tmp_path, {**PLAIN, "zero_optimization": {"stage": 3}})
    after = alone(tmp_path, {**PLAIN, "zero_optimization": zero})
    assert ask(confirmer, "DS301", before).verdict == SEEN
    assert ask(confirmer, "DS301", before, after).verdict == CONFIRMED


def test_a_fix_that_does_not_help_leaves_a_finding_seen(confirmer: Confirmer, tmp_path: Path) -> None:
    after = alone(tmp_path, {**PLAIN, "bf16": {"enabled": True}, "zero_optimization": {"stage": 7}})
    found = ask(confirmer, "DS101", alone(tmp_path, BOTH), after)
    assert found.verdict == SEEN
    assert "; with the fix ValidationError ends it during parse" in found.told


@pytest.mark.parametrize(
    ("effect", "told"),
    [
        ({"raises": "RuntimeError", "during": "step"}, "no RuntimeError comes: it trains, saves and loads"),
        ({"ignored": "zero_optimization.stage"}, "the entry has an effect: without it"),
        ({"shows": {"dtype": "float16"}}, "dtype is float32, where float16 was predicted"),
    ],
)
def test_what_does_not_come_is_said(
    confirmer: Confirmer, tmp_path: Path, effect: dict[str, Any], told: str
) -> None:
    before = alone(tmp_path, {**PLAIN, "zero_optimization": {"stage": 3}})
    found = ask(confirmer, "DS301", before, effect=effect)
    assert found.verdict == NOT_REPRODUCED
    assert found.told.startswith(told)


def test_a_failure_of_another_kind_that_the_fix_takes_away_is_said(confirmer: Confirmer, tmp_path: Path) -> None:
    after = alone(tmp_path, {**PLAIN, "bf16": {"enabled": True}})
    found = ask(confirmer, "DS101", alone(tmp_path, BOTH), after, {"raises": "TypeError", "during": "parse"})
    assert found.verdict == NOT_REPRODUCED
    assert found.told.startswith("AssertionError ends it during parse: bfloat16 and fp16 modes")


def test_another_error_that_stays_keeps_a_finding_from_being_tried(confirmer: Confirmer, tmp_path: Path) -> None:
    sizes = {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}
    before, after = (alone(tmp_path, {**BOTH, **sizes, "train_batch_size": size}) for size in (32, 64))
    found = ask(confirmer, "DS201", before, after)
    assert found.verdict == NOT_RUN
    assert found.told.startswith("something else ends the run, with the fix as well: AssertionError")
    stage = alone(tmp_path, {**BOTH, "zero_optimization": {"stage": 7}})
    assert ask(confirmer, "DS101", stage).told.startswith("another failure ends the run first: ValidationError")


def test_a_trial_is_run_once(confirmer: Confirmer, heard: Heard, tmp_path: Path) -> None:
    before = alone(tmp_path, {**BOTH, "steps_per_print": 77})
    ask(confirmer, "DS101", before)
    count = len(heard.begun)
    ask(confirmer, "DS101", before)
    assert len(heard.begun) == count


# --- what can't be tried ---


def test_what_no_trial_shows_starts_no_server(tmp_path: Path) -> None:
    options = dataclasses.replace(OPTIONS, python="/nowhere/python")
    with Confirmer(options, Heard().begin) as confirmer:
        found = ask(confirmer, "DS101", alone(tmp_path, BOTH), effect={"slow": True})
        assert (found.verdict, found.told) == (NOT_RUN, "a few steps don't show how fast a run is")
        with pytest.raises(SmokeError, match="can't start /nowhere/python"):
            ask(confirmer, "DS101", alone(tmp_path, BOTH))


def test_another_release_is_not_run(confirmer: Confirmer, tmp_path: Path) -> None:
    found = ask(confirmer, "DS101", alone(tmp_path, BOTH, deepspeed=parse_release("0.14.0")))
    assert found.verdict == NOT_RUN
    assert found.told.startswith("the run uses DeepSpeed 0.14.0 (--deepspeed), and ")


def test_an_effect_of_a_script_is_not_run_without_one(confirmer: Confirmer, tmp_path: Path) -> None:
    found = ask(confirmer, "DS101", alone(tmp_path, BOTH), effect={"trains-nothing": True})
    assert (found.verdict, found.told) == (NOT_RUN, "only the run's script, which isn't there, could show it")


# --- whole runs, smoked as they are ---


def test_a_clean_run_passes_and_a_broken_one_says_why(confirmer: Confirmer, tmp_path: Path) -> None:
    well, ill = confirmer.smoke(alone(tmp_path, PLAIN)), confirmer.smoke(alone(tmp_path, BOTH))
    assert well.told == "it trains, saves and loads"
    assert well.verdict is not None
    assert ill.told.startswith("AssertionError ends it during parse")


def test_a_config_that_nobody_can_tell_is_not_smoked(confirmer: Confirmer, tmp_path: Path) -> None:
    script = "import deepspeed, sys\nengine, *_ = deepspeed.initialize(model=None, config=sys.argv[1])\n"
    found = confirmer.smoke(whole(tmp_path, script))
    assert found.verdict is None
    assert found.told.endswith("the DeepSpeed config that it takes can't be told from the files")


# --- the user's own script ---

BACKWARD = """\
import deepspeed
from tiny import Net, batches

engine, *_ = deepspeed.initialize(model=Net(), config="ds_config.json")
while True:
    for x, y in batches(2, engine.device):
        loss = engine(x, y)
        loss.backward()
        engine.step()
"""
AT_STAGE_0 = {**PLAIN, "optimizer": ADAM}


def test_a_script_is_executed_elsewhere_and_said_to_be(confirmer: Confirmer, heard: Heard, tmp_path: Path) -> None:
    pairing = whole(tmp_path, BACKWARD, AT_STAGE_0)
    before = sorted(path.name for path in tmp_path.iterdir())
    found = ask(confirmer, "DS600", pairing)
    assert found.verdict == SEEN
    assert found.told.startswith(
        f"RuntimeError ends it at {tmp_path}/train.py:8: Direct calls to tensor.backward()"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert {"executing": f"{tmp_path}/train.py", "ranks": 2} in heard.lines


def test_the_mended_text_runs_for_a_few_steps(confirmer: Confirmer, tmp_path: Path) -> None:
    before = whole(tmp_path, BACKWARD, AT_STAGE_0)
    after = with_script(before, BACKWARD.replace("loss.backward()", "engine.backward(loss)"))
    found = ask(confirmer, "DS600", before, after)
    assert found.verdict == CONFIRMED
    assert found.told.endswith("; with the fix it takes 2 optimizer steps")
    assert (tmp_path / "train.py").read_text() == BACKWARD


WRITING = """\
import deepspeed
from tiny import Net, batches

with open("log.txt", "a") as log:
    log.write("begun")
engine, *_ = deepspeed.initialize(model=Net(), config="ds_config.json")
for x, y in batches(9, engine.device):
    loss = engine(x, y)
    loss.backward()
    engine.step()
"""


def test_a_script_can_not_write_into_the_folder_of_the_user(confirmer: Confirmer, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("mine")
    assert ask(confirmer, "DS600", whole(tmp_path, WRITING, AT_STAGE_0)).verdict == SEEN
    script = WRITING.replace('"log.txt", "a"', f'"{tmp_path}/out.txt", "w"')
    found = ask(confirmer, "DS600", whole(tmp_path, script, AT_STAGE_0))
    assert (tmp_path / "log.txt").read_text() == "mine"
    assert not (tmp_path / "out.txt").exists()
    assert found.verdict == NOT_RUN
    assert "PermissionError" in found.told


def test_a_script_that_ends_by_another_fault_is_not_run(confirmer: Confirmer, tmp_path: Path) -> None:
    script = BACKWARD.replace("while True:", 'open("no-such-file")\nwhile True:')
    found = ask(confirmer, "DS600", whole(tmp_path, script, AT_STAGE_0))
    assert found.verdict == NOT_RUN
    assert found.told.startswith(
        f"another failure ends the run first: FileNotFoundError ends it at {tmp_path}/train.py:5"
    )


def test_what_has_not_come_within_the_steps_is_left_open(confirmer: Confirmer, tmp_path: Path) -> None:
    asked = finding(whole(tmp_path, BACKWARD, AT_STAGE_0), "DS600")
    well = whole(tmp_path, BACKWARD.replace("loss.backward()", "engine.backward(loss)"), AT_STAGE_0)
    found = confirmer.answer(Question(asked, {"raises": "KeyError", "during": "script"}, well, None))
    assert (found.verdict, found.told) == (NOT_RUN, "no KeyError so far: it goes on after 2 optimizer steps")


def test_a_script_goes_on_to_what_stands_behind_its_training(confirmer: Confirmer, tmp_path: Path) -> None:
    script = BACKWARD.replace("loss.backward()", "engine.backward(loss)").replace(
        "while True:", "for _ in range(3):"
    )
    before = whole(tmp_path, f'{script}raise KeyError("late")\n', AT_STAGE_0)
    assert before.script is not None
    source = before.script.script.source
    late = Location(source, Span(source.data.index(b"raise"), len(source.data) - 1))
    asked = dataclasses.replace(finding(whole(tmp_path, BACKWARD, AT_STAGE_0), "DS600"), location=late)
    found = confirmer.answer(Question(asked, {"raises": "KeyError", "during": "script"}, before, None))
    (tmp_path / "train.py").write_bytes(source.data)
    assert (found.verdict, found.told) == (SEEN, f"KeyError ends it at {tmp_path}/train.py:10: 'late'")


def test_ranks_that_wait_for_each_other_are_confirmed(confirmer: Confirmer, tmp_path: Path) -> None:
    script = BACKWARD.replace("loss.backward()", "engine.backward(loss)")
    guarded = "        if engine.global_rank == 0:\n            torch.distributed.barrier()\n"
    before = whole(tmp_path, f"import torch\n{script}{guarded}", AT_STAGE_0)
    after = with_script(before, f"import torch\n{script}")
    found = ask(confirmer, "DS640", before, after)
    assert found.verdict == CONFIRMED
    assert found.told == (
        f"its ranks wait for each other (rank 0 in barrier at {tmp_path}/train.py:12; rank 1 in all_reduce, "
        f"called by engine.backward at {tmp_path}/train.py:9); with the fix it takes 2 optimizer steps"
    )


def test_an_effect_that_no_script_shows_is_not_executed_for(
    confirmer: Confirmer, heard: Heard, tmp_path: Path
) -> None:
    before, count = whole(tmp_path, BACKWARD, AT_STAGE_0), len(heard.begun)
    found = ask(confirmer, "DS600", before, effect={"says": {"loss": 1.0}})
    assert (found.verdict, found.told) == (NOT_RUN, "nothing that a script does by itself would tell it")
    assert ask(confirmer, "DS600", before, effect={"trains-otherwise": True}).verdict == NOT_RUN
    assert len(heard.begun) == count


def test_a_launcher_is_tried_without_the_script(confirmer: Confirmer, heard: Heard, tmp_path: Path) -> None:
    script = 'import deepspeed\ndeepspeed.initialize(model=None, config="ds_config.json")\n'
    before = whole(tmp_path, script, PLAIN, launch="deepspeed --num_gpus=2 --foo 3 train.py")
    count = sum("executing" in line for line in heard.lines)
    found = ask(confirmer, "DS801", before)
    assert found.verdict == SEEN
    assert found.told == "it exits with 2 during launch"
    assert sum("executing" in line for line in heard.lines) == count

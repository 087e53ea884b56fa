"""What counts as shown by two scripts, on made-up outcomes, and how examples become trials."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dslint.rulebook.cases import Example
from dslint.smoke.client import SmokeServer
from dslint.smoke.listening import Heard
from dslint.smoke.proofs.planning import NoLaunchError, planned
from dslint.smoke.proofs.prover import Prover
from dslint.smoke.proofs.script_cases import script_trial_of
from dslint.smoke.proofs.script_evidence import TriedScripts, complaints, shown
from dslint.smoke.script_outcome import Outcome, outcome


def heard(
    phase: str = "done", *, finished: bool = True, in_time: bool = True, exit_code: int = 0, **seen: Any
) -> Heard:
    return Heard(seen={"phase": phase, **seen}, finished=finished, in_time=in_time, exit_code=exit_code)


def failed(
    name: str, *bases: str, phase: str = "script", message: str = "", at: float = 1.0, code: Any = None
) -> Heard:
    return heard(phase, exception=name, bases=[name, *bases], message=message, failed_at=at, code=code)


def engine(steps: int = 2, moved: bool = True, norm: float = 1.0) -> dict[str, Any]:
    return {"steps": steps, "moved": moved, "fingerprint": [[0.5, norm]]}


def file(name: str, tensors: int, empty: int = 0) -> dict[str, Any]:
    return {"name": name, "tensors": tensors, "empty": empty, "elements": 10 * (tensors - empty)}


DONE = outcome([heard(engines=[engine()])])
OTHER = outcome([heard(engines=[engine(norm=1.1)])])
STUCK = outcome([heard("script", finished=False, in_time=False), heard()])
EXITS = outcome([failed("SystemExit", "BaseException", message="2", code=2)])
RAISES = outcome([failed("KeyError", "LookupError", message="no such key")])


@pytest.mark.parametrize(
    ("effect", "bad", "good", "complaint"),
    [
        ({"raises": "LookupError"}, RAISES, DONE, None),
        ({"raises": "LookupError", "message": "such"}, RAISES, DONE, None),
        ({"raises": "LookupError", "message": "no .* key"}, RAISES, DONE, None),
        ({"raises": "LookupError", "message": "(other"}, RAISES, DONE, "nothing says '(other'"),
        ({"raises": "LookupError", "during": "launch"}, RAISES, DONE, "should fail when it is launched"),
        ({"raises": "ValueError"}, RAISES, DONE, "should raise ValueError, but KeyError during script"),
        ({"raises": "ValueError"}, DONE, DONE, "but it runs to its end"),
        ({"raises": "KeyError"}, RAISES, RAISES, "the good example fails"),
        ({"exits": 2}, EXITS, DONE, None),
        ({"exits": 1}, EXITS, DONE, "should exit with 1"),
        ({"hangs": True}, STUCK, DONE, None),
        ({"hangs": True}, RAISES, DONE, "should hang"),
        ({"trains-nothing": True}, outcome([heard(engines=[engine(steps=0, moved=False)])]), DONE, None),
        ({"trains-nothing": True}, outcome([heard(engines=[engine(moved=False)])]), DONE, None),
        ({"trains-nothing": True}, outcome([heard(engines=[])]), DONE, "it makes no engine"),
        ({"trains-nothing": True}, DONE, DONE, "takes 2 optimizer steps and its parameters move"),
        ({"trains-otherwise": True}, OTHER, DONE, None),
        ({"trains-otherwise": True}, DONE, DONE, "same parameters"),
        ({"trains-otherwise": True}, outcome([heard()]), DONE, "or none can be seen"),
        ({"like-good": True}, DONE, DONE, None),
        ({"like-good": True}, OTHER, DONE, "should end with the same"),
        ({"not-deepspeed": True}, outcome([heard()]), DONE, None),
        ({"not-deepspeed": True}, DONE, DONE, "makes an engine"),
        ({"saves-empty": True}, outcome([heard(files=[file("a.pt", 4, 4)])]), outcome([heard(files=[file("a.pt", 4)])]), None),
        ({"saves-empty": True}, outcome([heard(files=[file("a.pt", 3)])]), outcome([heard(files=[file("a.pt", 4)])]), None),
        ({"saves-empty": True}, outcome([heard(files=[file("a.pt", 4)])]), outcome([heard(files=[file("a.pt", 4)])]), "4 whole ones"),
        ({"saves-empty": True}, DONE, outcome([heard(files=[file("a.pt", 4)])]), "writes no file of tensors"),
        ({"saves-nothing": True}, DONE, outcome([heard(files=[file("a.pt", 4)])]), None),
        ({"saves-nothing": True}, DONE, DONE, "the good example saves nothing either"),
        ({"warns": True}, outcome([heard(warned=["x"])]), DONE, None),
        ({"warns": True}, DONE, DONE, "nothing is warned of"),
        ({"says": {"a": 1}}, outcome([heard(said={"a": 1})]), DONE, None),
        ({"says": {"a": 1}}, outcome([heard(said={"a": 2})]), DONE, "should say a as 1, but it is 2"),
        ({"says": {"a": 1}}, *[outcome([heard(said={"a": 1})])] * 2, "the good example says a as 1 too"),
        ({"shows": {"ranks": 4}}, outcome([heard(ranks=4)]), outcome([heard(ranks=8)]), None),
        ({"ignored": True}, DONE, DONE, "nothing shows the effect"),
        ({"ignored": True, "like-good": True}, DONE, DONE, None),
        ({"advice": True}, DONE, DONE, None),
    ],
)  # fmt: skip
def test_complaints(effect: dict[str, Any], bad: Outcome, good: Outcome, complaint: str | None) -> None:
    found = complaints(effect, TriedScripts(bad, good))
    assert len(found) == (complaint is not None), found
    assert complaint is None or complaint in found[0]
    assert shown(effect, TriedScripts(bad, good))


# --- the ranks of one trial ---


def test_of_several_that_failed_the_first_is_told_of() -> None:
    found = outcome(
        [failed("RuntimeError", message="Connection closed by peer", at=2.0), failed("KeyError", at=1.0)]
    )
    assert (found.exception, found.hung) == ("KeyError", False)


def test_a_rank_that_is_left_alone_hangs_in_reality() -> None:
    assert outcome([heard(), failed("RuntimeError", message="Connection closed by peer [127.0.0.1]:2")]).hung


def test_what_others_raise_once_a_rank_had_to_be_ended_does_not_count() -> None:
    late = failed("RuntimeError", message="Connection closed by peer")
    found = outcome([heard("script", finished=False, in_time=False, exit_code=-9), late])
    assert (found.exception, found.hung) == ("Timeout", True)


def test_a_rank_that_died_comes_before_those_that_were_ended_for_it() -> None:
    found = outcome(
        [heard("script", finished=False, exit_code=-9), heard("script", finished=False, exit_code=-11)]
    )
    assert (found.exception, found.message) == ("Died", "exit code -11")


def test_facts_and_files_come_from_all_ranks() -> None:
    ranks = [
        heard(said={"a": 0, "b": 0}, files=[file("x.pt", 1)]),
        heard(said={"a": 1, "c": 1}, files=[file("y.pt", 1)]),
    ]
    found = outcome(ranks)
    assert found.said == {"a": 0, "b": 0, "c": 1}
    assert set(found.files) == {"x.pt", "y.pt"}


# --- examples as trials ---


@pytest.mark.parametrize(
    ("case", "effect", "mode", "ranks"),
    [
        ({"script": ""}, {"raises": "X"}, "simulated", 8),
        ({"script": "", "gpus": 4, "nodes": 2}, {"raises": "X"}, "simulated", 8),
        ({"script": ""}, {"hangs": True}, "real", 2),
        ({"script": "", "gpus": 4}, {"trains-otherwise": True}, "real", 4),
        ({"script": "", "gpus": 64}, {"like-good": True}, "real", 4),
        ({"script": "", "gpus": 4, "ranks-are": "simulated"}, {"hangs": True}, "simulated", 4),
        ({"script": "", "launch": "torchrun --nproc_per_node=3 train.py"}, {"hangs": True}, "real", 3),
    ],
)
def test_ranks_of_an_example(case: dict[str, Any], effect: dict[str, Any], mode: str, ranks: int) -> None:
    trial = script_trial_of(case, effect, has_gpu=False)
    assert (trial.mode, trial.ranks) == (mode, ranks)


def test_files_of_an_example_lie_beside_each_other() -> None:
    trial = script_trial_of(
        {"script": "s", "launch": "python train.py", "text": "{}", "files": {"hosts": "h"}}, {}, has_gpu=False
    )
    assert trial.files == {"hosts": "h", "ds_config.json": "{}", "train.py": "s", "run.sh": "python train.py"}
    assert trial.words == ("python", "train.py")
    assert script_trial_of({"launch": "python train.py"}, {}, has_gpu=False).script is None


def test_a_launch_command_is_found_among_other_lines() -> None:
    plan = planned(
        {"launch": "#!/bin/bash\nset -e\nexport A=1 B='x y'\nC=2 deepspeed --num_gpus=2 \\\n  train.py # now\n"}
    )
    assert plan is not None
    assert plan.words == ("deepspeed", "--num_gpus=2", "train.py")
    assert (plan.environment, plan.ranks) == ({"A": "1", "B": "x y", "C": "2"}, 2)
    for text in ("echo deepspeed", "deepspeed 'train.py"):
        with pytest.raises(NoLaunchError):
            planned({"launch": text})


# --- a rule ---

SCRIPT = "import deepspeed\nfrom tiny import Net, batches\nengine, *_ = deepspeed.initialize(model=Net(), config='ds_config.json')\n"


@pytest.mark.deepspeed
def test_the_prover_runs_the_scripts_of_a_rule(server: SmokeServer) -> None:
    rule: Any = SimpleNamespace(
        rule=SimpleNamespace(code="DS600"),
        text=SimpleNamespace(data={"effect": {"raises": "AttributeError", "during": "script"}}),
    )
    config = {"train_micro_batch_size_per_gpu": 2}
    example = Example(
        "one",
        {"script": SCRIPT + "engine.stepp()\n", "config": config},
        {"script": SCRIPT, "config": config},
        None,
        None,
    )
    proof = Prover(server).prove_example(rule, example)
    assert proof.complaints == ()
    assert proof.shown == "AttributeError in script"
    assert not Prover(server).prove_example(rule, Example("two", example.good, example.good, None, None)).holds

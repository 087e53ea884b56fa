"""Resuming from checkpoints that are on the disk: what surely fails, and all that may be well."""

from __future__ import annotations

import textwrap
from functools import cache
from pathlib import Path

import pytest

from dslint.data import data_folder
from dslint.linked import find_runs
from dslint.lint import facts_of
from dslint.rulebook.cases import run_of
from dslint.rulebook.judge import judge
from dslint.rulebook.loader import load_rules
from dslint.rulebook.rule import Rule
from dslint.runs.run import Options

from .findings import config, found

MAKE = 'engine, *_ = deepspeed.initialize(model=Net(), config="ds_config.json")\n'
LOAD = MAKE + 'engine.load_checkpoint("out")\n'
CODES = ("DS916", "DS917", "DS918", "DS919", "DS920", "DS921", "DS922", "DS924", "DS925")


@cache
def rules() -> tuple[Rule, ...]:
    return tuple(one.rule for one in load_rules(Path(data_folder("rules"))) if one.rule.code in CODES)


def saved(
    ranks: int, stage: int = 2, tag: str = "step1", latest: str | None = "step1", pre: str = ""
) -> dict[str, str]:
    """The files of a checkpoint in the folder `out`, as examples name them."""
    below = f"out/{tag}/"
    files = {} if latest is None else {"out/latest": latest}
    if stage:
        files |= {f"{below}{pre}zero_pp_rank_{rank}_mp_rank_00_optim_states.pt": "" for rank in range(ranks)}
    if stage == 3:
        return files | {f"{below}zero_pp_rank_{rank}_mp_rank_00_model_states.pt": "" for rank in range(ranks)}
    return files | {f"{below}mp_rank_00_model_states.pt": ""}


def fired(script: str, files: dict[str, str], stage: int = 2, **case: object) -> list[str]:
    """The codes about resuming that a script of two ranks gets."""
    return [code for code in CODES if found(code, script, stage, files=files, **case)]


def test_other_ranks_are_told_of_at_each_stage_of_zero() -> None:
    assert [fired(LOAD, saved(4, stage), stage) for stage in (1, 2, 3)] == [["DS916"]] * 3
    assert fired(LOAD, saved(1), 2) == ["DS916"]


def test_the_same_ranks_are_fine() -> None:
    assert [fired(LOAD, saved(2, stage), stage) for stage in (0, 1, 2, 3)] == [[]] * 4
    assert fired(LOAD, saved(2, 1), 2) == []


def test_without_zero_the_number_of_ranks_does_not_matter() -> None:
    assert fired(LOAD, saved(4, 0), 0) == []


@pytest.mark.parametrize(
    "options", ["load_optimizer_states=False", "load_module_only=True", "load_optimizer_states=args.all", "**more"]
)
def test_a_load_without_optimizer_states_or_with_unknown_options_is_left_alone(options: str) -> None:
    script = f'args = read()\nmore = read()\n{MAKE}engine.load_checkpoint("out", {options})\n'
    assert fired(script, saved(4)) == []


def test_a_custom_load_is_left_alone() -> None:
    assert fired(MAKE + 'engine.load_checkpoint("out", custom_load_fn=copy)\n', saved(4, 3), 2) == []


def test_a_folder_that_is_not_there_tells_nothing() -> None:
    assert fired(LOAD, {}) == []
    assert fired(MAKE + 'engine.load_checkpoint("other")\n', saved(4)) == []


def test_a_folder_without_checkpoints_is_a_first_start() -> None:
    assert fired(LOAD, {"out/log.txt": ""}) == []
    assert fired(LOAD, {"out/runs/events.1": ""}) == []


@pytest.mark.parametrize(
    "before",
    [
        'engine.save_checkpoint("out")',
        "engine.save_checkpoint(folder)",
        'shutil.copytree("elsewhere", "out")',
        'subprocess.run(["fetch", "out"])',
        'fetch("out")',
        'fetch(into="out/step1")',
        'open("out/latest", "w").write("step2")',
        "snapshot_download(repo)",
    ],
)
def test_what_may_change_the_folder_before_silences(before: str) -> None:
    imports = "import shutil, subprocess\nfrom fetching import fetch, folder, repo, snapshot_download\n"
    assert fired(f'{imports}{MAKE}{before}\nengine.load_checkpoint("out")\n', saved(4)) == []


@pytest.mark.parametrize(
    "before",
    [
        "engine.train()",
        'engine.save_checkpoint("other")',
        'os.makedirs("out", exist_ok=True)',
        'print("from", "out")',
    ],
)
def test_what_leaves_the_folder_as_it_is_does_not(before: str) -> None:
    assert fired(f'import os\n{MAKE}{before}\nengine.load_checkpoint("out")\n', saved(4)) == ["DS916"]


def test_a_save_after_the_load_does_not_matter() -> None:
    assert fired(LOAD + 'engine.save_checkpoint("out")\n', saved(4)) == ["DS916"]


@pytest.mark.parametrize(
    "head", ["if args.resume:", "for path in paths:", "while waiting():", "if not os.path.exists('out'):"]
)
def test_a_load_that_may_not_happen_is_left_alone(head: str) -> None:
    script = f"import os\nfrom mine import args, paths, waiting\n{MAKE}{head}\n    engine.load_checkpoint('out')\n"
    assert fired(script, saved(4)) == []


def test_a_load_whose_failure_is_caught_is_left_alone() -> None:
    script = f"{MAKE}try:\n    engine.load_checkpoint('out')\nexcept Exception:\n    print('anew')\n"
    assert fired(script, saved(4)) == []
    within = (
        f"{MAKE}def load():\n    engine.load_checkpoint('out')\ntry:\n    load()\nexcept Exception:\n    pass\n"
    )
    assert fired(within, saved(4)) == []


@pytest.mark.parametrize(
    "test",
    [
        "os.path.isdir('out')",
        "os.path.exists('out/latest')",
        "Path('out').exists() and os.path.isfile('out/latest')",
    ],
)
def test_a_question_for_files_that_are_there_is_answered(test: str) -> None:
    script = f"import os\nfrom pathlib import Path\n{MAKE}if {test}:\n    engine.load_checkpoint('out')\n"
    assert fired(script, saved(4)) == ["DS916"]


def test_a_path_from_the_launch_command_is_followed() -> None:
    script = (
        "parser = argparse.ArgumentParser()\nparser.add_argument('--resume')\n"
        f"args = parser.parse_args()\n{MAKE}if args.resume:\n    engine.load_checkpoint(args.resume)\n"
    )
    launch = "torchrun --nproc_per_node=8 train.py --resume out\n"
    assert fired(script, saved(4), launch=launch, gpus=None) == ["DS916"]
    assert fired(script, saved(8), launch=launch, gpus=None) == []
    assert fired(script, saved(4), launch="torchrun --nproc_per_node=8 train.py\n", gpus=None) == []


@pytest.mark.parametrize(
    "line",
    ["python fetch.py out", "rm -rf out", "deepspeed --num_gpus 4 first.py", "cp -r old out", "bash fetch.sh"],
)
def test_commands_before_the_launch_that_may_change_the_folder_silence(line: str) -> None:
    launch = f"{line}\ntorchrun --nproc_per_node=8 train.py\n"
    assert fired(LOAD, saved(4), launch=launch, gpus=None) == []


def test_harmless_commands_before_the_launch_do_not() -> None:
    launch = "# python fetch.py out\nset -e\nexport OUT=out\ntorchrun --nproc_per_node=8 train.py\n"
    assert fired(LOAD, saved(4), launch=launch, gpus=None) == ["DS916"]


def test_the_disk_of_one_node_may_hold_its_own_parts_only() -> None:
    launch = "torchrun --nnodes=2 --nproc_per_node=8 --node_rank=0 --master_addr=a --master_port=1 train.py\n"
    assert fired(LOAD, saved(8), launch=launch, gpus=None) == []
    assert fired(LOAD, saved(32), launch=launch, gpus=None) == ["DS916"]


@pytest.mark.parametrize(
    "section",
    [
        {"tensor_parallel": {"autotp_size": 2}},
        {"sequence_parallel_size": 2},
        {"zero": {"mics_shard_size": 2}},
        {"nebula": {"enabled": True}},
        {"zero": {"offload_optimizer": {"device": "nvme", "nvme_path": "/x"}}},
    ],
)
def test_ranks_that_share_a_model_or_keep_states_elsewhere_are_not_counted(section: dict[str, object]) -> None:
    files = saved(4, 3)
    assert found("DS916", LOAD, config=config(3, **section), files=files) == []


def test_a_model_parallel_unit_silences() -> None:
    script = 'deepspeed.initialize(model=Net(), config="ds_config.json", mpu=unit())\n'
    assert fired(f'engine, *_ = {script}engine.load_checkpoint("out")\n', saved(4)) == []


def test_parts_of_which_some_are_missing_tell_nothing() -> None:
    files = saved(4)
    del files["out/step1/zero_pp_rank_1_mp_rank_00_optim_states.pt"]
    assert fired(LOAD, files) == []


@pytest.mark.parametrize(
    "name",
    ["mp_rank_01_model_states.pt", "layer_00-model_00-model_states.pt", "expp_rank_0_mp_rank_00_optim_states.pt"],
)
def test_checkpoints_of_other_kinds_tell_nothing(name: str) -> None:
    assert fired(LOAD, {**saved(4), f"out/step1/{name}": ""}) == []


def test_a_universal_checkpoint_is_shared_out_anew() -> None:
    files = {
        **saved(4),
        "out/latest_universal": "uni",
        "out/uni/mp_rank_00_model_states.pt": "",
        "out/uni/zero/optimizer_state.pt": "",
    }
    universal = config(2, checkpoint={"load_universal": True})
    assert fired(LOAD, files, config=universal) == []
    assert fired(LOAD, saved(4), config=universal) == ["DS922"]
    assert fired(MAKE + 'engine.load_checkpoint("out", tag="uni")\n', files) == ["DS918"]


def test_another_stage_is_told_of_whatever_the_options() -> None:
    only = MAKE + 'engine.load_checkpoint("out", load_module_only=True, load_optimizer_states=False)\n'
    assert [fired(script, saved(2, 3), stage) for script in (LOAD, only) for stage in (0, 1, 2)] == [["DS917"]] * 6
    assert [fired(script, saved(2, stage), 3) for script in (LOAD, only) for stage in (0, 1, 2)] == [["DS917"]] * 6
    assert fired(LOAD, saved(4, 3), 2) == ["DS917"]


def test_another_precision_is_told_of_where_the_names_differ() -> None:
    bf16, fp16 = config(2, bf16={"enabled": True}), config(2, fp16={"enabled": True})
    assert fired(LOAD, saved(2, pre="bf16_"), config=bf16) == []
    assert fired(LOAD, saved(2, pre="bf16_"), config=fp16) == ["DS918"]
    assert fired(LOAD, saved(2), config=bf16) == ["DS918"]
    assert fired(LOAD, saved(2), config=fp16) == []
    assert fired(LOAD, saved(4), config=bf16) == ["DS916"]


def test_stage_0_needs_an_optimizer_to_miss_its_states() -> None:
    assert fired(LOAD, saved(2), 0) == []
    with_one = config(0, optimizer={"type": "AdamW", "params": {"lr": 0.1}})
    assert fired(LOAD, saved(2), config=with_one) == ["DS919"]


def test_a_tag_that_is_missing_beside_others_is_told_of() -> None:
    named = MAKE + 'engine.load_checkpoint("out", tag="step2")\n'
    assert fired(named, saved(2)) == ["DS920"]
    assert fired(named, saved(2, tag="step2")) == []
    assert fired(named, {"out/latest": "step2"}) == []
    assert fired(LOAD, saved(2, latest="step2")) == ["DS920"]


def test_a_folder_of_one_tag_is_no_folder_of_checkpoints() -> None:
    assert fired(MAKE + 'engine.load_checkpoint("out/step1")\n', saved(2)) == ["DS921"]


def test_checkpoints_without_latest_are_not_found() -> None:
    files = saved(2, latest=None)
    assert fired(LOAD, files) == ["DS921"]
    assert fired(MAKE + 'engine.load_checkpoint("out", tag="step1")\n', files) == []


@pytest.mark.parametrize("latest", ["", "a\nb", "x" * 300])
def test_a_file_latest_that_names_no_tag_tells_nothing(latest: str) -> None:
    assert fired(LOAD, saved(2, latest=latest)) == []


def test_a_script_that_asks_what_was_loaded_is_left_alone() -> None:
    script = (
        MAKE
        + 'path, _ = engine.load_checkpoint("out/step1")\nif path is None:\n    engine.load_checkpoint("out")\n'
    )
    assert fired(script, saved(2)) == []


def test_an_earlier_tag_without_optimizer_states_gets_the_weights_of_the_latest() -> None:
    files = {**saved(2, 3, tag="step1", latest="step2"), **saved(2, 3, tag="step2", latest="step2")}
    load = MAKE + 'engine.load_checkpoint("out", tag="{}", load_optimizer_states=False)\n'
    assert fired(load.format("step1"), files, 3) == ["DS924"]
    assert fired(load.format("step2"), files, 3) == []
    below = {**saved(2, 2, tag="step1", latest="step2"), **saved(2, 2, tag="step2", latest="step2")}
    assert fired(load.format("step1"), below, 2) == []


OPTIMIZER = {"optimizer": {"type": "AdamW", "params": {"lr": 0.1}}}


@pytest.mark.parametrize(
    ("options", "stage", "fires"),
    [
        ("load_module_only=True", 3, True),
        ("load_module_only=True, load_optimizer_states=False", 3, False),
        ("load_module_only=True", 2, False),
        ("load_module_only=only", 3, False),
        ("load_module_only=True, custom_load_fn=copy", 3, False),
        ("load_optimizer_states=False", 3, False),
    ],
)
def test_module_only_loads_nothing_at_stage_3(options: str, stage: int, fires: bool) -> None:
    script = f"from mine import only\n{MAKE}if only:\n    engine.load_checkpoint(only, {options})\n"
    assert bool(found("DS923", script, config=config(stage, **OPTIMIZER))) is fires


def test_module_only_without_an_optimizer_or_with_a_universal_checkpoint_is_left_alone() -> None:
    script = MAKE + 'engine.load_checkpoint("out", load_module_only=True)\n'
    assert found("DS923", script, config=config(3)) == []
    assert found("DS923", script, config=config(3, **OPTIMIZER, checkpoint={"load_universal": True})) == []


TRAINER = """
from transformers import Trainer, TrainingArguments
from tiny import causal_lm, dataset
{before}
args = TrainingArguments("runs", deepspeed="ds_config.json", max_steps=2)
trainer = {kind}(model=causal_lm(), args=args, train_dataset=dataset())
{again}trainer.train(resume_from_checkpoint={where})
"""


def trained(
    where: str, ranks: int, number: int = 9, before: str = "", kind: str = "Trainer", again: str = ""
) -> list[str]:
    """The codes for a training by the Trainer that resumes on two ranks."""
    files = {
        f"runs/checkpoint-{number}/{name[4:]}": text for name, text in saved(ranks, tag="global_step1").items()
    }
    files[f"runs/checkpoint-{number}/latest"] = "global_step1"
    script = TRAINER.format(where=where, before=before, kind=kind, again=again)
    case = {"config": {"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}}, "gpus": 2}
    findings = judge(facts_of(run_of({**case, "script": script, "files": files})), rules()).findings
    return [finding.code for finding in findings]


def test_the_trainer_resumes_from_its_newest_folder_or_a_named_one() -> None:
    assert trained("True", 4) == ["DS916"]
    assert trained("True", 2) == []
    assert trained('"runs/checkpoint-9"', 4) == ["DS916"]
    assert trained('"runs/checkpoint-8"', 4) == []
    assert trained("None", 4) == []


@pytest.mark.parametrize(
    ("names", "stated", "fires"),
    [
        (["trainer_state.json", "model.safetensors"], 'deepspeed="ds_config.json", ', True),
        (["trainer_state.json", "global_step9/x"], 'deepspeed="ds_config.json", ', False),
        (["model.safetensors"], 'deepspeed="ds_config.json", ', False),
        (["trainer_state.json"], "", False),
    ],
)
def test_a_folder_of_a_training_without_deepspeed_is_told_of(names: list[str], stated: str, fires: bool) -> None:
    script = TRAINER.format(where='"runs/checkpoint-9"', before="", kind="Trainer", again="")
    script = "# with deepspeed\n" + script.replace('deepspeed="ds_config.json", ', stated)
    case = {"config": config(2), "gpus": 2, "files": {f"runs/checkpoint-9/{name}": "" for name in names}}
    findings = judge(facts_of(run_of({**case, "script": script})), rules()).findings
    assert [finding.code for finding in findings] == (["DS925"] if fires else [])


EXAMPLE = """
import deepspeed
from transformers import HfArgumentParser, Trainer, TrainingArguments
from tiny import causal_lm, dataset

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
trainer = Trainer(model=causal_lm(), args=args, train_dataset=dataset())
checkpoint = None
if args.resume_from_checkpoint is not None:
    checkpoint = args.resume_from_checkpoint
trainer.train(resume_from_checkpoint=checkpoint)
"""


@pytest.mark.parametrize(
    ("words", "ranks", "fires"), [("runs/checkpoint-9", 4, True), ("runs/checkpoint-9", 8, False)]
)
def test_the_launch_command_names_the_folder_of_the_trainer(words: str, ranks: int, fires: bool) -> None:
    files = {f"runs/checkpoint-9/{name[4:]}": text for name, text in saved(ranks, tag="global_step1").items()}
    launch = f"deepspeed --num_gpus 8 train.py --output_dir runs --deepspeed ds_config.json --resume_from_checkpoint {words}"
    case = {
        "config": config(2),
        "script": EXAMPLE,
        "launch": launch,
        "files": {**files, "runs/checkpoint-9/latest": "global_step1"},
    }
    findings = judge(facts_of(run_of(case)), rules()).findings
    assert [finding.code for finding in findings] == (["DS916"] if fires else [])


def test_a_trainer_that_trained_before_or_loads_by_itself_is_left_alone() -> None:
    assert trained("True", 4, again="trainer.train()\n") == []
    own = "class Own(Trainer):\n    def _load_from_checkpoint(self, *given):\n        pass"
    assert trained("True", 4, before=own, kind="Own") == []


# --- on the real disk ---


def checked(folder: Path) -> list[str]:
    runs, _ = find_runs([str(folder)], Options(gpus=2))
    return sorted(finding.code for run in runs for finding in judge(facts_of(run), rules()).findings)


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


SCRIPT = textwrap.dedent(
    """
    import deepspeed
    engine, *_ = deepspeed.initialize(model=make(), config="ds_config.json")
    engine.load_checkpoint("out")
    """
)
FILES = {
    "train.py": SCRIPT,
    "ds_config.json": '{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}}',
}


def test_a_folder_on_the_disk_is_looked_into(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    assert checked(tmp_path) == []
    write(tmp_path, saved(4))
    assert checked(tmp_path) == ["DS916"]


def test_two_folders_that_a_path_may_mean_tell_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "sub", {**FILES, **saved(4)})
    monkeypatch.chdir(tmp_path)
    assert checked(tmp_path / "sub") == ["DS916"]
    write(tmp_path, saved(2))
    assert checked(tmp_path / "sub") == []


@pytest.mark.parametrize("path", ["a\\0b", "\\ud800", "~", "~/out", "x" * 5000, ".", "/", "out\\n"])
def test_odd_paths_are_no_trouble(tmp_path: Path, path: str) -> None:
    write(tmp_path, {**FILES, "train.py": SCRIPT.replace('"out"', f'"{path}"')})
    assert checked(tmp_path) == []


def test_nothing_of_a_checkpoint_is_opened(tmp_path: Path) -> None:
    write(tmp_path, {**FILES, **saved(4)})
    for path in tmp_path.rglob("*.pt"):
        path.unlink()
        path.mkdir()  # opening it would fail
    assert checked(tmp_path) == ["DS916"]

"""Which files form which run."""

from __future__ import annotations

from pathlib import Path

import pytest

from dslint.inputs import read
from dslint.linked import runs_in
from dslint.runs.linking import run_of
from dslint.runs.run import Options, Run

RAW = """
import deepspeed
engine, *_ = deepspeed.initialize(model=make(), config={config})
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def runs(*paths: str) -> list[Run]:
    return [run_of(pairing, Options()) for pairing in runs_in(read(paths), None, Options())]


CONFIG = '{"train_batch_size": 8, "zero_optimization": {"stage": 2}}'


def test_a_script_takes_the_config_that_it_names_though_nobody_gave_it(folder: Path) -> None:
    write(folder, train_DOT_py=RAW.format(config="'conf/ds.json'"), conf__ds_DOT_json=CONFIG)
    (run,) = runs("train.py")
    assert run.config.source.path == "conf/ds.json"
    assert run.script is not None


def test_a_config_that_a_script_takes_is_no_run_by_itself(folder: Path) -> None:
    write(folder, train_DOT_py=RAW.format(config="'ds.json'"), ds_DOT_json=CONFIG)
    assert len(runs("train.py", "ds.json")) == 1


def test_a_name_is_looked_up_beside_the_script_and_above_it(folder: Path) -> None:
    (folder / ".git").mkdir()
    write(folder, src__train_DOT_py=RAW.format(config="'ds.json'"), ds_DOT_json=CONFIG)
    (run,) = runs("src/train.py")
    assert run.config.source.path == "ds.json"
    write(folder, src__ds_DOT_json=CONFIG)
    (folder / "ds.json").unlink()
    (run,) = runs("src/train.py")
    assert run.config.source.path == "src/ds.json"


def test_a_dict_in_the_script_is_the_config_with_places_in_the_script(folder: Path) -> None:
    write(folder, train_DOT_py=RAW.format(config='{"train_batch_size": 8}'))
    (run,) = runs("train.py")
    assert run.config.language == "python"
    assert run.config.source.slice(run.config.keys["train_batch_size",]) == '"train_batch_size"'


def test_the_only_config_at_hand_belongs_to_a_script_that_does_not_tell(folder: Path) -> None:
    write(folder, train_DOT_py=RAW.format(config="pick()"), ds_DOT_json=CONFIG)
    (run,) = runs("train.py", "ds.json")
    assert run.config.source.path == "ds.json"


def test_a_named_config_that_is_missing_is_not_replaced_by_another(folder: Path) -> None:
    write(folder, train_DOT_py=RAW.format(config="'other.json'"), ds_DOT_json=CONFIG)
    found = runs("train.py", "ds.json")
    assert sorted(run.config.language for run in found) == ["json", "none"]


def test_a_script_without_a_word_of_deepspeed_forms_no_run(folder: Path) -> None:
    write(folder, train_DOT_py="import torch", ds_DOT_json=CONFIG)
    (run,) = runs("train.py", "ds.json")
    assert run.script is None


def test_a_function_of_another_module_is_followed(folder: Path) -> None:
    write(
        folder,
        train_DOT_py="import deepspeed\nfrom lib.setup import start\nengine = start(make())\nengine.step()",
        lib__setup_DOT_py=RAW.replace("engine, *_ =", "def start(model):\n    return").format(
            config='{"train_batch_size": 4}'
        ),
    )
    (run,) = runs("train.py")
    assert run.config.source.path == "lib/setup.py"
    assert run.config.value == {"train_batch_size": 4}


def test_modules_that_import_one_another_end(folder: Path) -> None:
    write(folder, a_DOT_py="import deepspeed\nimport b\nb.f()", b_DOT_py="import deepspeed, a\ndef f(): a.g()")
    assert len(runs("a.py")) == 1


# --- a changed file by itself ---


def test_a_config_by_itself_is_checked_with_the_script_and_the_command_that_lead_to_it(folder: Path) -> None:
    (folder / ".git").mkdir()
    write(
        folder,
        conf__ds_DOT_json=CONFIG,
        train_DOT_py=RAW.format(config="'conf/ds.json'"),
        run_DOT_sh="torchrun --nproc_per_node 4 train.py\n",
    )
    (run,) = runs("conf/ds.json")
    assert run.script is not None
    assert run.launch is not None


def test_a_script_that_names_another_file_of_the_same_name_is_left_alone(folder: Path) -> None:
    write(
        folder,
        ds_DOT_json=CONFIG,
        train_DOT_py=RAW.format(config="'other/ds.json'"),
        other__ds_DOT_json=CONFIG,
    )
    (run,) = runs("ds.json")
    assert run.script is None


def test_a_command_takes_the_words_that_variables_hold(folder: Path) -> None:
    write(
        folder,
        ds_DOT_json=CONFIG,
        train_DOT_py="import argparse, deepspeed\np = argparse.ArgumentParser()\np.add_argument('--conf')\n"
        "a = p.parse_args()\nengine, *_ = deepspeed.initialize(model=make(), config=a.conf)",
        run_DOT_sh='CONF=ds.json\nARGS=(--conf $CONF)\ntorchrun --nproc_per_node=2 train.py "${ARGS[@]}"\n',
    )
    (run,) = runs("run.sh")
    assert run.config.source.path == "ds.json"


def test_a_config_that_the_command_writes_itself_has_places_in_the_command(folder: Path) -> None:
    write(
        folder,
        train_DOT_py=RAW.format(config="'ds.json'"),
        run_DOT_sh='STAGE=3\ncat > ds.json <<EOF\n{\n  "zero_optimization": {"stage": $STAGE}\n}\nEOF\n'
        "deepspeed --num_gpus 2 train.py\n",
    )
    (run,) = runs("run.sh")
    assert run.config.value == {"zero_optimization": {"stage": 3}}
    assert run.config.source.place(run.config.keys["zero_optimization",].start).line == 4


def test_a_file_that_the_script_changes_is_known_with_the_places_of_the_file(folder: Path) -> None:
    write(
        folder,
        ds_DOT_json=CONFIG,
        train_DOT_py="import deepspeed, json\nconfig = json.load(open('ds.json'))\nconfig['train_batch_size'] = 16\n"
        "config['fp16'] = {'enabled': True, **more()}\n"
        "engine, *_ = deepspeed.initialize(model=make(), config=config)",
    )
    (run,) = runs("train.py")
    assert run.config.value["train_batch_size"] == 16
    assert run.config.source.path == "ds.json"
    assert run.config.source.slice(run.config.keys["zero_optimization",]) == '"zero_optimization"'
    assert set(run.config.values) >= {("fp16",), ("fp16", "enabled"), ("train_batch_size",)}
    assert run.config.open == {("fp16",)}


def test_what_a_dict_may_hold_beside_its_own_keys_is_unknown(folder: Path) -> None:
    from dslint.lint import facts_of
    from dslint.runs.unknown import Unknown

    write(folder, train_DOT_py=RAW.format(config='{"train_batch_size": 4, **more()}'))
    facts = facts_of(runs("train.py")[0])
    assert facts.value("config.train_batch_size") == 4
    assert isinstance(facts.value("config.zero_optimization.stage"), Unknown)
    assert isinstance(facts.given("config.optimizer"), Unknown)


def test_engines_with_configs_of_their_own_are_runs_of_their_own(folder: Path) -> None:
    write(
        folder,
        train_DOT_py="import deepspeed\nactor, *_ = deepspeed.initialize(model=a(), config={'train_batch_size': 4})\n"
        "critic, *_ = deepspeed.initialize(model=b(), config={'train_batch_size': 8})\nactor.step()\ncritic.step()",
    )
    first, second = runs("train.py")
    assert [run.config.value["train_batch_size"] for run in (first, second)] == [4, 8]
    for run, line in ((first, 4), (second, 5)):
        assert run.script is not None
        steps = [call for call in run.script.calls if call.name == "engine.step"]
        assert [call.node.lineno for call in steps] == [line]


def test_an_engine_beside_a_trainer_is_a_run_of_its_own(folder: Path) -> None:
    from dslint.lint import facts_of

    write(
        folder,
        ds_DOT_json=CONFIG,
        train_DOT_py="import deepspeed\nfrom transformers import Trainer, TrainingArguments\n"
        "args = TrainingArguments(output_dir='o', deepspeed='ds.json')\n"
        "reference, *_ = deepspeed.initialize(model=r(), config={'train_batch_size': 4})\n"
        "Trainer(model=m, args=args).train()",
    )
    assert sorted(str(facts_of(run).framework) for run in runs("train.py")) == ["raw", "trainer"]


def test_a_config_that_another_shell_script_writes_is_not_taken(folder: Path) -> None:
    write(
        folder,
        other_DOT_sh="cat > ds.json <<EOF\n{}\nEOF\ndeepspeed other.py\n",
        run_DOT_sh="torchrun train.py\n",
        train_DOT_py=RAW.format(config="'ds.json'"),
        ds_DOT_json=CONFIG,
    )
    (run,) = [run for run in runs("other.sh", "run.sh") if run.script is not None]
    assert run.config.source.path == "ds.json"


def test_a_command_nearby_that_starts_another_script_of_the_same_name_is_left_alone(folder: Path) -> None:
    write(
        folder,
        run_DOT_sh="torchrun train.py --deepspeed_config x.json\n",
        part__train_DOT_py=RAW.format(config="'ds.json'"),
        part__ds_DOT_json=CONFIG,
    )
    (run,) = runs("part/train.py")
    assert run.launch is None

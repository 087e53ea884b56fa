"""What a user's script needs to be tried: a mirror of its folder, the words of its command, no way to do harm."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dslint.documents.source import Source
from dslint.runs.launch.launch import Launch
from dslint.runs.whole_runs import launches_in
from dslint.smoke.confirm.command import environment_of, relative_to, words_of, working_folder
from dslint.smoke.confirm.sight import first_line
from dslint.smoke.mirror import Budget, Mirror
from dslint.smoke.planning import CannotPlanError
from dslint.smoke.rank.write_protection import write_only_below

# --- the mirror ---


@pytest.fixture
def original(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    for name in ("project/train.py", "project/data/rows.txt", "project/.git/HEAD", "other/big.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


def mirrored(original: Path, budget: Budget | None = None) -> Path:
    copy = original.parent / "copy"
    copy.mkdir()
    Mirror(copy, budget).fill(original, [Path("project")])
    return copy


def test_what_is_written_into_a_mirror_stays_there(original: Path) -> None:
    copy = mirrored(original)
    (copy / "project" / "data" / "rows.txt").write_text("changed")
    (copy / "project" / "data" / "new.txt").write_text("new")
    assert (original / "project" / "data" / "rows.txt").read_text() == "project/data/rows.txt"
    assert sorted(path.name for path in (original / "project" / "data").iterdir()) == ["rows.txt"]


def test_what_lies_aside_and_what_is_hidden_is_linked(original: Path) -> None:
    copy = mirrored(original)
    assert (copy / "other").is_symlink()
    assert (copy / "project" / ".git").is_symlink()
    assert not (copy / "project").is_symlink()
    assert not (copy / "project" / "train.py").is_symlink()


def test_a_file_beyond_the_budget_is_linked(original: Path) -> None:
    copy = mirrored(original, Budget(entries=100, size=16))
    assert not (copy / "project" / "train.py").is_symlink()
    assert (copy / "project" / "data" / "rows.txt").is_symlink()
    assert (copy / "project" / "data" / "rows.txt").read_text() == "project/data/rows.txt"


def test_a_mirror_below_what_it_mirrors_leaves_itself_out(original: Path) -> None:
    copy = original / "project" / "copy"
    copy.mkdir()
    Mirror(copy).fill(original, [Path("project")])
    assert sorted(path.name for path in (copy / "project").iterdir()) == [".git", "data", "train.py"]


# --- no way to do harm ---


@pytest.mark.skipif(sys.platform != "linux", reason="Landlock is Linux's")
def test_only_the_named_folders_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    program = (
        "import sys; from pathlib import Path; from dslint.smoke.rank.write_protection import write_only_below\n"
        f"top = Path({str(tmp_path)!r})\n"
        "if not write_only_below([top / 'open', top / 'not-there']): sys.exit('old kernel')\n"
        "(top / 'open' / 'a').write_text('1'); (top / 'open' / 'a').rename(top / 'open' / 'b')\n"
        "(top / 'shut').write_text('2')\n"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=False,
    )
    if "old kernel" in done.stderr:
        pytest.skip("this kernel has no Landlock that knows moves")
    assert "PermissionError" in done.stderr
    assert [path.name for path in tmp_path.rglob("*")] == ["open", "b"]


def test_elsewhere_nothing_is_restricted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not write_only_below([tmp_path])


# --- the command ---


def launch(text: str, path: str = "run.sh") -> Launch:
    (found,), _ = launches_in(Source(path, text.encode()))
    return found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("deepspeed --num_gpus 2 train.py --lr 1 \"$@\"", ["deepspeed", "--num_gpus=2", "T", "--lr", "1"]),
        ("torchrun --nproc-per-node=2 -m a.b --x", ["torchrun", "--nproc_per_node=2", "--module", "a.b", "--x"]),
        ("python -m torch.distributed.launch --use_env t.py", ["python", "-m", "torch.distributed.launch", "--use_env", "T"]),
        ("N=4; accelerate launch --num_processes $N t.py", ["accelerate", "launch", "--num_processes=4", "T"]),
        ("torchrun --master_addr $(hostname) t.py", ["torchrun", "T"]),
        ("deepspeed --foo 3 --num_gpus 2 t.py", ["deepspeed", "--foo", "3", "--num_gpus=2", "T"]),
        ("python train.py", ["python", "T"]),
    ],
)  # fmt: skip
def test_the_words_are_those_that_the_launcher_gets(text: str, words: list[str]) -> None:
    assert list(words_of(launch(text), "T")) == words


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("deepspeed --num_gpus $COUNT train.py", "the value of --num_gpus is known only when it runs"),
        ("deepspeed train.py --data $DATA", "argument 2 of the script is known only when it runs"),
        ("srun torchrun train.py", "the run is started by srun"),
        ("docker run image torchrun train.py", "the run is started in a container"),
    ],
)
def test_words_that_nobody_knows_are_refused(text: str, reason: str) -> None:
    with pytest.raises(CannotPlanError, match=reason):
        words_of(launch(text), "T")


def test_variables_that_the_shell_script_sets_are_taken() -> None:
    found = environment_of(launch("export A=1\nB=$(date) C=3 deepspeed train.py\n"))
    assert (found["A"], found["C"]) == ("1", "3")
    assert "B" not in found


def test_a_file_of_the_run_is_named_from_where_it_runs() -> None:
    words = ("deepspeed", "train.py", "--config=/a/b/ds.json", "/a/b/ds.json", "/a/other")
    assert relative_to(words, ["/a/b/ds.json"], "/a/c")[2:] == (
        "--config=../b/ds.json",
        "../b/ds.json",
        "/a/other",
    )


def test_a_command_runs_where_its_script_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "code").mkdir()
    script = tmp_path / "code" / "train.py"
    script.touch()
    shell = str(tmp_path / "code" / "run.sh")
    monkeypatch.chdir(tmp_path)
    assert working_folder(launch("torchrun train.py", shell), str(script), None) == str(tmp_path / "code")
    assert working_folder(launch("torchrun code/train.py", shell), str(script), None) == str(tmp_path)
    assert working_folder(launch("cd code\ntorchrun train.py", "run.sh"), str(script), None) == str(
        tmp_path / "code"
    )
    assert working_folder(None, str(script), str(tmp_path / "ds_config.json")) == str(tmp_path)
    assert working_folder(None, str(script), str(tmp_path / "code" / "ds_config.json")) == str(tmp_path / "code")


def test_a_message_names_the_files_of_the_user() -> None:
    message = "No such file: '/tmp/dslint-smoke-ab12/tmpxy/work/home/me/data.txt'\nand more"
    assert first_line(message) == "No such file: '/home/me/data.txt'"

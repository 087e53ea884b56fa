"""Launch commands are found in scripts as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dslint.documents.config_reader import read_config
from dslint.documents.shell_reader import read_shell
from dslint.documents.source import Source, Span
from dslint.runs.launch.launch import Launch, option_of
from dslint.runs.launch.reading import embedded_files, launches
from dslint.runs.unknown import Unknown

JOINED_PIECES = (
    'python |deepspeed |torchrun |srun |bash -c |eval |x.py |env |A=1 |--num_gpus |-n |8 |=|"$@"|${A[@]}|$A|A=|A+=(|)'
    "|export |\n|;|'|\"|if |then |fi\n|else |for i in |do |done\n|f() {|}|cd x|&&|accelerate launch |-m |<<EOF\n|EOF\n"
)
PIECES = JOINED_PIECES.split("|")


def all_of(text: str) -> tuple[Launch, ...]:
    return launches(read_shell(Source("run.sh", text.encode())))


def one(text: str) -> Launch:
    (launch,) = all_of(text)
    return launch


def values(launch: Launch) -> dict[str, object]:
    return {name: None if isinstance(o.value, Unknown) else o.value for name, o in launch.options.items()}


def arguments(launch: Launch) -> list[str | None]:
    return [a.text if isinstance(a.text, str) else None for a in launch.arguments]


def script(launch: Launch) -> object:
    return None if launch.script is None else launch.script.text


def test_deepspeed_over_several_lines_with_variables_and_an_array() -> None:
    launch = one("""
GPUS=8
ARGS=( --lr 1e-5 )
ARGS+=(--out "my run")
deepspeed --num_gpus=$GPUS --master_port $((29500 + 1)) \\
    train.py "${ARGS[@]}" \\
    --deepspeed ds.json 2>&1 | tee log
""")
    assert (launch.launcher, values(launch)) == ("deepspeed", {"num_gpus": "8", "master_port": "29501"})
    assert script(launch) == "train.py"
    assert arguments(launch) == ["--lr", "1e-5", "--out", "my run", "--deepspeed", "ds.json"]


def test_a_default_is_known_but_may_be_replaced() -> None:
    launch = one("deepspeed --num_gpus ${N:-8} train.py")
    assert (launch.options["num_gpus"].value, launch.options["num_gpus"].overridable) == ("8", True)
    assert not one("N=4\ndeepspeed --num_gpus ${N:-8} train.py").options["num_gpus"].overridable


def test_an_option_tells_where_its_value_was_set() -> None:
    source = Source("run.sh", b"N=4\ntorchrun --nproc_per_node $N t.py\n")
    (launch,) = launches(read_shell(source))
    option = launch.options["nproc_per_node"]
    assert source.slice(option.span) == "--nproc_per_node $N"
    assert option.origin is not None
    assert source.slice(option.origin) == "N=4"


def test_a_text_of_options_is_split_and_what_is_unknown_in_it_stays_in_place() -> None:
    launch = one('ARGS="--deepspeed ds.json --out $1 --lr 1"\ndeepspeed t.py $ARGS')
    assert arguments(launch) == ["--deepspeed", "ds.json", "--out", None, "--lr", "1"]
    assert not any(argument.many for argument in launch.arguments)


@pytest.mark.parametrize("text", ["$X", "${1}", "$(nproc)", "${#A[@]}", "$((X + 1))", "$((08))"])
def test_what_the_file_does_not_tell_is_unknown(text: str) -> None:
    assert values(one(f"deepspeed --num_gpus {text} t.py"))["num_gpus"] is None
    assert values(one(f"deepspeed --num_gpus={text} t.py"))["num_gpus"] is None


def test_a_value_that_only_one_way_sets_is_known_there_and_unknown_behind() -> None:
    inside, behind = all_of("""
G=2
if [ "$1" = big ]; then
    G=8
    deepspeed --num_gpus $G a.py
fi
deepspeed --num_gpus $G b.py
""")
    assert (values(inside)["num_gpus"], values(behind)["num_gpus"]) == ("8", None)


def test_each_branch_begins_with_what_was_set_before() -> None:
    _, other = all_of("G=2\nif x; then G=8; deepspeed --num_gpus $G a.py; else deepspeed --num_gpus $G b.py; fi")
    assert values(other)["num_gpus"] == "2"


def test_what_a_loop_changes_is_unknown_in_it() -> None:
    launch = one("P=29500\nfor lr in 1 2; do torchrun --master_port $P t.py --lr $lr; P=$((P + 1)); done")
    assert (values(launch)["master_port"], arguments(launch)) == (None, ["--lr", None])


def test_a_function_sees_no_value_that_is_set_again_behind_it() -> None:
    launch = one("G=2\nH=3\nrun() { deepspeed --num_gpus $G --num_nodes $H a.py; }\nG=8\nrun\n")
    assert values(launch) == {"num_gpus": None, "num_nodes": "3"}


def test_slurm_with_one_torchrun_a_node() -> None:
    launch = one("""#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:a100:8
srun --jobid $SLURM_JOBID torchrun --nproc_per_node $SLURM_GPUS_ON_NODE --nnodes=$SLURM_NNODES \\
    --rdzv_endpoint $MASTER_ADDR:29500 train.py
""")
    assert (launch.launcher, [outer.launcher for outer in launch.outer]) == ("torchrun", ["srun"])
    assert values(launch) == {"nproc_per_node": "8", "nnodes": "2", "rdzv_endpoint": None}
    assert [d.option for d in launch.directives] == ["--nodes", "--ntasks-per-node", "--gres"]


def test_srun_with_one_task_a_gpu() -> None:
    launch = one("srun -N2 -n 16 --gres=gpu:8 python -u train.py --x")
    assert (launch.launcher, launch.outer) == ("srun", ())
    assert values(launch) == {"nodes": "2", "ntasks": "16", "gres": "gpu:8"}
    assert (script(launch), arguments(launch)) == ("train.py", ["--x"])


def test_mpirun() -> None:
    launch = one("mpirun -np 16 -npernode 8 -x PATH python t.py")
    assert (launch.launcher, values(launch)["n"], values(launch)["npernode"]) == ("mpirun", "16", "8")


@pytest.mark.parametrize(
    ("command", "launcher"),
    [
        ("ds", "deepspeed"),
        ("python -m deepspeed.launcher.runner", "deepspeed"),
        ("/opt/env/bin/torchrun", "torchrun"),
        ("python3 -u -m torch.distributed.run", "torchrun"),
        ("python -m torch.distributed.launch", "torch.distributed.launch"),
        ("accelerate launch", "accelerate"),
        ("accelerate-launch", "accelerate"),
        ("python -m accelerate.commands.launch", "accelerate"),
        ("python3.11", "python"),
    ],
)
def test_names_of_launchers(command: str, launcher: str) -> None:
    launch = one(f"{command} train.py --a")
    assert (launch.launcher, script(launch), arguments(launch)) == (launcher, "train.py", ["--a"])


@pytest.mark.parametrize(
    "wrapper",
    [
        "env X=1", "nohup", "time", "timeout -k 5 3600", "nsys profile -o out --trace=cuda", "stdbuf -oL", "numactl -N 0",
        "uv run --with x", "poetry run", "conda run -n env", "sudo -E", "exec", "caffeinate -i", "nohup env X=1 nice -n 5",
    ],
)  # fmt: skip
def test_wrappers_are_taken_off(wrapper: str) -> None:
    launch = one(f"{wrapper} deepspeed --num_gpus 2 train.py")
    assert (launch.launcher, values(launch), launch.environment_unknown) == ("deepspeed", {"num_gpus": "2"}, False)


@pytest.mark.parametrize(
    "container", ["docker run --gpus all -e A=1 img:1", "docker exec -it box", "singularity exec --nv x.sif"]
)
def test_in_a_container_the_surroundings_are_unknown(container: str) -> None:
    assert one(f"{container} torchrun --nproc_per_node 2 t.py").environment_unknown


@pytest.mark.parametrize(
    "text",
    [
        "bash -c 'deepspeed --num_gpus 2 t.py'",
        'C="deepspeed --num_gpus 2 t.py"\neval "$C"',
        'C="deepspeed --num_gpus 2 t.py"\n$C',
    ],
)
def test_commands_kept_in_texts(text: str) -> None:
    assert (values(one(text)), script(one(text))) == ({"num_gpus": "2"}, "t.py")


@pytest.mark.parametrize(
    "text",
    [
        "pip install deepspeed", "uv pip install deepspeed", "sudo apt install python3 x", "echo deepspeed t.py", "which torchrun",
        "srun axolotl train x.yaml --launcher torchrun -- t.py", "accelerate config", "python -c 'x'", "python --version", "# deepspeed t.py",
    ],
)  # fmt: skip
def test_what_is_no_launch(text: str) -> None:
    assert all_of(text) == ()


def test_modules() -> None:
    for text in ("deepspeed --module pkg.train --a", "torchrun -m pkg.train --a", "python -m pkg.train --a"):
        launch = one(text)
        assert (launch.is_module, script(launch), arguments(launch)) == (True, "pkg.train", ["--a"])


def test_the_environment_of_a_launch() -> None:
    launch = one("export A=1\nB=2\nexport C\nCUDA_VISIBLE_DEVICES=0,1 D=$X deepspeed t.py")
    known = {name: a.text if isinstance(a.text, str) else None for name, a in launch.environment.items()}
    assert known == {"A": "1", "C": None, "CUDA_VISIBLE_DEVICES": "0,1", "D": None}


def test_the_folder_of_a_launch() -> None:
    folders = [
        launch.directory
        for launch in all_of("cd a && cd b\n(cd c; ds x.py)\nds x.py\ncd $X\nds x.py\ncd /d\nds x.py")
    ]
    assert folders == ["a/b/c", "a/b", None, "/d"]


def test_options_that_the_launcher_does_not_have() -> None:
    launch = one("deepspeed --num-gpus 8 --foo=1 train.py --num-gpus 1")
    assert [option.name for option in launch.unknown_options] == ["--num-gpus", "--foo"]
    assert script(launch) == "train.py"


def test_shortened_and_attached_options() -> None:
    assert values(one("deepspeed --num_n 2 -Hhosts -i a:0,1@b -q t.py")) == {
        "num_nodes": "2",
        "hostfile": "hosts",
        "include": "a:0,1@b",
        "quiet": True,
    }


def test_options_behind_the_script_are_the_scripts() -> None:
    launch = one("deepspeed t.py --num_gpus 8")
    assert (values(launch), arguments(launch)) == ({}, ["--num_gpus", "8"])


def test_an_unknown_variable_may_hold_any_options() -> None:
    launch = one("torchrun $DIST t.py")
    assert (launch.options_incomplete, script(launch)) == (True, "t.py")


def test_looking_up_a_scripts_option() -> None:
    launch = one('deepspeed t.py --deepspeed a.json --deepspeed=b.json --flag --x "$Y"')
    found = {name: option_of(launch, name) for name in ("--deepspeed", "--flag", "--x", "--none")}
    assert [None if a is None else a.text if isinstance(a.text, str) else "?" for a in found.values()] == [
        "b.json",
        "",
        "?",
        None,
    ]
    hidden = option_of(one('deepspeed t.py --deepspeed a.json "$@"'), "--deepspeed")
    assert hidden is not None
    assert isinstance(hidden.text, Unknown)


def test_the_span_is_the_commands_first_line() -> None:
    source = Source("run.sh", "echo é\nA=1 deepspeed \\\r\n  t.py\n".encode())
    (launch,) = launches(read_shell(source))
    assert (source.slice(launch.span), source.slice(launch.launcher_span)) == ("A=1 deepspeed", "deepspeed")


def test_a_config_written_by_the_script() -> None:
    document = read_shell(
        Source("run.sh", b'N=4\ncat > ds.json <<EOF\n{\n  "train_batch_size": $N,\n  "x": "${Y}"\n}\nEOF\n')
    )
    ((path, source),) = embedded_files(document)
    config = read_config(source)
    assert (path, config.value) == ("ds.json", {"train_batch_size": 4, "x": "${Y}"})
    assert [placeholder.text for placeholder in config.placeholders] == ["${Y}"]
    assert source.place(config.keys["train_batch_size",].start).line == 4
    assert source.line(4) == '  "train_batch_size": $N,'


def test_an_unknown_number_in_a_written_config_is_a_placeholder() -> None:
    ((_, source),) = embedded_files(read_shell(Source("run.sh", b'cat <<EOF | tee ds.json\n{"a": $N}\nEOF\n')))
    assert source.data == b'{"a": ${N}}\n'
    assert read_config(source).placeholders


def test_a_quoted_here_document_is_taken_as_it_stands_and_tabs_are_stripped() -> None:
    text = "N=1\ntee a.json <<'E'\n$N\nE\ncat <<-E >b.json\n\t$N\n\tE\n"
    files = embedded_files(read_shell(Source("run.sh", text.encode())))
    assert [(path, source.data) for path, source in files] == [("a.json", b"$N\n"), ("b.json", b"1\n")]


def test_a_command_in_a_text_within_a_text_stands_where_the_outer_text_does() -> None:
    document = read_shell(Source("run.sh", b'eval eval python "$@"'))
    assert [launch.span for launch in launches(document)] == [Span(5, 21)]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
@settings(max_examples=400)
def test_any_script_is_read_and_spans_lie_within(text: str) -> None:
    document = read_shell(Source("run.sh", text.encode()))
    embedded_files(document)
    size = len(document.source.data)
    for launch in launches(document):
        spans = [
            launch.span,
            launch.launcher_span,
            *(a.span for a in launch.arguments),
            *(o.span for o in launch.options.values()),
        ]
        assert all(0 <= span.start <= span.end <= size for span in spans)

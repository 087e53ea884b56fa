"""Where ranks stand is read from their stacks and told in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dslint.smoke.peers.in_words import headline, left_behind, place, ranks_told
from dslint.smoke.peers.stacks import frames_of, shown_lines
from dslint.smoke.peers.standing import DIED, ENDED, RAISED, RUNS, SAVING, UNKNOWN, WAITS, Standing, standing_of

SITE = "/env/lib/python3.11/site-packages"
C10D, COMM, COMM_TORCH = (
    f"{SITE}/torch/distributed/distributed_c10d.py",
    f"{SITE}/deepspeed/comm/comm.py",
    f"{SITE}/deepspeed/comm/torch.py",
)
LOGGER, MODULE = f"{SITE}/torch/distributed/c10d_logger.py", f"{SITE}/torch/nn/modules/module.py"
ENGINE, NVTX = f"{SITE}/deepspeed/runtime/engine.py", f"{SITE}/deepspeed/utils/nvtx.py"
OWN = "/tools/dslint/smoke/script"
STARTED = [(f"{OWN}/intercept.py", 78, "execute"), (f"{OWN}/intercept.py", 37, "main")]
Call = tuple[str, int, str]


def stack(*calls: Call) -> str:
    lines = [f'  File "{path}", line {line} in {name}' for path, line, name in calls]
    return "\n".join(["Stack (most recent call first):", *lines])


BARRIER: list[Call] = [
    (C10D, 5356, "barrier"), (LOGGER, 83, "wrapper"), (COMM_TORCH, 519, "barrier"), (COMM, 477, "barrier"),
    (COMM, 129, "log_wrapper"),
]  # fmt: skip
SAVE = stack(*BARRIER, (ENGINE, 4900, "save_checkpoint"), ("/home/me/train.py", 11, "<module>"), *STARTED)
FORWARD = stack(
    (C10D, 3151, "broadcast"), (LOGGER, 83, "wrapper"), (COMM_TORCH, 351, "broadcast"), (COMM, 243, "broadcast"),
    (COMM, 129, "log_wrapper"), (f"{SITE}/deepspeed/runtime/zero/utils.py", 89, "assert_same"),
    (ENGINE, 3007, "forward"), (NVTX, 33, "wrapped_fn"), (MODULE, 1789, "_call_impl"),
    (MODULE, 1778, "_wrapped_call_impl"), ("/home/me/train.py", 8, "<module>"), *STARTED,
)  # fmt: skip


# --- one rank ---


def test_a_collective_under_a_call_of_the_engine() -> None:
    found = standing_of(0, SAVE)
    assert (found.state, found.collective, found.through) == (WAITS, "barrier", "engine.save_checkpoint")
    assert (found.file, found.line, found.function, found.inside) == ("/home/me/train.py", 11, "<module>", None)


def test_a_call_of_the_engine_itself_is_the_forward_pass() -> None:
    assert place(standing_of(1, FORWARD)) == "in broadcast, called by the forward pass at /home/me/train.py:8"


def test_a_backward_pass_that_dslint_follows() -> None:
    text = stack(
        (C10D, 3252, "all_reduce"), (LOGGER, 83, "wrapper"), (COMM_TORCH, 290, "all_reduce"),
        (COMM, 710, "all_reduce"), (ENGINE, 3092, "allreduce_gradients"), (NVTX, 33, "wrapped_fn"),
        (ENGINE, 3431, "backward"), (NVTX, 33, "wrapped_fn"), (f"{OWN}/counting.py", 59, "heard"),
        ("/home/me/train.py", 9, "step"), ("/home/me/train.py", 30, "<module>"), *STARTED,
    )  # fmt: skip
    assert place(standing_of(0, text)) == "in all_reduce, called by engine.backward at /home/me/train.py:9"


@pytest.mark.parametrize("between", [[], [(COMM_TORCH, 519, "barrier"), (COMM, 477, "barrier")]])
def test_a_collective_that_the_script_calls_itself_is_called_by_nothing_else(between: list[Call]) -> None:
    text = stack((C10D, 5356, "barrier"), (LOGGER, 83, "wrapper"), *between, ("/home/me/train.py", 4, "main"))
    assert place(standing_of(0, text)) == "in barrier at /home/me/train.py:4"


def test_a_collective_is_named_as_it_was_called_and_not_by_its_parts() -> None:
    text = stack(
        (C10D, 1, "all_gather"), (LOGGER, 83, "wrapper"), (C10D, 2, "_gather"), (C10D, 3, "all_gather_object"),
        (LOGGER, 83, "wrapper"), ("/home/me/train.py", 4, "main"),
    )  # fmt: skip
    assert standing_of(0, text).collective == "all_gather_object"


def test_the_line_from_which_a_library_called_the_script_back() -> None:
    text = stack(
        (C10D, 3151, "broadcast"), (f"{SITE}/deepspeed/runtime/zero/parameter_offload.py", 9, "_hook"),
        (MODULE, 1, "inner"), (MODULE, 1789, "_call_impl"), (MODULE, 1778, "_wrapped_call_impl"),
        ("/home/me/model.py", 30, "forward"), (MODULE, 1789, "_call_impl"), (ENGINE, 3007, "forward"),
        (MODULE, 1778, "_wrapped_call_impl"), ("/home/me/train.py", 8, "step"),
        ("/home/me/train.py", 40, "<module>"), *STARTED,
    )  # fmt: skip
    assert place(standing_of(0, text)) == (
        "in broadcast, called by the forward pass at /home/me/model.py:30, called from /home/me/train.py:8"
    )


def test_the_wait_for_a_collective_that_was_begun_before_is_one_too() -> None:
    offload = f"{SITE}/deepspeed/runtime/zero/partition_parameters.py"
    text = stack(
        (NVTX, 33, "wrapped_fn"), (offload, 80, "wait"), (ENGINE, 7, "step"), ("/home/me/train.py", 4, "f")
    )
    found = standing_of(0, text)
    assert (found.state, found.collective) == (WAITS, None)
    assert place(found) == (
        "at the end of a collective (wait of deepspeed/runtime/zero/partition_parameters.py:80), "
        "called by engine.step at /home/me/train.py:4"
    )


def test_a_line_of_the_script_outside_of_any_collective_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trän.py").write_text("import time\nwhile True:\n    time.sleep(1)\n")
    escaped = str(tmp_path / "trän.py").replace("ä", "\\xe4")
    found = standing_of(0, stack((escaped, 3, "<module>"), *STARTED))
    assert (found.state, found.file, found.code) == (RUNS, "trän.py", "time.sleep(1)")
    assert place(found) == "at trän.py:3 (`time.sleep(1)`)"


def test_a_wait_of_the_script_itself_counts_as_one_for_a_collective(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("work = dist.all_reduce(sums, async_op=True)\nwork.wait()\n")
    found = standing_of(1, stack((str(script), 2, "<module>"), *STARTED))
    assert (found.state, found.collective) == (WAITS, None)
    assert place(found).endswith("train.py:2 (`work.wait()`)")
    assert standing_of(1, stack((str(script), 1, "<module>"), *STARTED)).state == RUNS


def test_a_library_outside_of_any_collective() -> None:
    text = stack(
        ("/usr/lib/python3.11/threading.py", 320, "wait"), ("/usr/lib/python3.11/queue.py", 171, "get"),
        (f"{SITE}/torch/utils/data/dataloader.py", 1284, "_try_get_data"),
        (f"{SITE}/torch/utils/data/dataloader.py", 700, "__next__"), ("/home/me/train.py", 4, "main"),
    )  # fmt: skip
    found = standing_of(0, text)
    assert found.state == RUNS
    assert place(found) == "in wait of threading.py:320, called by the data loader at /home/me/train.py:4"


def test_the_training_of_a_config_has_no_line_of_a_user() -> None:
    training = [
        ("/tools/dslint/smoke/rank/training.py", 200, "_save_and_load"),
        ("<frozen runpy>", 88, "_run_code"),
    ]
    found = standing_of(0, stack(*BARRIER, (ENGINE, 4900, "save_checkpoint"), *training))
    assert (found.file, place(found)) == (None, "in barrier, called by engine.save_checkpoint")


def test_what_dslint_saves_itself_is_not_the_fault_of_the_line_it_came_from() -> None:
    text = stack(
        *BARRIER, (ENGINE, 4900, "save_checkpoint"), (f"{OWN}/saving.py", 50, "try_saves"),
        (f"{OWN}/counting.py", 80, "counted"), ("/home/me/train.py", 9, "<module>"), *STARTED,
    )  # fmt: skip
    found = standing_of(0, text)
    assert (found.file, found.function) == (None, SAVING)
    assert place(found) == f"in barrier, called by engine.save_checkpoint in {SAVING}"


def test_deepspeed_from_a_checkout_is_no_file_of_the_user() -> None:
    checkout = "/home/me/src/DeepSpeed/deepspeed/runtime/engine.py"
    found = standing_of(
        0, stack((checkout, 10, "save_checkpoint"), ("/home/me/deepspeed/train.py", 3, "<module>"))
    )
    assert (found.file, found.line) == ("/home/me/deepspeed/train.py", 3)
    assert found.inside == "save_checkpoint of deepspeed/runtime/engine.py:10"


def test_the_last_of_several_stacks_counts() -> None:
    assert standing_of(0, f"{FORWARD}\n{SAVE}").collective == "barrier"


@pytest.mark.parametrize("text", ["", "Stack (most recent call first):", "Fatal Python error\n", 'File "x", line'])
def test_without_a_stack_nothing_is_known(text: str) -> None:
    assert standing_of(3, text) == Standing(3, UNKNOWN)


frames = st.tuples(
    st.sampled_from(
        [C10D, COMM, ENGINE, MODULE, NVTX, f"{OWN}/saving.py", f"{OWN}/counting.py", "/a.py", "<string>"]
    )
    | st.text(),
    st.integers(),
    st.sampled_from(["wait", "wrapper", "_call_impl", "forward", "barrier", "<module>"]) | st.text(),
)


@given(st.text() | st.lists(frames).map(lambda calls: stack(*calls)))
def test_any_text_is_read(text: str) -> None:
    found = standing_of(0, text)
    told = [*shown_lines(text), headline([found]), headline([found, standing_of(1, text)]), str(found.as_data())]
    assert "\n".join(told).encode()


# --- how a stack is shown ---


def test_a_stack_is_shown_without_dslint_and_wrappers_and_with_short_paths() -> None:
    assert shown_lines(SAVE) == [
        "torch/distributed/distributed_c10d.py:5356 in barrier",
        "deepspeed/comm/torch.py:519 in barrier",
        "deepspeed/comm/comm.py:477 in barrier",
        "deepspeed/runtime/engine.py:4900 in save_checkpoint",
        "/home/me/train.py:11 in <module>",
    ]


def test_of_a_long_way_through_libraries_both_ends_are_shown() -> None:
    shown = shown_lines(stack(*[(ENGINE, line, "f") for line in range(20)], ("/home/me/train.py", 1, "main")))
    assert len(shown) == 14
    assert shown[6] == "… 8 more"
    assert (shown[0], shown[12]) == ("deepspeed/runtime/engine.py:0 in f", "deepspeed/runtime/engine.py:19 in f")
    assert shown[13] == "/home/me/train.py:1 in main"


def test_frames_are_innermost_first() -> None:
    assert [frame.name for frame in frames_of(SAVE)][:2] == ["barrier", "wrapper"]


# --- all ranks ---


def test_ranks_that_wait_for_each_other_in_different_places() -> None:
    told = headline([standing_of(0, SAVE), *(standing_of(rank, FORWARD) for rank in (1, 2, 3))], still=True)
    assert told == (
        "the ranks wait for each other in different places: "
        "rank 0 in barrier, called by engine.save_checkpoint at /home/me/train.py:11; "
        "ranks 1 to 3 in broadcast, called by the forward pass at /home/me/train.py:8"
    )


def test_ranks_in_one_place_are_slow_unless_nothing_goes_on() -> None:
    ranks = [standing_of(rank, SAVE) for rank in range(2)]
    where = "in barrier, called by engine.save_checkpoint at /home/me/train.py:11"
    assert headline(ranks) == (
        f"both ranks stand in the same place, {where}, and it looks like a slow or endless step, not like a mismatch"
    )
    assert headline([*ranks, standing_of(2, SAVE)], still=True) == (
        f"all 3 ranks stand in the same place, {where}, and none of them goes on"
    )


def test_ranks_in_one_line_that_went_different_ways_are_told_apart() -> None:
    other = FORWARD.replace("line 89 in assert_same", "line 122 in assert_same")
    assert headline([standing_of(0, FORWARD), standing_of(1, other)]) == (
        "the ranks wait for each other in different places: rank 0 in broadcast, called by the forward pass at "
        "/home/me/train.py:8 (by way of deepspeed/runtime/zero/utils.py:89); rank 1 in broadcast, called by the "
        "forward pass at /home/me/train.py:8 (by way of deepspeed/runtime/zero/utils.py:122)"
    )


def test_a_rank_that_has_ended_is_named_before_those_that_wait_for_it() -> None:
    assert headline([standing_of(0, SAVE), Standing(1, ENDED)]) == (
        "rank 1 has ended; rank 0 waits for it in barrier, called by engine.save_checkpoint at /home/me/train.py:11"
    )
    assert "ranks 1 and 2 have ended; rank 0 waits for them in barrier" in headline(
        [standing_of(0, SAVE), Standing(1, ENDED), Standing(2, ENDED)]
    )


def test_a_rank_outside_of_any_collective_is_named_before_those_that_wait_for_it() -> None:
    endless = standing_of(1, stack(("/home/me/train.py", 5, "<module>"), *STARTED))
    assert headline([standing_of(0, SAVE), endless]) == (
        "rank 1 is outside of any collective, at /home/me/train.py:5; "
        "rank 0 waits for it in barrier, called by engine.save_checkpoint at /home/me/train.py:11"
    )


def test_a_rank_that_does_not_tell_is_not_counted_among_those_that_wait() -> None:
    told = headline([standing_of(0, SAVE), Standing(1, UNKNOWN)])
    assert told.startswith("the ranks wait for each other in one place: rank 0 in barrier")
    assert told.endswith("; rank 1 does not tell where it stands")
    assert headline([Standing(0, UNKNOWN)]) == ""


def test_one_rank_alone() -> None:
    assert headline([standing_of(0, SAVE)]).startswith("it waited in barrier, called by engine.save_checkpoint")
    assert headline([standing_of(0, stack(("/home/me/train.py", 5, "f")))]) == "it stood at /home/me/train.py:5"


def test_who_was_left_behind() -> None:
    ended = standing_of(1, stack(("/home/me/train.py", 5, "<module>")), state=ENDED)
    assert left_behind([standing_of(0, SAVE), ended, standing_of(2, SAVE)]) == (
        "rank 1 has ended at /home/me/train.py:5; ranks 0 and 2 waited for it in barrier, "
        "called by engine.save_checkpoint at /home/me/train.py:11"
    )
    assert left_behind([Standing(0, DIED), Standing(1, RAISED)]) == "rank 0 died; rank 1 has raised"


@pytest.mark.parametrize(
    ("ranks", "told"),
    [([0], "rank 0"), ([0, 1], "ranks 0 and 1"), ([1, 2, 3], "ranks 1 to 3"), ([0, 2, 5], "ranks 0, 2 and 5")],
)
def test_numbers_of_ranks(ranks: list[int], told: str) -> None:
    assert ranks_told(ranks) == told

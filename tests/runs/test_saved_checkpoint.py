"""What the names of a checkpoint's files tell."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dslint.runs.saved_checkpoint import SavedCheckpoint, read_names

PIECES = st.sampled_from(
    [
        "bf16_",
        "zero",
        "_pp_rank_",
        "mp_rank_",
        "0",
        "00",
        "1",
        "2",
        "_",
        "model_states.pt",
        "optim_states.pt",
        "layer",
        "é",
    ]
)
NAMES = st.lists(PIECES, max_size=8).map("".join) | st.text(max_size=20)


def names_of(ranks: int, *, stage: int, bf16: bool) -> set[str]:
    """The names that DeepSpeed gives the files of a checkpoint."""
    prefix = "bf16_" if bf16 else ""
    optimizer = {f"{prefix}zero_pp_rank_{rank}_mp_rank_00_optim_states.pt" for rank in range(ranks) if stage}
    if stage < 3:
        return optimizer | {"mp_rank_00_model_states.pt"}
    return optimizer | {f"zero_pp_rank_{rank}_mp_rank_00_model_states.pt" for rank in range(ranks)}


@given(
    st.integers(1, 40),
    st.integers(0, 3),
    st.booleans(),
    st.sets(st.sampled_from(["zero_to_fp32.py", "rng_0.pth", "a"])),
)
def test_what_was_saved_is_read(ranks: int, stage: int, bf16: bool, others: set[str]) -> None:
    found = read_names(names_of(ranks, stage=stage, bf16=bf16) | others)
    assert found == SavedCheckpoint(stage == 3, ranks if stage else 0, bf16 and stage > 0, False)


@given(st.integers(2, 12), st.integers(1, 3), st.booleans(), st.data())
def test_a_checkpoint_that_lacks_a_file_is_none_or_a_smaller_one(
    ranks: int, stage: int, bf16: bool, data: st.DataObject
) -> None:
    whole = names_of(ranks, stage=stage, bf16=bf16)
    lost = data.draw(st.sampled_from(sorted(whole)))
    found = read_names(whole - {lost})
    assert found is None or (stage < 3 and found.ranks == ranks - 1 and f"rank_{ranks - 1}_" in lost)


@given(st.lists(NAMES, max_size=12))
def test_any_names_are_read_without_trouble(names: list[str]) -> None:
    found = read_names(frozenset(names))
    assert found is None or (found.ranks <= len(names) and any("model_states" in name for name in names))


def test_names_of_old_releases_lack_an_underscore() -> None:
    names = {"mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00optim_states.pt"}
    assert read_names(names) == SavedCheckpoint(False, 1, False, False)


def test_a_universal_checkpoint_has_a_folder_of_its_own() -> None:
    assert read_names({"mp_rank_00_model_states.pt", "zero"}) == SavedCheckpoint(False, 0, False, True)

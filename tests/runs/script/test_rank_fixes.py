"""What all ranks do, and each with its own share, after a fix."""

from __future__ import annotations

import pytest

from tests.runs.script.loop_rules import config
from tests.runs.script.mended_scripts import NOT_MENDED, mended

SAVES = """
    import deepspeed, torch
    from data import make_model, loader

    engine, *_ = deepspeed.initialize(model=make_model(), config="ds_config.json")
    for i, (x, y) in enumerate(loader):
        engine.backward(engine(x, y))
        engine.step()
        {}
"""


def saves(*lines: str) -> str:
    return SAVES.format("\n        ".join(lines))


def test_all_ranks_save_and_one_prints() -> None:
    script = saves(
        "if torch.distributed.get_rank() == 0:", "    engine.save_checkpoint('out')", "    print('saved')"
    )
    text = mended("DS640", script)
    assert (
        "    engine.save_checkpoint('out')\n    if torch.distributed.get_rank() == 0:\n        print('saved')\n"
        in text
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("if torch.distributed.get_rank() == 0 and i % 100 == 0:", "    engine.save_checkpoint('out')"),
        ("if torch.distributed.get_rank() == 0:", "    where = str(i)", "    engine.save_checkpoint(where)"),
        (
            "if torch.distributed.get_rank() == 0:",
            "    where = str(i)",
            "if torch.distributed.get_rank() == 0:",
            "    engine.save_checkpoint(where)",
        ),
        ("if torch.distributed.get_rank() != 0:", "    continue", "engine.save_checkpoint('out')"),
        ("if torch.distributed.get_rank() == 0:", "    print(engine.save_checkpoint('out'))"),
        (
            "if torch.distributed.get_rank() == 0:",
            "    for _ in range(2):",
            "        engine.save_checkpoint('out')",
        ),
    ],
)
def test_a_save_that_needs_its_condition_stays_there(lines: tuple[str, ...]) -> None:
    assert mended("DS640", saves(*lines)) == NOT_MENDED


def test_a_part_of_the_model_is_not_saved_as_the_whole() -> None:
    settings = config(3)
    whole = "torch.save(engine.module.state_dict(), 'out/net.pt')"
    text = mended("DS910", saves("if engine.global_rank == 0:", f"    {whole}"), settings)
    assert '    engine.save_16bit_model("out", "net.pt")\n' in text
    assert "global_rank" not in text
    part = whole.replace("module.", "module.encoder.")
    assert mended("DS910", saves("if engine.global_rank == 0:", f"    {part}"), settings) == NOT_MENDED


def test_a_save_under_a_further_condition_is_left_alone() -> None:
    script = saves("if engine.global_rank == 0 and i % 2:", "    torch.save(engine.module.state_dict(), 'net.pt')")
    assert [mended("DS910", script, config(3), way) for way in (1, 2, 3)] == [NOT_MENDED] * 3


# --- data ---

LOADING = """
    import deepspeed
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    from data import make_model

    torch.manual_seed(0)
    engine, *_ = deepspeed.initialize(model=make_model(), config="ds_config.json")
    data = TensorDataset(torch.zeros(8, 8))
    for (x,) in {}:
        engine.backward(engine(x))
        engine.step()
"""


@pytest.mark.parametrize(
    ("loader", "expected"),
    [
        (
            "DataLoader(data, 1)",
            "DataLoader(data, 1, sampler=torch.utils.data.DistributedSampler(data, shuffle=False))",
        ),
        (
            "DataLoader(data, batch_size=1, shuffle=True)",
            "DataLoader(data, batch_size=1, sampler=torch.utils.data.DistributedSampler(data))",
        ),
    ],
)
def test_a_sampler_divides_the_data_set_in_the_same_order(loader: str, expected: str) -> None:
    assert expected in mended("DS643", LOADING.format(loader))


def test_a_data_set_without_a_name_is_not_made_twice() -> None:
    made = "DataLoader(TensorDataset(torch.zeros(8, 8)), 1)"
    assert mended("DS643", LOADING.format(made)) == NOT_MENDED


# --- gathered parameters ---

GATHERED = """
    import deepspeed, torch
    from torch import nn

    net = nn.Sequential(nn.Linear(512, 512), nn.Linear(512, 512))
    engine, *_ = deepspeed.initialize(model=net, config="ds_config.json")
    with deepspeed.zero.GatheredParameters({}):
        {}
"""


def test_what_gathers_names_the_rank_that_writes() -> None:
    write = "torch.nn.init.ones_(net[0].weight)"
    text = mended("DS655", GATHERED.format("net[0].weight", write), config(3))
    assert "with deepspeed.zero.GatheredParameters(net[0].weight, modifier_rank=0):\n" in text
    commented = GATHERED.format("\n        net[0].weight,  # the first\n    ", write)
    assert mended("DS655", commented, config(3)) == NOT_MENDED

"""What each rank decides, or draws, by itself."""

from __future__ import annotations

import pytest

from tests.runs.script.findings import found

MAKE = """
net = Net()
engine, optimizer, *_ = deepspeed.initialize(model=net, config="ds_config.json")
rank = dist.get_rank()
args = argparse.ArgumentParser().parse_args()
"""

LOOP = """
for x, y in batches(4):
    loss = engine(x, y)
{body}
    engine.backward(loss)
    engine.step()
"""


@pytest.mark.parametrize(
    "body",
    [
        "if torch.isnan(loss):\n    continue",
        "if not torch.isfinite(loss).all():\n    continue",
        "if torch.isnan(loss) or torch.isinf(loss):\n    print('skip')\n    continue",
        "import math\nif math.isnan(loss.item()):\n    break",
        "if loss.isnan().any():\n    continue",
    ],
)
def test_a_rank_that_skips_by_its_own_loss_is_found(body: str) -> None:
    inside = "\n".join(f"    {line}" for line in body.splitlines())
    script = MAKE + LOOP.replace("{body}", inside)
    assert len(found("DS641", script, stage=1)) == 1
    assert found("DS641", script, stage=1, gpus=1) == []


@pytest.mark.parametrize(
    "body",
    [
        "bad = torch.isnan(loss).float()\ndist.all_reduce(bad)\nif bad > 0:\n    continue",
        "if torch.isnan(loss):\n    loss = loss * 0",
        "if torch.isnan(loss):\n    raise ValueError('no number')",
        "if engine.global_steps > 10:\n    break",
        "if args.steps and engine.global_steps >= args.steps:\n    break",
        "for name in ['a']:\n    if torch.isnan(loss):\n        continue",
        "if torch.isnan(x).any():\n    x = torch.nan_to_num(x)",
    ],
)
def test_what_all_ranks_decide_is_silent(body: str) -> None:
    inside = "\n".join(f"    {line}" for line in body.splitlines())
    assert found("DS641", MAKE + LOOP.replace("{body}", inside), stage=1) == []


def test_a_loop_without_backward_is_silent() -> None:
    script = (
        MAKE + "for x, y in batches(2):\n    if torch.isnan(engine(x, y)):\n        continue\n    print('fine')\n"
    )
    assert found("DS641", script, stage=1) == []


@pytest.mark.parametrize(
    ("caught", "times"), [("RuntimeError", 1), ("StopIteration", 0), ("KeyboardInterrupt", 0)]
)
def test_exceptions_of_one_rank(caught: str, times: int) -> None:
    script = (
        MAKE
        + f"""
for x, y in batches(4):
    try:
        loss = engine(x, y)
    except {caught}:
        continue
    engine.backward(loss)
    engine.step()
"""
    )
    assert len(found("DS641", script, stage=1)) == times


# --- data ---

DATA = """
data = TensorDataset(torch.zeros(64, 8), torch.zeros(64))
for x, y in {loader}:
    engine.backward(engine(x, y))
    engine.step()
"""


def loads(loader: str, before: str = "", **case: object) -> int:
    return len(found("DS643", before + MAKE + DATA.replace("{loader}", loader), stage=1, **case))


def test_one_order_for_all_ranks_is_found() -> None:
    assert loads("DataLoader(data, batch_size=2)") == 1
    assert loads("enumerate_it") == 0
    assert loads("DataLoader(data, batch_size=2, shuffle=True)", "torch.manual_seed(0)\n") == 1


@pytest.mark.parametrize(
    ("loader", "before"),
    [
        ("DataLoader(data, batch_size=2, sampler=DistributedSampler(data))", ""),
        ("DataLoader(data, 2, False, sampler)", ""),
        ("DataLoader(data, batch_sampler=mine)", ""),
        ("DataLoader(data, batch_size=2, shuffle=True)", ""),
        ("DataLoader(data, batch_size=2, shuffle=True)", "torch.manual_seed(dist.get_rank())\n"),
        ("DataLoader(torch.utils.data.Subset(data, mine(rank)), batch_size=2)", ""),
        ("DataLoader(mine, batch_size=2)", ""),
        ("DataLoader(data, **options)", ""),
    ],
)
def test_divided_data_is_silent(loader: str, before: str) -> None:
    assert loads(loader, before) == 0


def test_one_rank_gets_all_the_data() -> None:
    assert loads("DataLoader(data, batch_size=2)", gpus=1) == 0


def test_a_loader_that_only_evaluates_is_silent() -> None:
    script = MAKE + "data = TensorDataset(torch.zeros(4, 8))\nfor x in DataLoader(data):\n    engine(x)\n"
    assert found("DS643", script, stage=1) == []


@pytest.mark.parametrize(
    ("data", "feed", "times"),
    [
        ("DataLoader(data, batch_size=16)", "engine(x, y)", 1),
        ("DataLoader(data, 16)", "engine(x.to(0).long(), y)", 1),
        ("DataLoader(data, batch_size=2)", "engine(x, y)", 0),
        ("DataLoader(data, batch_size=size)", "engine(x, y)", 0),
        ("DataLoader(data, batch_size=engine.train_micro_batch_size_per_gpu())", "engine(x, y)", 0),
        ("DataLoader(data, batch_size=16)", "engine(x[:2], y)", 0),
        ("DataLoader(data, batch_size=16)", "engine(x.chunk(8)[0])", 0),
        ("DataLoader(data, batch_size=16)", "engine(pick(x))", 0),
    ],
)
def test_a_loader_of_another_batch_size(data: str, feed: str, times: int) -> None:
    script = MAKE + f"data = mine()\nfor x, y in {data}:\n    engine.backward({feed})\n    engine.step()\n"
    assert len(found("DS661", script, stage=1)) == times

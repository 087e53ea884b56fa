"""Pipelines: what is reported, and the correct scripts that look much the same."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from tests.runs.judging import codes

CONFIG = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2}
START = """
import deepspeed
import torch
from torch.utils.data import DataLoader, DistributedSampler
from deepspeed.pipe import PipelineModule
from deepspeed.utils import RepeatingLoader
deepspeed.init_distributed()
layers = [torch.nn.Linear(8, 4)]
"""
ENGINE = (
    START
    + """
model = PipelineModule(layers=layers, num_stages=2)
engine, _, _, _ = deepspeed.initialize(model=model, config="ds_config.json")
"""
)


def found(script: str, **case: Any) -> list[str]:
    return codes("DS67", "DS680", "DS681", script=textwrap.dedent(script), **{"config": CONFIG, **case})


def after_start(text: str) -> list[str]:
    return found(START + textwrap.dedent(text))


def on_engine(text: str) -> list[str]:
    return found(ENGINE + textwrap.dedent(text))


def test_the_engine_of_a_pipeline_is_not_stepped_by_hand() -> None:
    assert on_engine("engine.backward(engine(1))") == ["DS670"]


@pytest.mark.parametrize(
    "model",
    [
        "model = PipelineModule(layers, num_stages=2) if args.pipe else torch.nn.Linear(1, 1)",
        "model = load_it(layers)",
        "model = torch.nn.Linear(1, 1)\nif args.pipe:\n    model = PipelineModule(layers, num_stages=2)",
    ],
)
def test_an_engine_that_may_be_another_is_stepped_in_peace(model: str) -> None:
    script = f"""
from helpers import args, load_it
{model}
engine, _, _, _ = deepspeed.initialize(model=model, config="ds_config.json")
engine.step()
"""
    assert after_start(script) == []


def test_two_engines_that_are_told_apart_by_an_argument() -> None:
    script = """
from helpers import args
if args.pipe:
    engine, *_ = deepspeed.initialize(model=PipelineModule(layers, num_stages=2), config="ds_config.json")
else:
    engine, *_ = deepspeed.initialize(model=torch.nn.Linear(1, 1), config="ds_config.json")
if not args.pipe:
    engine.backward(engine(1))
    engine.step()
"""
    assert after_start(script) == []


def test_a_stage_of_another_engine_is_not_the_pipelines() -> None:
    script = """
engine2, *_ = deepspeed.initialize(model=torch.nn.Linear(1, 1), config="ds_config.json")
"""
    config = {**CONFIG, "zero_optimization": {"stage": 3}}
    assert found(ENGINE, config=config) == ["DS671"]
    assert found(ENGINE + script, config=config) == []


@pytest.mark.parametrize(("gpus", "expected"), [(1, ["DS672"]), (3, ["DS672"]), (4, []), (None, [])])
def test_stages_have_to_divide_the_ranks(gpus: int | None, expected: list[str]) -> None:
    assert found(ENGINE, **({} if gpus is None else {"gpus": gpus})) == expected


def test_stages_that_an_argument_gives_are_unknown() -> None:
    script = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--stages", type=int, default=3)
args = parser.parse_args()
model = PipelineModule(layers, num_stages=args.stages)
"""
    assert found(START + script, gpus=4) == []


def test_a_topology_of_unknown_sizes_is_left_alone() -> None:
    script = """
from deepspeed.runtime.pipe.topology import PipeDataParallelTopology
from helpers import size
model = PipelineModule(layers, topology=PipeDataParallelTopology(num_pp=size, num_dp=2))
"""
    assert found(START + script, gpus=3) == []


@pytest.mark.parametrize(
    "body",
    [
        "with torch.no_grad():\n    engine.eval_batch(data_iter=it)",
        "with torch.no_grad():\n    with torch.enable_grad():\n        engine.train_batch(data_iter=it)",
        "with torch.inference_mode(flag):\n    engine.train_batch(data_iter=it)",
        "with torch.no_grad() if flag else nothing():\n    engine.train_batch(data_iter=it)",
        "with torch.no_grad():\n    pass\nengine.train_batch(data_iter=it)",
    ],
)
def test_gradients_that_may_be_on(body: str) -> None:
    assert on_engine(f"from helpers import it, flag, nothing\n{body}\n") == []


def test_gradients_that_are_off_through_a_function() -> None:
    script = """
    def evaluate(it):
        return engine.train_batch(data_iter=it)

    from helpers import it
    with torch.no_grad(), torch.autocast("cuda"):
        evaluate(it)
    """
    assert on_engine(script) == ["DS674"]


@pytest.mark.parametrize(
    "data",
    [
        "iter(DataLoader(rows))",
        "RepeatingLoader(DataLoader(rows))",
        "iter([batch])",
        "batches",
        "map(str, [batch])",
        "Endless(rows)",
    ],
)
def test_iterators(data: str) -> None:
    script = f"""
from helpers import rows, batch, batches
class Endless(DataLoader):
    def __next__(self):
        return 1
engine.train_batch(data_iter={data})
"""
    assert on_engine(script) == []


@pytest.mark.parametrize("data", ["DataLoader(rows)", "[batch]", "(1, 2)"])
def test_what_is_no_iterator(data: str) -> None:
    assert on_engine(f"from helpers import rows, batch\nengine.train_batch({data})\n") == ["DS675"]


def looped(head: str, body: str) -> list[str]:
    return on_engine(f"from helpers import rows, sampler, shards\n{head}\nfor step in range(9):\n    {body}\n")


def test_an_iterator_for_each_step_sees_the_first_batches_only() -> None:
    body = "engine.train_batch(data_iter=iter(data))"
    assert looped("data = DataLoader(rows)", body) == ["DS676"]
    assert looped("data = DataLoader(rows, sampler=DistributedSampler(rows))", body) == ["DS676"]


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("data = DataLoader(rows, shuffle=True)", "engine.train_batch(data_iter=iter(data))"),
        ("data = DataLoader(rows, sampler=sampler)", "engine.train_batch(data_iter=iter(data))"),
        ("data = RepeatingLoader(DataLoader(rows))", "engine.train_batch(data_iter=iter(data))"),
        ("it = iter(DataLoader(rows))", "engine.train_batch(data_iter=it)"),
        ("", "engine.train_batch(data_iter=iter(DataLoader(shards[step])))"),
        ("data = DataLoader(rows)", "it = iter(data)\n    for _ in range(4):\n        engine.train_batch(it)"),
    ],
)
def test_iterators_that_get_on(head: str, body: str) -> None:
    assert looped(head, body) == []


@pytest.mark.parametrize(
    "body",
    [
        "engine.set_dataloader(rows)\nengine.train_batch()",
        "prepare(engine)\nengine.train_batch()",
        "engine.train_batch(data_iter=rows)\nengine.train_batch()",
        "engine.train_batch(**rows)",
    ],
)
def test_data_that_comes_another_way(body: str) -> None:
    assert on_engine(f"from helpers import rows, prepare\n{body}\n") == []


@pytest.mark.parametrize(
    "before",
    [
        "deepspeed.init_distributed()",
        "deepspeed.comm.init_distributed('nccl')",
        "from deepspeed import comm as dist\ndist.init_distributed()",
        "from helpers import setup\nsetup()",
        "from accelerate import Accelerator\nAccelerator()",
        "def start():\n    deepspeed.init_distributed()\nstart()",
        "engine, *_ = deepspeed.initialize(model=torch.nn.Linear(1, 1), config='ds_config.json')",
    ],
)
def test_a_process_group_that_may_be_there(before: str) -> None:
    script = f"import torch, deepspeed\nfrom deepspeed.pipe import PipelineModule\n{before}\nPipelineModule([], num_stages=1)\n"
    assert found(script) == []


def test_torch_alone_does_not_start_the_process_group() -> None:
    script = """
    import torch
    from deepspeed.pipe import PipelineModule
    torch.distributed.init_process_group("nccl")
    model = PipelineModule([torch.nn.Linear(1, 1)], num_stages=1)
    """
    assert found(script) == ["DS678"]


def test_a_function_that_nobody_calls_has_no_order() -> None:
    script = """
    from deepspeed.pipe import PipelineModule
    def build():
        return PipelineModule([], num_stages=1)
    """
    assert found(script) == []


def test_a_subclass_may_give_the_stages_itself() -> None:
    script = """
class Mine(PipelineModule):
    def __init__(self, layers):
        super().__init__(layers=layers, num_stages=2)
model = Mine(layers)
"""
    assert after_start(script) == []
    assert after_start("model = PipelineModule(layers)\n") == ["DS680"]
    assert after_start("from helpers import kw\nmodel = PipelineModule(layers, **kw)\n") == []


def test_a_model_parallel_unit_that_may_be_none() -> None:
    start = START + "from helpers import args\nimport mine.mpu\nmodel = PipelineModule(layers, num_stages=1)\n"
    call = 'deepspeed.initialize(model=model, mpu={}, config="ds_config.json")\n'
    assert found(start + call.format("args.mpu")) == []
    assert found(start + call.format("None")) == []
    assert found(start + call.format("mine.mpu")) == ["DS679"]


def test_batches_are_counted_by_the_pipelines_copies() -> None:
    config = {"train_batch_size": 8, **CONFIG}
    assert codes("DS201", script=ENGINE, config=config, gpus=4) == []
    assert codes("DS201", script=ENGINE, config=config, gpus=8) == ["DS201"]

"""What a script does, read without running it."""

from __future__ import annotations

import textwrap

from hypothesis import given, settings
from hypothesis import strategies as st

from dslint.documents.python_reader import read_script
from dslint.documents.source import Source
from dslint.runs.script.events import Call
from dslint.runs.script.guards import one_rank_guard
from dslint.runs.script.reading import Deeds, Surroundings, read_deeds
from dslint.runs.script.values import NOTHING, Table, Thing, comes_from

LOOP = """
import argparse
import deepspeed, torch
import torch.distributed as dist

def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--local_rank", type=int, default=-1)
    parser.add_argument("--save", action="store_true")
    return parser.parse_args()

def main():
    args = parse()
    config = {"train_batch_size": 8}
    config["zero_optimization"] = {"stage": 3}
    model = build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    engine, _, _, _ = deepspeed.initialize(args=args, model=model, optimizer=optimizer, config=config)
    for step, (x, y) in enumerate(load()):
        loss = criterion(engine(x), y) / 4
        engine.backward(loss)
        engine.step()
    if args.save:
        engine.save_checkpoint("out")

if __name__ == "__main__":
    main()
"""


def deeds_of(text: str, arguments: list[str | None] | None = None, **files: object) -> Deeds:
    source = Source("train.py", textwrap.dedent(text).encode())
    around = Surroundings(lambda path: files.get(path.split(".")[0], NOTHING))
    return read_deeds(read_script(source), arguments, around)


def call_of(deeds: Deeds, name: str) -> Call:
    found = [call for call in deeds.calls if call.name == name]
    assert found, [call.name for call in deeds.calls]
    return found[0]


def names(text: str) -> list[str]:
    return [call.name for call in deeds_of(text).calls]


def test_calls_come_in_the_order_in_which_a_run_makes_them() -> None:
    order = [call.name for call in deeds_of(LOOP).calls]
    assert order.index("parser.parse_args") < order.index("deepspeed.initialize") < order.index("engine.step")


def test_a_value_is_followed_into_functions_and_out_of_them() -> None:
    optimizer = call_of(deeds_of(LOOP, ["--lr", "0.5"]), "torch.optim.AdamW")
    assert optimizer.keywords["lr"] == 0.5


def test_without_a_command_an_argument_is_unknown_but_its_default_is_kept() -> None:
    lr = call_of(deeds_of(LOOP), "torch.optim.AdamW").keywords["lr"]
    assert isinstance(lr, Thing)
    assert (lr.kind, lr.attributes["default"]) == ("argument", 1e-4)


def test_with_a_command_an_argument_that_is_not_given_has_its_default() -> None:
    assert call_of(deeds_of(LOOP, []), "torch.optim.AdamW").keywords["lr"] == 1e-4


def test_an_unknown_word_of_the_command_leaves_the_other_arguments_unknown() -> None:
    lr = call_of(deeds_of(LOOP, [None]), "torch.optim.AdamW").keywords["lr"]
    assert isinstance(lr, Thing)


def test_a_switch_decides_its_branch() -> None:
    assert call_of(deeds_of(LOOP, ["--save"]), "engine.save_checkpoint").spot.guards == ()
    assert "engine.save_checkpoint" not in [call.name for call in deeds_of(LOOP, []).calls]
    assert len(call_of(deeds_of(LOOP), "engine.save_checkpoint").spot.guards) == 1


def test_a_dict_is_followed_through_later_assignments() -> None:
    config = call_of(deeds_of(LOOP), "deepspeed.initialize").keywords["config"]
    assert isinstance(config, Table)
    assert config.entries["zero_optimization"].value.entries["stage"].value == 3


def test_what_a_branch_may_have_changed_in_a_dict_is_unknown() -> None:
    deeds = deeds_of(
        """
        import deepspeed
        config = {"bf16": {"enabled": True}}
        if wanted():
            config["bf16"] = {"enabled": False}
        deepspeed.initialize(model=m, config=config)
        """
    )
    config = call_of(deeds, "deepspeed.initialize").keywords["config"]
    assert isinstance(config.entries["bf16"].value, Thing)


def test_a_json_file_that_is_loaded_and_changed_is_known() -> None:
    deeds = deeds_of(
        """
        import deepspeed, json
        with open("ds.json") as stream:
            config = json.load(stream)
        config["train_batch_size"] = 16
        deepspeed.initialize(model=m, config=config)
        """,
        ds={"train_batch_size": 8, "zero_optimization": {"stage": 2}},
    )
    entries = call_of(deeds, "deepspeed.initialize").keywords["config"].entries
    assert entries["train_batch_size"].value == 16
    assert entries["zero_optimization"].value.entries["stage"].value == 2


def test_a_loss_comes_from_its_engine() -> None:
    loss = call_of(deeds_of(LOOP), "engine.backward").positional[0]
    assert comes_from(loss, "engine")
    assert loss.name == "/"


def test_the_number_of_names_a_result_is_unpacked_into() -> None:
    assert call_of(deeds_of(LOOP), "deepspeed.initialize").unpacked == 4
    starred = deeds_of("import deepspeed\nengine, *_ = deepspeed.initialize(model=m)\nengine.step()")
    assert call_of(starred, "deepspeed.initialize").unpacked is None
    assert call_of(starred, "engine.step")


def test_an_engine_kept_in_an_attribute_is_known_in_other_methods() -> None:
    text = """
        import deepspeed
        class Run:
            def __init__(self):
                self.engine, *_ = deepspeed.initialize(model=m)
            def train(self):
                self.engine.step()
        Run().train()
        """
    assert "engine.step" in names(text)


def test_methods_that_nobody_calls_are_read_too() -> None:
    text = """
        from transformers import Trainer
        class Mine(Trainer):
            def training_step(self, model, inputs):
                self.accelerator.backward(model(inputs))
        """
    call = call_of(deeds_of(text), "accelerator.backward")
    assert not call.spot.is_called


def test_what_a_function_is_given_that_nobody_calls_is_unknown() -> None:
    call = call_of(
        deeds_of("import deepspeed\ndef f(*a, **k):\n    deepspeed.initialize(*a, **k)"), "deepspeed.initialize"
    )
    assert not call.is_complete


def test_a_function_that_the_script_calls_is_not_gone_through_again_for_one_that_nobody_calls() -> None:
    assert names("def main():\n    g()\ndef spawned(index):\n    main()\nmain()").count("g") == 1


def test_a_property_gives_what_its_function_returns() -> None:
    text = """
        import torch.distributed as dist
        class Run:
            @property
            def main(self):
                return dist.get_rank() == 0
            def save(self):
                if not self.main:
                    return
                target()
        Run().save()
        """
    assert one_rank_guard(call_of(deeds_of(text), "target").spot) is not None


def test_keyword_arguments_keep_their_places_through_two_stars() -> None:
    text = "D = {'a': 1}\ndef f(**over):\n    kw = dict(D)\n    kw.update(over)\n    g(**kw)\nf(b=2)"
    call = call_of(deeds_of(text), "g")
    assert dict(call.keywords) == {"a": 1, "b": 2}
    assert {name: node.lineno for name, node in call.spread.items()} == {"a": 1, "b": 6}  # type: ignore[attr-defined]


def test_the_command_line_is_a_list_where_the_command_is_known() -> None:
    text = "import sys\nif len(sys.argv) == 2 and sys.argv[1].endswith('.json'):\n    one()\nelse:\n    other(sys.argv[1:])"
    assert [call.name for call in deeds_of(text, ["x.json"]).calls if call.name in ("one", "other")] == ["one"]
    assert call_of(deeds_of(text, ["--a", "b"]), "other").positional == (["--a", "b"],)


def test_recursion_ends() -> None:
    assert names("def f(n):\n    g()\n    return f(n - 1)\nf(3)").count("g") == 1


def test_a_counter_of_a_loop_is_no_constant() -> None:
    text = """
        step = 0
        for batch in load():
            if step == 0:
                first()
            else:
                other()
            step += 1
        """
    assert {"first", "other"} <= set(names(text))


def test_the_branch_of_a_try_that_fails_does_not_hide_an_import() -> None:
    text = """
        try:
            import deepspeed
        except ImportError:
            deepspeed = None
        deepspeed.initialize(model=m)
        """
    assert "deepspeed.initialize" in names(text)


# --- guards ---


def guard_of(condition: str, before: str = "", *, after_return: bool = False) -> bool:
    body = (
        f"if {condition}:\n        return\n    target()" if after_return else f"if {condition}:\n        target()"
    )
    text = f"import os, torch\nimport torch.distributed as dist\n{before}\ndef f():\n    {body}\nf()\n"
    return one_rank_guard(call_of(deeds_of(text), "target").spot) is not None


def test_conditions_that_only_the_main_rank_meets() -> None:
    assert guard_of("dist.get_rank() == 0")
    assert guard_of("int(os.environ['RANK']) == 0")
    assert guard_of("not rank", "rank = dist.get_rank()")
    assert guard_of("args.local_rank in (-1, 0)", "args = make()")
    assert guard_of(
        "accelerator.is_main_process", "from accelerate import Accelerator\naccelerator = Accelerator()"
    )
    assert guard_of("step() and dist.get_rank() == 0")
    assert guard_of("not dist.is_initialized() or dist.get_rank() == 0") is False  # the first may be true on all
    assert guard_of("dist.get_rank() != 0", after_return=True)
    assert guard_of("dist.get_rank() != 0 or skip()", after_return=True)


def test_conditions_that_all_ranks_may_meet() -> None:
    assert not guard_of("step % 10 == 0", "step = count()")
    assert not guard_of("dist.get_rank() == 0 or everywhere()")
    assert not guard_of("dist.get_rank() == 0", after_return=True)
    assert not guard_of("dist.get_world_size() == 1")


# --- robustness ---

SAMPLES = [
    LOOP,
    "class A(A): pass\nA()()",
    "def f(*a, **k): return f(*a, **k)\nf(**{1: 2})",
    "x: int\nx += 1\ndel x[0]",
]


@given(st.sampled_from(SAMPLES), st.integers(0, 2000), st.integers(0, 60))
@settings(max_examples=150, deadline=None)
def test_no_damaged_script_makes_the_reading_fail(text: str, start: int, length: int) -> None:
    start %= len(text)
    deeds_of(text[:start] + text[start + length :])


@given(st.text(max_size=200))
@settings(deadline=None)
def test_no_text_makes_the_reading_fail(text: str) -> None:
    script = read_script(Source("x.py", text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()))
    read_deeds(script, None)


def test_deep_nesting_is_a_problem_of_the_file() -> None:
    assert read_script(Source("x.py", b"(" * 100_000)).problem is not None
    deep = "x = " + "+".join(["1"] * 50_000)
    read_deeds(read_script(Source("x.py", deep.encode())), None)


def test_null_bytes_are_a_problem_of_the_file() -> None:
    assert read_script(Source("x.py", b"x = 1\0")).problem is not None


def test_spans_count_bytes_after_carriage_returns_and_wide_characters() -> None:
    source = Source("x.py", "\ufeffa = 'é'\r\nb = f('ü', g(1))\r\n".encode())
    script = read_script(source)
    assert script.tree is not None
    call = script.tree.body[1].value  # type: ignore[attr-defined]
    assert source.slice(script.span(call)) == "f('ü', g(1))"

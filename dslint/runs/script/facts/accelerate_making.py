"""Facts about how a script makes its Accelerators."""

from __future__ import annotations

import ast
from itertools import pairwise

from dslint.runs.accelerate_settings import launched_setting
from dslint.runs.facts import Facts
from dslint.runs.item import Item
from dslint.runs.script.events import Call
from dslint.runs.script.facts.accelerator import (
    accelerators,
    is_started_with_deepspeed,
    only_accelerator,
    plugins_of,
    takes_cpu,
    trains_with_deepspeed,
)
from dslint.runs.script.facts.deeds import deeds_of
from dslint.runs.script.items import item
from dslint.runs.unknown import UNDECIDABLE


def kept_on_cpu(facts: Facts) -> tuple[Item, ...]:
    """Accelerators that are told to stay on the CPU although DeepSpeed is asked for."""
    deeds = deeds_of(facts)
    return tuple(
        item(deeds.script, call, {})
        for call in accelerators(deeds)
        if takes_cpu(call) is True and (plugins_of(call) or is_started_with_deepspeed(facts))
    )


def second_plugins(facts: Facts) -> tuple[Item, ...]:
    """Accelerators that are given a plugin although an earlier one has DeepSpeed's already."""
    deeds = deeds_of(facts)
    calls = [call for call in accelerators(deeds) if call.spot.is_called]
    if any(call.dotted.rpartition(".")[2] == "_reset_state" for call in deeds.calls):
        return ()
    found = []
    for earlier, later in pairwise(calls):
        is_sure = not later.spot.guards and trains_with_deepspeed(facts, earlier.result)
        if is_sure and plugins_of(later) and later.node is not earlier.node:
            found.append(item(deeds.script, later, {}, ((earlier.node, "the first Accelerator"),)))
    return tuple(found)


def precisions(facts: Facts) -> tuple[Item, ...]:
    """The mixed precision that the run's Accelerator takes: `asked` "fp16", "bf16", ... (one item or none)."""
    from dslint.runs.accelerate_filling import mixed_precision

    deeds = deeds_of(facts)
    made = only_accelerator(deeds)
    if made is None or not trains_with_deepspeed(facts, made.result) or _is_said_by_file(facts, made):
        return ()
    asked = mixed_precision(facts)
    other = UNDECIDABLE if not _can_be_given(made) else '"bf16"' if asked == "fp16" else '"fp16"'
    return (item(deeds.script, made, {"asked": asked, "other": other}),)


def _can_be_given(made: Call) -> bool:
    """Whether mixed_precision is given by a keyword as a plain text, or not at all."""
    given = [keyword.value for keyword in made.node.keywords if keyword.arg == "mixed_precision"]
    if any(isinstance(one, ast.Starred) for one in made.node.args) or len(made.node.args) > 2:
        return False
    return "mixed_precision" not in made.spread and all(isinstance(value, ast.Constant) for value in given)


def _is_said_by_file(facts: Facts, made: Call) -> bool:
    """An Accelerate file's mixed_precision beside a config file is refused for that alone."""
    return made.argument(2, "mixed_precision") is None and facts.run.accelerate is not None


def clippings_of_zero(facts: Facts) -> tuple[Item, ...]:
    """Plugins without a config of their own that are given a gradient_clipping of 0, which Accelerate drops."""
    deeds = deeds_of(facts)
    found = []
    for made in accelerators(deeds):
        for plugin in plugins_of(made):
            call = plugin.call
            if call is None or not call.is_complete or call.argument(0, "hf_ds_config") is not None:
                continue
            asked = call.argument(2, "gradient_clipping")
            is_zero = isinstance(asked, (int, float)) and not isinstance(asked, bool) and asked == 0
            if (
                is_zero
                and launched_setting(facts.run.launch, facts.run.accelerate, "deepspeed_config_file") is None
            ):
                found.append(item(deeds.script, call, {"key": "gradient_clipping"}))
    return tuple(found)

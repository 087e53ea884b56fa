"""Facts about values that Hugging Face's Trainer compares with its own arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dslint.runs.effective import span_of_entry
from dslint.runs.facts import Fact, Facts
from dslint.runs.item import Item
from dslint.runs.keys import NamePath
from dslint.runs.unknown import Unknown


def _is_no_number(value: Any) -> bool:
    return not isinstance(value, int | float)


def _is_no_step_count(value: Any) -> bool:
    return _is_no_number(value) or value < 1


COMPARED: Mapping[NamePath, Callable[[Any], bool]] = {
    ("optimizer", "params", "lr"): _is_no_number,
    ("optimizer", "params", "eps"): _is_no_number,
    ("optimizer", "params", "weight_decay"): _is_no_number,
    ("scheduler", "params", "warmup_max_lr"): _is_no_number,
    ("scheduler", "params", "total_num_steps"): _is_no_step_count,
}
"""By key, whether no argument can have a value (transformers/integrations/deepspeed.py)."""


def _unmatchable(facts: Facts) -> tuple[Item, ...]:
    written = {path: facts.config.written(path) for path in COMPARED}
    return tuple(
        Item({"key": ".".join(path), "value": value}, facts.main_source, span_of_entry(facts.document, path))
        for path, value in written.items()
        if not (value is None or value == "auto" or isinstance(value, Unknown)) and COMPARED[path](value)
    )


def _text_switches(facts: Facts) -> tuple[Item, ...]:
    """fp16.enabled and bf16.enabled as a text; its value is what DeepSpeed makes of it."""
    paths = [(section, "enabled") for section in ("fp16", "bf16")]
    written = {path: facts.config.written(path) for path in paths}
    return tuple(
        Item(
            {"key": ".".join(path), "value": facts.config.value(path)},
            facts.main_source,
            span_of_entry(facts.document, path),
        )
        for path in paths
        if isinstance(written[path], str) and written[path] != "auto"
    )


FACTS: Mapping[str, Fact] = {
    "trainer.unmatchable": Fact(
        "values that no argument of Hugging Face's Trainer can have, with which it compares them",
        _unmatchable,
        frozenset({"key", "value"}),
    ),
    "trainer.text_switches": Fact(
        "fp16.enabled and bf16.enabled where they are a text, with what DeepSpeed makes of it",
        _text_switches,
        frozenset({"key", "value"}),
    ),
}

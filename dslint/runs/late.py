"""Facts whose modules are loaded only when a run has what they speak of."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dslint.runs.facts import Fact
from dslint.runs.unknown import UNDECIDABLE

if TYPE_CHECKING:
    from dslint.runs.facts import Facts


def script_items(meaning: str, where: str, *fields: str) -> Fact:
    """A list of things that a script does; empty without a script.

    Args:
        meaning: one line for rule authors.
        where: "module:function" below dslint.runs.script.facts; the function is given the Facts of a run whose
            `script` is there.
        fields: the fields of an item beside those of every step (items.SPOT_FIELDS).
    """
    from dslint.runs.script.spot_fields import SPOT_FIELDS

    work_out = _loader("dslint.runs.script.facts.", where)
    return Fact(
        meaning,
        lambda facts: () if facts.run.script is None else work_out(facts),
        frozenset(fields) | SPOT_FIELDS,
        "script",
    )


def script_fact(meaning: str, where: str) -> Fact:
    """A single value about a script; Unknown without one."""
    work_out = _loader("dslint.runs.script.facts.", where)
    return Fact(meaning, lambda facts: UNDECIDABLE if facts.run.script is None else work_out(facts))


def launch_items(meaning: str, where: str, *fields: str) -> Fact:
    """A list of things in a launch command; empty without one."""
    work_out = _loader("dslint.runs.launch.", where)
    return Fact(
        meaning, lambda facts: () if facts.run.launch is None else work_out(facts), frozenset(fields), "launch"
    )


def launch_fact(meaning: str, where: str) -> Fact:
    """A single value about a launch command; Unknown without one."""
    work_out = _loader("dslint.runs.launch.", where)
    return Fact(meaning, lambda facts: UNDECIDABLE if facts.run.launch is None else work_out(facts))


def _loader(package: str, where: str) -> Callable[[Facts], Any]:
    module, _, function = where.partition(":")

    def work_out(facts: Facts) -> Any:
        return getattr(import_module(package + module), function)(facts)

    return work_out

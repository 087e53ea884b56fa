"""The facts of a run: named values that rules speak about.

A fact is a value or Unknown. `config.*` are the effective values of the config; the others stand in fact_table.py,
each with the function that works it out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dslint.documents.document import Document
from dslint.documents.source import Source, Span
from dslint.runs import accelerate
from dslint.runs.auto_values import has_auto_to_fill
from dslint.runs.batch import Batch, complete
from dslint.runs.effective import EffectiveConfig
from dslint.runs.keys import KeyTable
from dslint.runs.releases import NEWEST, Release
from dslint.runs.run import Run
from dslint.runs.unknown import UNDECIDABLE, Unknown, needs

if TYPE_CHECKING:
    from dslint.runs.trainer_arguments import TrainerArguments

ARGUMENTS = "arguments."
"""Begins the names of the Trainer's arguments: `arguments.learning_rate`."""


@dataclass(frozen=True)
class Fact:
    """A fact beside the config's own keys.

    Attributes:
        meaning: one line for rule authors, with the unit.
        work_out: gives the value for a run, or Unknown.
        fields: for a list of items, the fields that each item has.
        part: what a run must have for it: "script" or "launch"; empty for nothing.
    """

    meaning: str
    work_out: Callable[[Facts], Any]
    fields: frozenset[str] = frozenset()
    part: str = ""


class Facts:
    """The facts of one run, worked out when asked for."""

    def __init__(self, run: Run, keys: KeyTable, table: Mapping[str, Fact]) -> None:
        self.run = run
        self.keys = keys
        self._table = table
        self._known: dict[str, Any] = {}

    def lacks(self, name: str) -> bool:
        """Whether a list is surely empty, since the run has no script, or no launch command."""
        part = self._table[name].part
        return (part == "script" and self.run.script is None) or (part == "launch" and self.run.launch is None)

    @property
    def document(self) -> Document:
        """The config's document."""
        return self.run.config

    @property
    def main_source(self) -> Source:
        """The file that a finding without a place of its own belongs to."""
        return self.run.config.source

    @property
    def release(self) -> Release:
        """The DeepSpeed release that the run uses; the newest known one where nothing tells."""
        return self.run.version.release if self.run.version else NEWEST

    @property
    def release_is_known(self) -> bool:
        """Whether files, options or the environment name the very release."""
        return self.run.version is not None and self.run.version.exact

    @cached_property
    def config(self) -> EffectiveConfig:
        """The config as DeepSpeed understands it."""
        loader = self.loader
        filled = loader if isinstance(loader, Unknown) else loader == "hf"
        is_filled = self.arguments is not None or self.framework == "accelerate"
        fill = self._fill if is_filled else None
        return EffectiveConfig(self.document, self.keys, filled_by_trainer=filled, fill=fill)

    def _fill(self, path: tuple[str, ...]) -> Any:
        """What Hugging Face's Trainer, or Accelerate, writes over an "auto"."""
        if self.framework == "accelerate":
            from dslint.runs.accelerate_filling import fill

            return fill(self, path)
        from dslint.runs.auto_filling import FILLED

        filling = FILLED.get(path)
        return UNDECIDABLE if filling is None else filling(self)

    @cached_property
    def arguments(self) -> TrainerArguments | None:
        """The arguments of Hugging Face's Trainer, where the script shows them."""
        if self.run.script is None:
            return None
        from dslint.runs.trainer_arguments import find_trainer_arguments

        return find_trainer_arguments(self.run.script, self.run)

    @cached_property
    def framework(self) -> str | Unknown | None:
        """Who trains: "raw", "pipeline", "trainer", "accelerate" or "lightning"; Unknown where nobody can tell."""
        if self.run.script is None:
            return UNDECIDABLE
        from dslint.runs.script.framework import framework_of

        return framework_of(self.run.script) or UNDECIDABLE

    @cached_property
    def loader(self) -> str | Unknown:
        """Who reads the config: "hf" or "deepspeed".

        Only Hugging Face's integration knows what to do with "auto" on the keys that it fills, so such a
        value tells the loader.
        """
        if self.run.options.loader is not None:
            return self.run.options.loader
        if self.run.accelerate is not None or self.framework in ("trainer", "accelerate"):
            return "hf"
        if self.framework in ("raw", "pipeline", "lightning"):
            return "deepspeed"
        if has_auto_to_fill(self.document, self.keys):
            return "hf"
        return needs("who loads the config (--loader)")

    @cached_property
    def batch(self) -> Batch:
        """The batch sizes with what DeepSpeed derives."""
        return complete(
            self.value("config.train_batch_size"),
            self.value("config.train_micro_batch_size_per_gpu"),
            self.value("config.gradient_accumulation_steps"),
            self.value("dp_size"),
        )

    def value(self, name: str) -> Any:
        """The value of a fact, or Unknown."""
        if name not in self._known:
            self._known[name] = self._work_out(name)
        return self._known[name]

    def _work_out(self, name: str) -> Any:
        if name.startswith("config."):
            return self.config.value(tuple(name.split(".")[1:]))
        if name.startswith(ARGUMENTS):
            return UNDECIDABLE if self.arguments is None else self.arguments.value(name[len(ARGUMENTS) :])
        return self._table[name].work_out(self)

    def given(self, name: str) -> bool | Unknown:
        """Whether the key behind a config fact stands in the file; for other facts, whether they are known."""
        if name.startswith("config."):
            return self.config.given(tuple(name.split(".")[1:]))
        if name.startswith(ARGUMENTS):
            return UNDECIDABLE if self.arguments is None else self.arguments.given(name[len(ARGUMENTS) :])
        value = self.value(name)
        return value if isinstance(value, Unknown) else value is not None

    def written(self, name: str) -> Any:
        """A config value as the file has it; other facts as they are."""
        if name.startswith("config."):
            return self.config.written(tuple(name.split(".")[1:]))
        return self.value(name)

    def place(self, name: str) -> tuple[Source, Span]:
        """Where to show a finding about a fact."""
        if not name.startswith("config."):
            place = self.place_if_given(name)
            if place is not None:
                return place
        path = tuple(name.split(".")[1:]) if name.startswith("config.") else ()
        return self.config.place(path)

    def place_if_given(self, name: str) -> tuple[Source, Span] | None:
        """Where a fact was read; None where it comes from a default or an option."""
        if name.startswith("config."):
            return self.place(name) if self.given(name) is True else None
        if name.startswith(ARGUMENTS):
            is_there = self.arguments is not None and self.given(name) is True
            return self.arguments.place(name[len(ARGUMENTS) :]) if is_there and self.arguments else None
        if name == "loader":
            return self._place_of_taker()
        if self.run.launch is not None and name in ("ranks", "dp_size", "launch.gpus", "launch.nodes"):
            return self.run.launch.source, self._span_of_ranks()
        if name in ("ranks", "dp_size") and self.run.accelerate is not None:
            return accelerate.place_of_ranks(self.run.accelerate)
        return None

    def _place_of_taker(self) -> tuple[Source, Span] | None:
        """Where the script hands the run's config over."""
        if self.run.script is None:
            return None
        from dslint.runs.script.config_use import config_uses

        taker = self.run.script.taker
        uses = [use for use in config_uses(self.run.script) if taker in (None, use.taker)]
        return self.run.script.script.place(uses[0].call.node) if uses else None

    def _span_of_ranks(self) -> Span:
        """Where the launch command says how many ranks it starts."""
        launch = self.run.launch
        assert launch is not None
        for name in ("num_gpus", "num_accelerators", "nproc_per_node", "num_processes", "include", "ntasks", "np"):
            if name in launch.options:
                return launch.options[name].span
        return launch.span

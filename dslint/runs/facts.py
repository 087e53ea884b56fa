"""The facts of a run: named values that rules speak about.

A fact is a value or Unknown. `config.*` are the effective values of the config; the others are listed in FACTS,
each with the function that works it out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dslint.documents.document import Document
from dslint.documents.source import Source, Span
from dslint.runs import accelerate, config_keys, file_form, hardware, optimizer_facts, removed_keys
from dslint.runs.batch import Batch, complete, is_fraction
from dslint.runs.effective import EffectiveConfig
from dslint.runs.item import Item
from dslint.runs.keys import KeyTable
from dslint.runs.run import Run
from dslint.runs.unknown import UNDECIDABLE, Unknown, needs
from dslint.runs.versions import NEWEST, Release

__all__ = ["FACTS", "Fact", "Facts", "Item"]


class Facts:
    """The facts of one run, worked out when asked for."""

    def __init__(self, run: Run, keys: KeyTable) -> None:
        self.run = run
        self.keys = keys
        self._known: dict[str, Any] = {}

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
        return EffectiveConfig(self.document, self.keys, filled_by_trainer=filled)

    @cached_property
    def loader(self) -> str | Unknown:
        """Who reads the config: "hf" or "deepspeed".

        Only Hugging Face's integration knows what to do with "auto" on the keys that it fills, so such a
        value tells the loader.
        """
        if self.run.options.loader is not None:
            return self.run.options.loader
        if self.run.accelerate is not None or config_keys.has_auto_to_fill(self.document, self.keys):
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
        return FACTS[name].work_out(self)

    def given(self, name: str) -> bool | Unknown:
        """Whether the key behind a config fact stands in the file; for other facts, whether they are known."""
        if name.startswith("config."):
            return self.config.given(tuple(name.split(".")[1:]))
        value = self.value(name)
        return value if isinstance(value, Unknown) else value is not None

    def written(self, name: str) -> Any:
        """A config value as the file has it; other facts as they are."""
        if name.startswith("config."):
            return self.config.written(tuple(name.split(".")[1:]))
        return self.value(name)

    def place(self, name: str) -> tuple[Source, Span]:
        """Where to show a finding about a fact."""
        if name == "ranks" or name == "dp_size":
            place = self.place_if_given(name)
            if place is not None:
                return place
        path = tuple(name.split(".")[1:]) if name.startswith("config.") else ()
        return self.config.place(path)

    def place_if_given(self, name: str) -> tuple[Source, Span] | None:
        """Where a fact was read; None where it comes from a default or an option."""
        if name.startswith("config."):
            return self.place(name) if self.given(name) is True else None
        if name in ("ranks", "dp_size") and self.run.accelerate is not None:
            return accelerate.place_of_ranks(self.run.accelerate)
        return None


@dataclass(frozen=True)
class Fact:
    """A fact beside the config's own keys.

    Attributes:
        meaning: one line for rule authors, with the unit.
        work_out: gives the value for a run.
        fields: for a list of items, the fields that each item has.
    """

    meaning: str
    work_out: Callable[[Facts], Any]
    fields: frozenset[str] = frozenset()


def _ranks(facts: Facts) -> int | Unknown:
    """GPUs a node times nodes, or what the Accelerate file starts."""
    options = facts.run.options
    if options.gpus is not None:
        return options.gpus * (options.nodes or 1)
    started = accelerate.ranks(facts.run.accelerate)
    return needs("the number of GPUs (--gpus)") if started is None else started


def _dp_size(facts: Facts) -> Any:
    """Ranks that see different samples: DeepSpeedConfig.__init__ divides by sequence_parallel_size."""
    ranks = facts.value("ranks")
    if facts.given("config.sequence_parallel_size") is not True:
        return ranks
    size = facts.value("config.sequence_parallel_size")
    if isinstance(ranks, Unknown) or not isinstance(size, (int, float)) or not size:
        return ranks if isinstance(ranks, Unknown) else UNDECIDABLE
    share = ranks / size
    return int(share) if share == int(share) else share


def _overlap_comm(facts: Facts) -> Any:
    """DeepSpeedZeroConfig.overlap_comm_valid: the default depends on the stage."""
    value = facts.value("config.zero_optimization.overlap_comm")
    if value is not None:
        return value
    stage = facts.value("config.zero_optimization.stage")
    return stage if isinstance(stage, Unknown) else stage == 3


BATCH_KEYS = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")


def _fractions(facts: Facts) -> tuple[Item, ...]:
    return tuple(
        Item({"key": key, "value": facts.value(f"config.{key}")}, *facts.place(f"config.{key}"))
        for key in BATCH_KEYS
        if is_fraction(facts.value(f"config.{key}"))
    )


def _gpu(ask: Callable[[Any], Any]) -> Callable[[Facts], Any]:
    return lambda facts: hardware.ask_gpu(facts.run.options.gpu, ask)


FACTS: Mapping[str, Fact] = {
    "loader": Fact('who reads the config: "hf" or "deepspeed"', lambda facts: facts.loader),
    "loader_is_said": Fact(
        "whether an option or an Accelerate file names the loader, rather than an \"auto\" in the config",
        lambda facts: facts.run.options.loader is not None or facts.run.accelerate is not None,
    ),
    "ranks": Fact("number of ranks (world size)", _ranks),
    "dp_size": Fact("number of data-parallel ranks", _dp_size),
    "train_batch": Fact("samples an optimizer step, derived", lambda facts: facts.batch.train),
    "micro_batch": Fact("samples a rank and forward pass, derived", lambda facts: facts.batch.micro),
    "accumulation": Fact("forward passes an optimizer step, derived", lambda facts: facts.batch.accumulation),
    "batch_fractions": Fact("batch sizes that are no whole numbers", _fractions, frozenset({"key", "value"})),
    "zero_stage": Fact("ZeRO stage, 0 to 3", lambda facts: facts.value("config.zero_optimization.stage")),
    "overlap_comm": Fact("whether communication overlaps", _overlap_comm),
    "gpu.name": Fact("name of the GPU", _gpu(lambda gpu: gpu.name)),
    "gpu.bf16": Fact("whether the GPU computes in bf16", _gpu(lambda gpu: gpu.bf16)),
    "gpu.fp16": Fact("whether DeepSpeed allows fp16 on the GPU", _gpu(lambda gpu: gpu.fp16)),
    "gpu.fp8": Fact("whether the GPU computes in fp8", _gpu(lambda gpu: gpu.fp8)),
    "gpu.memory": Fact("memory of the GPU in bytes", _gpu(lambda gpu: gpu.memory)),
    **{
        name: Fact(meaning, lambda facts, work_out=work_out: work_out(facts.config))
        for name, (meaning, work_out) in optimizer_facts.VALUES.items()
    },
    **{
        name: Fact(meaning, lambda facts, work_out=work_out: work_out(facts.config), optimizer_facts.FIELDS)
        for name, (meaning, work_out) in optimizer_facts.LISTS.items()
    },
    "accelerate.unknown_keys": Fact(
        "inline keys that Accelerate doesn't read",
        lambda facts: accelerate.unknown_keys(facts.run.accelerate),
        frozenset({"key", "advice"}),
    ),
    "accelerate.unused_section": Fact(
        "a DeepSpeed section beside another distributed_type (one item or none)",
        lambda facts: accelerate.unused_section(facts.run.accelerate),
        frozenset({"type"}),
    ),
    "accelerate.unknown_type": Fact(
        "a distributed_type that Accelerate doesn't have, None where it is missing (one item or none)",
        lambda facts: accelerate.unknown_type(facts.run.accelerate),
        frozenset({"type"}),
    ),
    "accelerate.unknown_top_keys": Fact(
        "keys outside of all sections that Accelerate refuses",
        lambda facts: accelerate.unknown_top_keys(facts.run.accelerate),
        frozenset({"key", "advice"}),
    ),
    "accelerate.keys_beside_config_file": Fact(
        "inline keys that Accelerate refuses beside a config file",
        lambda facts: accelerate.keys_beside_config_file(facts.run.accelerate),
        frozenset({"key"}),
    ),
    "accelerate.precision_beside_config_file": Fact(
        "a mixed_precision that Accelerate refuses beside a config file (one item or none)",
        lambda facts: accelerate.precision_beside_config_file(facts.run.accelerate),
        frozenset({"value"}),
    ),
    "accelerate.clipping_of_zero": Fact(
        "an inline gradient_clipping of 0, which Accelerate drops (one item or none)",
        lambda facts: accelerate.clipping_of_zero(facts.run.accelerate),
        frozenset({"key"}),
    ),
    "accelerate.useless_init_flag": Fact(
        "a zero3_init_flag that is on at another stage than 3 (one item or none)",
        lambda facts: accelerate.useless_init_flag(facts.run.accelerate, facts.value("zero_stage")),
        frozenset({"stage"}),
    ),
    "removed.switched_off": Fact(
        "keys of removed features that are there and off",
        lambda facts: removed_keys.switched_off(facts.document),
        removed_keys.FIELDS,
    ),
    "removed.names_switched_off": Fact(
        "the dotted names of these keys", lambda facts: removed_keys.names_switched_off(facts.document)
    ),
    **{
        f"file.{name}": Fact(form.meaning, lambda facts, form=form: form.work_out(facts.document), form.fields)
        for name, form in file_form.LISTS.items()
    },
    **{
        f"keys.{name}": Fact(
            part.meaning,
            lambda facts, part=part: part.work_out(facts.document, facts.keys, facts.loader),
            part.fields,
        )
        for name, part in config_keys.LISTS.items()
    },
}

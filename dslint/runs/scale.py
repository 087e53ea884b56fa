"""Facts about the size of a run: its ranks, and the samples of a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dslint.runs import accelerate
from dslint.runs.batch import is_fraction
from dslint.runs.facts import Fact, Facts
from dslint.runs.item import Item
from dslint.runs.unknown import UNDECIDABLE, Unknown, needs

BATCH_KEYS = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")


def _ranks(facts: Facts) -> int | Unknown:
    """What the launch command starts; else GPUs a node times nodes, or what the Accelerate file starts."""
    options = facts.run.options
    if facts.run.launch is not None:
        from dslint.runs.launch.facts import ranks

        return ranks(facts)
    if options.gpus is not None:
        return options.gpus * (options.nodes or 1)
    started = accelerate.ranks(facts.run.accelerate)
    return needs("the number of GPUs (--gpus)") if started is None else started


def _dp_size(facts: Facts) -> Any:
    """Ranks that see different samples: DeepSpeedConfig.__init__ divides by sequence_parallel_size.

    A pipeline spreads each copy of the model over several of them (PipelineModule.mpu).
    """
    ranks = facts.value("ranks")
    if facts.run.script is not None:
        from dslint.runs.script.facts.model_parallel import ranks_of_a_copy

        spread = ranks_of_a_copy(facts)
        if spread != 1:
            return _share(ranks, spread)
    if facts.given("config.sequence_parallel_size") is not True:
        return ranks
    size = facts.value("config.sequence_parallel_size")
    return _share(ranks, size)


def _share(ranks: Any, size: Any) -> Any:
    if isinstance(ranks, Unknown) or not isinstance(size, (int, float)) or not size:
        return ranks if isinstance(ranks, Unknown) else UNDECIDABLE
    share = ranks / size
    return int(share) if share == int(share) else share


def _fractions(facts: Facts) -> tuple[Item, ...]:
    return tuple(
        Item(
            {"key": key, "value": value, "below": int(value), "above": int(value) + 1},
            *facts.place(f"config.{key}"),
        )
        for key in BATCH_KEYS
        for value in [facts.value(f"config.{key}")]
        if is_fraction(value)
    )


def _has_peers(facts: Facts) -> bool:
    """Whether there may be more than one rank: what only one rank does then makes the others wait."""
    return bool(facts.value("ranks") != 1)


FACTS: Mapping[str, Fact] = {
    "has_peers": Fact("whether the run has more than one rank, or may have", _has_peers),
    "ranks": Fact("number of ranks (world size)", _ranks),
    "dp_size": Fact("number of data-parallel ranks", _dp_size),
    "train_batch": Fact("samples an optimizer step, derived", lambda facts: facts.batch.train),
    "micro_batch": Fact("samples a rank and forward pass, derived", lambda facts: facts.batch.micro),
    "accumulation": Fact("forward passes an optimizer step, derived", lambda facts: facts.batch.accumulation),
    "batch_fractions": Fact(
        "batch sizes that are no whole numbers",
        _fractions,
        frozenset({"key", "value", "below", "above"}),
    ),
}

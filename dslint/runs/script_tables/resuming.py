"""Facts about the checkpoints that a script loads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dslint.runs.facts import Fact, Facts
from dslint.runs.late import script_items
from dslint.runs.unknown import UNDECIDABLE, Unknown

SPREADING = ("tensor_parallel", "sequence_parallel_size", "expert_parallel", "zero_optimization.mics_shard_size")
"""Keys with which a model, a sample or the optimizer's states may be spread over some of the ranks only."""


def _optimizer_ranks(facts: Facts) -> int | Unknown:
    """Ranks among which ZeRO shares out the optimizer's states (groups._get_sequence_data_parallel_world_size)."""
    if any(facts.given(f"config.{key}") is not False for key in SPREADING):
        return UNDECIDABLE
    if facts.run.accelerate is not None and "parallelism_config" in facts.run.accelerate.value:
        return UNDECIDABLE
    if facts.run.script is not None:
        from dslint.runs.script.facts.model_parallel import ranks_of_a_copy

        calls = facts.run.script.calls
        if ranks_of_a_copy(facts) != 1 or any(call.has(None, "parallelism_config") for call in calls):
            return UNDECIDABLE
    ranks: int | Unknown = facts.value("ranks")
    return ranks


def _loading_items(meaning: str, where: str, *fields: str) -> Fact:
    """Items about loads of checkpoints, for which nothing is imported where a script has none."""
    fact = script_items(meaning, where, *fields)
    return replace(fact, work_out=lambda facts: fact.work_out(facts) if _loads(facts) else ())


def _loads(facts: Facts) -> bool:
    """Whether a script has a call that may load a checkpoint."""
    calls = () if facts.run.script is None else facts.run.script.calls
    return any(
        call.dotted in ("load_checkpoint", "load_state")
        or (call.dotted == "train" and call.argument(0, "resume_from_checkpoint") is not None)
        for call in calls
    )


_ASKED = ("by", "wants_optimizer", "module_only", "has_optimizer", "tag_is_given", "takes_keywords")

FACTS: Mapping[str, Fact] = {
    "optimizer_ranks": Fact(
        "number of ranks among which ZeRO shares out the optimizer's states, where no model is spread over ranks",
        _optimizer_ranks,
    ),
    "script.checkpoint_loads": _loading_items(
        "calls of engine.load_checkpoint: `wants_optimizer` and `module_only` say what they load, "
        "`has_optimizer` whether the engine surely has one; for fixes `takes_keywords`",
        "resuming:checkpoint_loads",
        *_ASKED,
    ),
    "trainer.resumes_without_engine": _loading_items(
        "trainings that go on with a `folder` in which a Trainer without DeepSpeed has left its state",
        "resuming:trainings_without_engine",
        "folder",
    ),
    "script.resumes": _loading_items(
        "loads of checkpoints whose `folder` is there: `by` is engine, trainer or accelerator, `tag` the one "
        "that is loaded (None if nothing names one), `latest` what the file of that name says, `newest` the last "
        "of the tags in the folder, `is_tag_itself` whether it is the folder of a tag, `is_looked_at` whether a "
        "condition asks what was loaded; by the names of the files: `partitioned` (saved at stage 3), "
        "`saved_ranks` that wrote optimizer states (0: none did), `saved_bf16`, `universal`; in words `saved_at`, "
        "`optimizer_kind`, `way_out`, `tag_from`, `without_latest`; for fixes `tag_place`",
        "resuming:resumes",
        *_ASKED,
        "folder",
        "tag",
        "tag_place",
        "tag_from",
        "latest",
        "latest_is_there",
        "latest_universal",
        "has_tag",
        "newest",
        "is_tag_itself",
        "is_looked_at",
        "partitioned",
        "saved_ranks",
        "saved_bf16",
        "universal",
        "saved_at",
        "optimizer_kind",
        "way_out",
        "without_latest",
    ),
}

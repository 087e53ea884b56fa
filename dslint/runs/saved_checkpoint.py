"""What the names of a checkpoint's files tell; the files themselves stay closed.

DeepSpeed names them by what they hold and by the rank that wrote them (deepspeed/runtime/engine.py,
DeepSpeedEngine._get_ckpt_name and _get_rank_zero_ckpt_name).
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from dslint.runs.files import Place

MODEL = re.compile(r"mp_rank_([0-9]{1,6})_model_states\.pt")
"""The weights below ZeRO stage 3, whole."""

MODEL_PART = re.compile(r"zero_pp_rank_([0-9]{1,6})_mp_rank_([0-9]{1,6})_model_states\.pt")
"""A rank's part of the weights at ZeRO stage 3."""

OPTIMIZER_PART = re.compile(r"(bf16_)?zero_pp_rank_([0-9]{1,6})_mp_rank_([0-9]{1,6})_?optim_states\.pt")
"""A rank's part of the optimizer's states at ZeRO stages 1 to 3."""

OF_OTHER_KINDS = re.compile(r"(layer|expert|expp_rank)_.*\.pt")
"""The files of pipelines and of mixtures of experts, whose ranks share the model in other ways."""

LATEST, LATEST_UNIVERSAL = "latest", "latest_universal"
"""Files that name the tag to load where a script names none."""

LONGEST_TAG = 200
"""Letters of a tag; what is longer is no tag."""

MOST_NAMES = 2_000
"""Names in a folder among which tags are looked for."""


@dataclass(frozen=True)
class SavedCheckpoint:
    """One checkpoint: the folder of a tag.

    Attributes:
        is_partitioned: whether it was saved at ZeRO stage 3, where each rank writes its part of the weights.
        ranks: the data-parallel ranks that wrote parts of the optimizer's states; 0 where there are no such parts.
        is_bf16: whether these parts were written by a training in bf16; False where there are none.
        is_universal: whether ds_to_universal.py made it.
    """

    is_partitioned: bool
    ranks: int
    is_bf16: bool
    is_universal: bool


def read_names(names: Collection[str]) -> SavedCheckpoint | None:
    """What a folder holds by the names in it; None for no whole checkpoint, or one of another kind."""
    if any(OF_OTHER_KINDS.fullmatch(name) for name in names):
        return None
    whole = [match for name in names if (match := MODEL.fullmatch(name))]
    parts = [match for name in names if (match := MODEL_PART.fullmatch(name))]
    optimizer = [match for name in names if (match := OPTIMIZER_PART.fullmatch(name))]
    model_parallel = {match[match.lastindex or 1] for match in (*whole, *parts, *optimizer)}
    precisions = {match[1] for match in optimizer}
    writers = sorted(int(match[2]) for match in optimizer)
    if bool(whole) is bool(parts) or {int(rank) for rank in model_parallel} != {0} or len(precisions) > 1:
        return None
    if writers != list(range(len(writers))) or (parts and optimizer and len(parts) != len(writers)):
        return None
    return SavedCheckpoint(bool(parts), len(writers), precisions == {"bf16_"}, "zero" in names)


@dataclass(frozen=True)
class CheckpointFolder:
    """A folder that load_checkpoint is given: it holds a folder for each tag.

    Attributes:
        path: where it is.
        place: where the run looks for it.
    """

    path: str
    place: Place

    @cached_property
    def names(self) -> frozenset[str]:
        """What lies in it."""
        return self.place.names(self.path) or frozenset()

    @cached_property
    def own(self) -> SavedCheckpoint | None:
        """The checkpoint that lies right in it, where it is the folder of a tag itself."""
        return read_names(self.names)

    @cached_property
    def checkpoints(self) -> Mapping[str, SavedCheckpoint]:
        """The checkpoints in it, by tag."""
        names = sorted(self.names) if len(self.names) <= MOST_NAMES else []
        read = {name: self.checkpoint(name) for name in names}
        return {tag: found for tag, found in read.items() if found is not None}

    def checkpoint(self, tag: str) -> SavedCheckpoint | None:
        """The checkpoint of a tag."""
        names = self.place.names(os.path.join(self.path, tag))
        return None if names is None else read_names(names)

    def has(self, tag: str) -> bool:
        """Whether anything lies in the folder of a tag."""
        return bool(self.place.names(os.path.join(self.path, tag)))

    def named_by(self, latest: str) -> str | None:
        """The tag that the file `latest` or `latest_universal` names; None where there is no such file."""
        text = self.place.text(os.path.join(self.path, latest)) if latest in self.names else None
        tag = "" if text is None else text.strip()
        return tag if 0 < len(tag) <= LONGEST_TAG and "\n" not in tag and "\0" not in tag else None

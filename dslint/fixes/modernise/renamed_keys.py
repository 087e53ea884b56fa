"""Keys that changed their names, with everything that they mean.

A config follows in both directions: to the new name where the target knows it, to the old one where the target
knows only that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from dslint.fixes.modernise.subject import ZERO, Plan, Subject
from dslint.runs.keys import KeyTable
from dslint.runs.schema import load_schema

_PREFIXED_SINCE = "0.3.12"


@dataclass(frozen=True)
class Renaming:
    """A key that got another name.

    Attributes:
        section: where it stands.
        old: the old name.
        new: the new name.
        first: the first release that read the old name.
        since: the first release that reads the new name.
    """

    section: tuple[str, ...]
    old: str
    new: str
    first: str
    since: str


RENAMINGS = (
    # deepspeed/runtime/constants.py, BFLOAT16: "bfloat16" from 0.5.5, "bf16" from 0.6.0. The old name is read
    # where bf16 is absent or null (runtime/precision_config.py, get_bfloat16_config); Hugging Face knows the new
    # one only.
    Renaming((), "bfloat16", "bf16", first="0.5.5", since="0.6.0"),
    # deepspeed/runtime/zero/constants.py: the fp16 name from 0.3.14, the 16bit name from 0.6.0, which came first
    # where both stood (zero/config.py, _initialize). From 0.7.0 on both together end in an AssertionError
    # (runtime/config_utils.py, DeepSpeedConfigModel._process_deprecated_field).
    Renaming(
        (ZERO,),
        "stage3_gather_fp16_weights_on_model_save",
        "stage3_gather_16bit_weights_on_model_save",
        first="0.3.14",
        since="0.6.0",
    ),
    # deepspeed/runtime/swap_tensor/constants.py: AIO_THREAD_COUNT until 0.16.3, AIO_INTRA_OP_PARALLELISM since.
    # The old name is ignored from then on (aio_config.py, get_aio_config).
    Renaming(("aio",), "thread_count", "intra_op_parallelism", first="0.3.15", since="0.16.4"),
)


def new_names(subject: Subject) -> Iterator[Plan]:
    """Old names become new ones where the target reads these, new ones old where it doesn't."""
    for one in RENAMINGS:
        if subject.is_from(one.since):
            yield from _renamed(subject, one.section, one.old, one.new, f"its name since DeepSpeed {one.since}")
        elif subject.is_from(one.first):
            before = f"its name before DeepSpeed {one.since}"
            yield from _renamed(subject, one.section, one.new, one.old, before)


def prefixed_names(subject: Subject) -> Iterator[Plan]:
    """Keys of stage 3 get their prefix.

    The names without it are those of the model's fields, which DeepSpeed takes since 0.7.0
    (runtime/zero/config.py, DeepSpeedZeroConfig: aliases and populate_by_name). Before, and in the documentation,
    there are only those with the prefix; Hugging Face fills "auto" in there and stops at it elsewhere. Both
    spellings together are refused, and meant the one with the prefix before 0.7.0.
    """
    for old, new in _aliases().items():
        if subject.is_from(_PREFIXED_SINCE):
            yield from _renamed(subject, (ZERO,), old, new, "the name in DeepSpeed's documentation")


@cache
def _aliases() -> Mapping[str, str]:
    """The documented name of each key of ZeRO that has a second one."""
    keys = KeyTable(load_schema())
    known = keys.section(keys.node((ZERO,)) or {}).get("properties", {})
    return {name: node["x-alias-of"] for name, node in known.items() if "x-alias-of" in node}


def _renamed(subject: Subject, section: tuple[str, ...], old: str, new: str, why: str) -> Iterator[Plan]:
    path = (*section, old)
    if not subject.has(*section, old):
        return
    if _waits_for_hugging_face(subject.at(*section, old)):
        text = '"auto" is filled in by Hugging Face under the name bf16 only: decide on a value'
        yield Plan("left", path, text)
    elif subject.at(*section, new) is not None:
        text = f"taken out beside `{new}`, {why}, which counts where both are there"
        yield Plan("dropped", path, text, (subject.delete(*section, old),))
    else:
        empty = (subject.delete(*section, new),) if subject.has(*section, new) else ()
        yield Plan("carried over", path, f"is now `{new}`, {why}", (*empty, subject.rename(*path, to=new)))


def _waits_for_hugging_face(value: object) -> bool:
    """Whether a section of precision has "auto" for its switch: of the two names only bf16 is filled in."""
    return isinstance(value, dict) and value.get("enabled") == "auto"

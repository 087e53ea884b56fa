"""Where Accelerate takes its settings from: a plugin's arguments, else what the launcher hands on.

`accelerate launch` turns its options, and the file that it is given, into environment variables; an option counts
more than the file (accelerate/commands/launch.py, accelerate/utils/launch.py). DeepSpeedPlugin reads them for what
the script leaves open (accelerate/utils/dataclasses.py, DeepSpeedPlugin.__post_init__).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dslint.documents.document import Document
from dslint.documents.source import Source, Span
from dslint.runs import accelerate
from dslint.runs.effective import span_of_entry
from dslint.runs.unknown import UNDECIDABLE, Unknown

if TYPE_CHECKING:
    from dslint.runs.launch.launch import Launch


@dataclass(frozen=True)
class Setting:
    """A setting that the launcher hands on.

    Attributes:
        value: its value; Unknown where it can't be told, or where the environment may change it.
        source: the file it stands in.
        span: where it stands there: the option with its value, or the value in the Accelerate file.
    """

    value: Any
    source: Source
    span: Span


def launched_setting(launch: Launch | None, started_by: Document | None, name: str) -> Setting | None:
    """What the launcher says for a setting (`zero_stage`, `mixed_precision`); None where it says nothing.

    Args:
        launch: the command that starts the run.
        started_by: the Accelerate file that it is given.
        name: the setting, as the option and the key in the file are called.
    """
    if launch is not None and launch.launcher != "accelerate":
        return None
    option = None if launch is None else launch.options.get(name)
    if launch is not None and option is not None:
        return Setting(UNDECIDABLE if option.overridable else _plain(option.value), launch.source, option.span)
    if launch is not None and launch.options_incomplete:
        return Setting(UNDECIDABLE, launch.source, launch.span)
    if started_by is None or started_by.value.get("distributed_type") != "DEEPSPEED":
        return None
    section = accelerate.section_of(started_by)
    path = ("mixed_precision",) if name == "mixed_precision" else (accelerate.SECTION, name)
    value = started_by.value.get(name) if name == "mixed_precision" else section.get(name)
    if value is None:
        return None
    return Setting(_plain(value), started_by.source, span_of_entry(started_by, path))


def _plain(value: Any) -> Any:
    if isinstance(value, Unknown):
        return value
    plain = accelerate.plain_value(value)
    if isinstance(plain, str):
        try:
            return float(plain)
        except ValueError:
            return plain
    return plain if isinstance(plain, (bool, int, float)) else UNDECIDABLE

"""What the fixes of rules make of a script beside a config."""

from __future__ import annotations

import textwrap
from typing import Any

from tests.runs import mending
from tests.runs.script.loop_rules import config

NOT_MENDED = "not mended"


def mended(code: str, script: str, settings: dict[str, Any] | None = None, way: int = 1, **case: Any) -> str:
    """The script after the first finding's fix; NOT_MENDED where it can't be made or isn't offered."""
    texts = mending.mended(code, way, script=script, config=settings or config(), gpus=8, **case)
    return texts.get("train.py", textwrap.dedent(script)) if texts else NOT_MENDED

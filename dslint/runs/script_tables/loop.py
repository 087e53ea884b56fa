"""Facts about training loops on DeepSpeed's own engine."""

from __future__ import annotations

from collections.abc import Mapping

from dslint.runs.facts import Fact

FACTS: Mapping[str, Fact] = {}

"""Facts about Accelerate and Lightning in a script."""

from __future__ import annotations

from collections.abc import Mapping

from dslint.runs.facts import Fact

FACTS: Mapping[str, Fact] = {}

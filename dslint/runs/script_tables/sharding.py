"""Facts about what ranks do apart, and about partitioned weights and their saving."""

from __future__ import annotations

from collections.abc import Mapping

from dslint.runs.facts import Fact

FACTS: Mapping[str, Fact] = {}

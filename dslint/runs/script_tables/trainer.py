"""Facts about Hugging Face's Trainer in a script."""

from __future__ import annotations

from collections.abc import Mapping

from dslint.runs.facts import Fact

FACTS: Mapping[str, Fact] = {}

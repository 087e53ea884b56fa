"""Facts about any script."""

from __future__ import annotations

from collections.abc import Mapping

from dslint.runs.facts import Fact
from dslint.runs.late import script_items

FACTS: Mapping[str, Fact] = {
    "framework": Fact(
        'who trains: "raw" (deepspeed.initialize), "pipeline", "trainer", "accelerate" or "lightning"',
        lambda facts: facts.framework,
    ),
    "script.syntax_problems": script_items(
        "why the script can't be parsed (one item or none)", "form:syntax_problems", "message"
    ),
    "script.moved_imports": script_items(
        "imports of modules that Transformers 5 doesn't have any more: `old` and `new` are their names",
        "form:moved_imports",
        "statement",
        "moved",
        "old",
        "new",
    ),
}

"""The names that a rule may use: the facts of runs, in the newest DeepSpeed release."""

from __future__ import annotations

from dslint.runs.fact_table import FACTS
from dslint.runs.facts import ARGUMENTS
from dslint.runs.keys import KeyTable
from dslint.runs.schema import load_schema
from dslint.runs.trainer_arguments import NAMES


class Vocabulary:
    """The facts there are."""

    def __init__(self) -> None:
        self.keys = KeyTable(load_schema())

    def is_fact(self, name: str) -> bool:
        """Whether a dotted name is a fact."""
        if name.startswith(ARGUMENTS):
            return name[len(ARGUMENTS) :] in NAMES
        if not name.startswith("config."):
            return name in FACTS
        path = tuple(name.split(".")[1:])
        if self.keys.node(path) is not None:
            return True
        return len(path) > 1 and self.accepts_any_name(path[:-1])

    def accepts_any_name(self, section: tuple[str, ...]) -> bool:
        """Whether a section holds parameters that another class defines (of an optimizer, a scheduler)."""
        node = self.keys.node(section)
        return node is not None and self.keys.section(node).get("x-unknown-keys") == "checked-by-rule"

    def near(self, name: str) -> str | None:
        """The fact with the most similar name."""
        from difflib import get_close_matches

        names = [
            *FACTS,
            *(ARGUMENTS + name for name in NAMES),
            *("config." + ".".join(path) for path in self.keys.paths()),
        ]
        found = get_close_matches(name, names, n=1, cutoff=0.75)
        return found[0] if found else None

    def is_list(self, name: str) -> bool:
        """Whether a fact is a list of items."""
        return name in FACTS and bool(FACTS[name].fields)

    def lists(self) -> list[str]:
        """The list facts."""
        return [name for name, fact in FACTS.items() if fact.fields]

    def fields(self, name: str) -> frozenset[str]:
        """The fields of a list fact's items."""
        return FACTS[name].fields

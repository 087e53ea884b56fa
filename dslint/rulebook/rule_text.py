"""The texts of a rule file: everything that is there for people, for tests and for proofs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RuleText:
    """What a rule file says.

    Attributes:
        file: the path of the file below the folder of rules; its folder is the rule's area.
        data: all of the file: code, name, severity, summary, why, effect, source, examples, proof.
    """

    file: str
    data: Mapping[str, Any]

    @property
    def code(self) -> str:
        """The rule's code."""
        return str(self.data["code"])

    @property
    def name(self) -> str:
        """The rule's name."""
        return str(self.data["name"])

    @property
    def severity(self) -> str:
        """What happens: error, warning or hint."""
        return str(self.data["severity"])

    @property
    def area(self) -> str:
        """The subject that the rule belongs to."""
        return self.file.rpartition("/")[0]

    @property
    def summary(self) -> str:
        """One sentence for lists."""
        return " ".join(str(self.data["summary"]).split())

    @property
    def why(self) -> str:
        """What DeepSpeed does, in two or three sentences."""
        return " ".join(str(self.data["why"]).split())

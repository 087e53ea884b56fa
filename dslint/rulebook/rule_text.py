"""The texts of a rule file: everything that is there for people, for tests and for proofs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

    @property
    def ways_to_fix(self) -> Sequence[Mapping[str, Any]]:
        """The ways to mend a finding, as the file has them; of several a person chooses one."""
        fix = self.data.get("fix", [])
        return fix if isinstance(fix, list) else [fix]

    @property
    def fixable(self) -> str | None:
        """What `--fix` needs to mend it: "safe", "unsafe" or "choice"; None where no example shows it mended."""
        shown = [one for example in self.data["examples"] for one in _each(example.get("fixed"))]
        if all(one in (None, "words") for one in shown):
            return None
        ways = self.ways_to_fix
        return "choice" if len(ways) > 1 else str(ways[0]["tier"])


def _each(fixed: Any) -> Sequence[Any]:
    return fixed if isinstance(fixed, list) else [fixed]

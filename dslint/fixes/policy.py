"""Which fixes a person wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dslint.rulebook.finding import Finding, FindingFix


@dataclass(frozen=True)
class Policy:
    """What may be applied.

    Attributes:
        unsafe: also fixes that change what is trained.
        choices: which of several ways to take, counted from 1, by the rule's code.
        takes_first: of several ways that nobody chose from, take the first that is open.
    """

    unsafe: bool = False
    choices: Mapping[str, int] = field(default_factory=dict)
    takes_first: bool = False

    def pick(self, finding: Finding) -> FindingFix | None:
        """The fix to apply to a finding; None where there is none, or where a person has to choose."""
        ways = [fix for fix in finding.fixes if fix.is_applicable]
        chosen = self.choices.get(finding.code)
        if chosen is not None:
            return next((fix for fix in ways if fix.number == chosen), None)
        if not ways or (len(finding.fixes) > 1 and not self.takes_first):
            return None
        fix = ways[0]
        return fix if fix.tier == "safe" or self.unsafe else None

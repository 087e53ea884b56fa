"""The list of rules."""

from __future__ import annotations

import json
from collections.abc import Sequence

from dslint.reports.style import Style
from dslint.rulebook.rule import Rule


def rule_list_as_text(rules: Sequence[Rule], style: Style) -> str:
    """One line a rule: code, severity, name, summary."""
    name_width = max((len(rule.name) for rule in rules), default=0)
    lines = [
        f"{style.bold(rule.code)}  {style.severity(rule.severity, f'{rule.severity:<7}')}  "
        f"{rule.name:<{name_width}}  {rule.summary}"
        for rule in rules
    ]
    return "\n".join([*lines, "", f"{len(rules)} rules; `dslint explain CODE` tells more about one."])


def rule_list_as_json(rules: Sequence[Rule]) -> str:
    """The rules as data for other tools."""
    content = [
        {
            "code": rule.code,
            "name": rule.name,
            "area": rule.area,
            "severity": rule.severity,
            "summary": rule.summary,
            "why": rule.why,
            "deepspeed": rule.deepspeed or None,
            "fix": None if rule.fix is None else rule.fix.tier,
            "source": rule.source,
        }
        for rule in rules
    ]
    return json.dumps(content, indent=2, ensure_ascii=False)

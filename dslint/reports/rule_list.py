"""The list of rules."""

from __future__ import annotations

import json
from collections.abc import Sequence

from dslint.reports.style import Style
from dslint.rulebook.rule_text import RuleText


def rule_list_as_text(rules: Sequence[RuleText], style: Style) -> str:
    """One line a rule: code, severity, what a fix needs (see `dslint explain`), name, summary."""
    name_width = max((len(one.name) for one in rules), default=0)
    lines = [
        f"{style.bold(one.code)}  {style.severity(one.severity, f'{one.severity:<7}')}  "
        f"{one.fixable or '-':<6}  {one.name:<{name_width}}  {one.summary}"
        for one in rules
    ]
    return "\n".join([*lines, "", f"{len(rules)} rules; `dslint explain CODE` tells more about one."])


def rule_list_as_json(rules: Sequence[RuleText]) -> str:
    """The rules as data for other tools."""
    content = [
        {
            "code": one.code,
            "name": one.name,
            "area": one.area,
            "severity": one.severity,
            "summary": one.summary,
            "why": one.why,
            "deepspeed": one.data.get("deepspeed"),
            "fix": one.fixable,
            "source": one.data.get("source"),
        }
        for one in rules
    ]
    return json.dumps(content, indent=2, ensure_ascii=False)

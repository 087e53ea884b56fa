"""Everything that there is to say about one rule, from its own file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from dslint.reports.style import Style
from dslint.rulebook.rule_text import RuleText

WIDTH = 88


def explanation(rule: RuleText, style: Style) -> str:
    """The text of `dslint explain`."""
    return "\n".join(_lines(rule, style))


def _lines(rule: RuleText, style: Style) -> Iterator[str]:
    yield f"{style.bold(f'{rule.code} {rule.name}')}  {style.severity(rule.severity, rule.severity)}"
    yield ""
    yield _wrapped(rule.summary)
    yield ""
    yield style.bold("Why")
    yield _wrapped(rule.why, "  ")
    if "effect" in rule.data:  # rules about dslint's own comments have none
        yield from _claim(rule, style)
    example = rule.data["examples"][0]
    yield from _example("Example", example["bad"], style)
    yield from _example("Use instead", example["good"], style)
    yield from _fixes(rule, style)


def _fixes(rule: RuleText, style: Style) -> Iterator[str]:
    ways = rule.ways_to_fix
    if not ways:
        return
    yield ""
    yield style.bold("Fix" if len(ways) == 1 else f"Fixes (choose one: --choose {rule.code}=N)")
    for number, way in enumerate(ways, 1):
        which = f"{number}. " if len(ways) > 1 else ""
        yield f"  {which}{' '.join(way['title'].split())} ({way['tier']})"


def _claim(rule: RuleText, style: Style) -> Iterator[str]:
    yield ""
    yield style.bold("What DeepSpeed does")
    yield f"  {_effect(rule.data['effect'])}"
    if "deepspeed" in rule.data:
        yield f"  DeepSpeed {rule.data['deepspeed']}"
    yield f"  Source: {rule.data['source']}"


def _wrapped(text: str, indent: str = "") -> str:
    """The words in lines of at most WIDTH characters (importing textwrap costs as much as the rest)."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(indent) + len(lines[-1]) + 1 + len(word) > WIDTH:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(indent + line for line in lines)


def _effect(effect: Mapping[str, Any]) -> str:
    if "raises" in effect:
        return f"Raises {effect['raises']} during {effect.get('during', 'initialize')}."
    sentences = {
        "ignored": "Ignores what is asked for.",
        "wrong-result": "Trains something else than asked, without a word.",
        "saves-nothing": "Writes no 16-bit weights.",
        "slow": "Trains slower than it could.",
        "memory": "Takes more memory than expected.",
        "warns": "Writes a warning to the log.",
        "advice": "Works; this is advice.",
    }
    return next((text for key, text in sentences.items() if key in effect), "See above.")


def _example(title: str, case: Mapping[str, Any], style: Style) -> Iterator[str]:
    yield ""
    options = [
        f"--{name} {case[name]}" for name in ("gpus", "nodes", "gpu", "deepspeed", "loader") if name in case
    ]
    yield style.bold(title) + (f" ({' '.join(options)})" if options else "")
    if "config" in case:
        text = json.dumps(case["config"], indent=2)
    else:
        text = case.get("text", case.get("accelerate", "")).rstrip()
    yield "\n".join(f"  {line}".rstrip() for line in text.split("\n"))

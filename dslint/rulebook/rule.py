"""A rule: what is wrong, when, and what to say about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dslint.rulebook.expression import Tree

SEVERITIES = ("hint", "warning", "error")
"""From the mildest to the worst: what happens, never how sure dslint is."""

Part = str | Tree
"""A piece of a message: text as it stands, or the tree of an expression to fill in."""


@dataclass(frozen=True)
class RuleFix:
    """How a finding can be mended.

    Attributes:
        tier: `safe` (the meaning stays), `unsafe` (what is trained changes, or a person must choose) or
            `display` (shown, never applied).
        title: what the fix does, in a few words.
        set: expressions for new values, by config key.
        delete: config keys, or the name of the loop's item.
        rename: new names, by config key or the loop's item.
    """

    tier: str
    title: tuple[Part, ...]
    set: Mapping[str, Tree]
    delete: tuple[str, ...]
    rename: Mapping[str, str]


@dataclass(frozen=True)
class Rule:
    """What the judge needs of one rule file, checked.

    Attributes:
        code: `DS` and three digits; codes never change their meaning.
        name: reads after "allow".
        severity: one of SEVERITIES.
        each: in a rule that looks at every item of a list, that list fact and the item's name.
        when: the condition.
        at: the fact (or item) at which the finding stands.
        also: further places, by fact, with what to say there.
        message: the finding's text.
        fix: how to mend it, if anyone can tell.
        deepspeed: the releases it holds for, such as ">=0.19.7"; empty for all.
    """

    code: str
    name: str
    severity: str
    each: tuple[str, str] | None
    when: Tree
    at: str
    also: Mapping[str, str]
    message: tuple[Part, ...]
    fix: RuleFix | None
    deepspeed: str

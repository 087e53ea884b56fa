"""A rule: what is wrong, when, and what to say about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dslint.rulebook.expression import Tree

SEVERITIES = ("hint", "warning", "error")
"""From the mildest to the worst: what happens, never how sure dslint is."""

Part = str | Tree
"""A piece of a message: text as it stands, or the tree of an expression to fill in."""


@dataclass(frozen=True)
class RuleFix:
    """How a finding can be mended, or one of several ways.

    A target is a config key (`config.bf16.enabled`), an argument of the Trainer (`arguments.bf16`), the name of
    the loop's item (the key, the call or the word that the finding is about), or a field of the item that holds
    a place (`call.receiver`); one that is absent is skipped where something is to be taken out or replaced.

    Attributes:
        tier: `safe` (the meaning stays), `unsafe` (what is trained changes, or a person must choose) or
            `display` (shown, never applied).
        title: what the fix does, in a few words.
        when: the condition under which this way is open; None for always.
        set: expressions for new values, by target.
        delete: targets to take out.
        rename: new names, by target.
        move: new dotted paths in the config, by target.
        replace: code or a word that comes in place of a target.
        keywords: new code for keyword arguments of the item, which is a call; None to take one out.
        before: a statement to put before the item's.
        after: a statement to put after the item's.
        unguard: take the item's statement out of the `if` around it.
        plain: write the config anew as strict JSON.
    """

    tier: str
    title: tuple[Part, ...]
    when: Tree | None = None
    set: Mapping[str, Tree] = field(default_factory=dict)
    delete: tuple[str, ...] = ()
    rename: Mapping[str, tuple[Part, ...]] = field(default_factory=dict)
    move: Mapping[str, tuple[Part, ...]] = field(default_factory=dict)
    replace: Mapping[str, tuple[Part, ...]] = field(default_factory=dict)
    keywords: Mapping[str, tuple[Part, ...] | None] = field(default_factory=dict)
    before: tuple[Part, ...] | None = None
    after: tuple[Part, ...] | None = None
    unguard: bool = False
    plain: bool = False

    def as_data(self) -> dict[str, Any]:
        """Plain data of which RuleFix can be made again, without what it lacks."""
        return {name: value for name, value in vars(self).items() if value}

    @property
    def is_applicable(self) -> bool:
        """Whether it says what to change, and may be applied."""
        changes = (self.set, self.delete, self.rename, self.move, self.replace, self.keywords)
        return self.tier != "display" and any((*changes, self.before, self.after, self.unguard, self.plain))


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
        ways: the ways to mend it as plain data, since most rules that are loaded find nothing.
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
    ways: tuple[Mapping[str, Any], ...]
    deepspeed: str

    @cached_property
    def fixes(self) -> tuple[RuleFix, ...]:
        """The ways to mend it; of several one is chosen."""
        return tuple(RuleFix(**way) for way in self.ways)

"""The rules about dslint's own comments.

No expression over a run can decide them, since they are about what the other rules have said. So they have the
texts of a rule file and no condition; `explain`, `rules`, `--select` and `--ignore` know them all the same.
"""

from __future__ import annotations

from dslint.rulebook.rule_text import RuleText

UNUSED_IGNORE = RuleText(
    "comments/DS061-unused-ignore",
    {
        "code": "DS061",
        "name": "unused-ignore",
        "severity": "warning",
        "summary": "A dslint comment ignores a rule that says nothing there.",
        "why": "The comment stays behind when its reason is gone, and then hides the next mistake of that kind. "
        "It is reported only where its rules were selected and could be decided.",
        "examples": [
            {
                "name": "the reason is gone",
                "bad": {"text": "trainer.train()  # dslint: ignore[DS612]"},
                "good": {"text": "trainer.train()"},
            }
        ],
    },
)
IGNORE_WITHOUT_CODE = RuleText(
    "comments/DS062-ignore-without-code",
    {
        "code": "DS062",
        "name": "ignore-without-code",
        "severity": "warning",
        "summary": "A dslint comment doesn't say which rules it is about, so it ignores nothing.",
        "why": "A comment that silences everything would also hide what nobody has seen yet. So a comment must "
        "name the rules: by code, by the beginning of a code, or by name.",
        "examples": [
            {
                "name": "no brackets",
                "bad": {"text": "engine.save_checkpoint(path)  # dslint: ignore"},
                "good": {
                    "text": "engine.save_checkpoint(path)  # dslint: ignore[DS901] one rank only, on purpose"
                },
            }
        ],
    },
)
IGNORE_OF_UNKNOWN_RULE = RuleText(
    "comments/DS063-ignore-of-unknown-rule",
    {
        "code": "DS063",
        "name": "ignore-of-unknown-rule",
        "severity": "warning",
        "summary": "A dslint comment names a rule that there isn't.",
        "why": "No rule has this code or name, so the comment ignores nothing; most often it "
        "is a slip of the keys.",
        "examples": [
            {
                "name": "a slip",
                "bad": {"text": "torchrun train.py  # dslint: ignore[batch-size-mismach]"},
                "good": {"text": "torchrun train.py  # dslint: ignore[batch-size-mismatch]"},
            }
        ],
    },
)
OWN_RULES = (UNUSED_IGNORE, IGNORE_WITHOUT_CODE, IGNORE_OF_UNKNOWN_RULE)

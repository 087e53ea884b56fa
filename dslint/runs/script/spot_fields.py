"""The fields that every item of a script has."""

SPOT_FIELDS = frozenset(["text", "span", "guard", "on_one_rank", "in_loop", "is_called"])
"""`text` as written (`engine.save_checkpoint`), `span` all of its lines, `on_one_rank` whether only one rank comes
here, `guard` the condition that sees to it, `in_loop`, and `is_called` whether this file itself calls the function
around it."""

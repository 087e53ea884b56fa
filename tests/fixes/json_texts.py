"""Configs written in random styles, tidy and wild, with numbered comments."""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import Any

WORDS = (
    "stage",
    "fp16",
    "bf16",
    "optimizer",
    "params",
    "lr",
    "a",
    "b-c",
    "x.y",
    "two words",
    "ä",
    "quote'\"d",
    "",
)
TEXTS = ("auto", "cpu", "", "AdamW", "/path # 3", 'it\'s // "so"', "a, b", "ünï", "back\\slash", "tab\t", "}")
QUOTELESS = (
    "auto",
    "True,",
    "False, // off",
    "text } with ] all , of # it",
    "None /* none */",
    "ZERO_STAGE",
    "1 2",
)
NUMBERS = ("0", "1", "-7", "5e8", "1e-5", "0.90", "1E+3", "123456789012345678901234567890")


def random_config(random: Random, depth: int = 3) -> dict[str, Any]:
    """Plain data such as a config holds."""
    return {random.choice(WORDS): _random_value(random, depth) for _ in range(random.randrange(5))}


def _random_value(random: Random, depth: int) -> Any:
    kind = random.randrange(8 if depth else 6)
    if kind < 2:
        return random.choice(TEXTS)
    if kind < 4:
        return random.choice((0, 1, 2.5, 1e-5, 500000000))
    if kind < 6:
        return random.choice((True, False, None))
    if kind == 6:
        return random_config(random, depth - 1)
    return [_random_value(random, depth - 1) for _ in range(random.randrange(4))]


@dataclass(frozen=True)
class Look:
    """How a tidy text is written."""

    indent: str | None
    newline: str
    colon: str
    quote: str
    commas: bool
    trailing_commas: bool
    comments: tuple[str, ...]
    braces: bool
    final_newline: bool
    mark: bool


def random_look(random: Random) -> Look:
    """A look that all of one file has, as files that people write do."""
    indent = random.choice((None, "\t", " ", "  ", "    "))
    wide = indent is not None
    hjson = random.random() < 0.4
    return Look(
        indent=indent,
        newline=random.choice(("\n", "\n", "\r\n")),
        colon=random.choice((": ", ":", " : ", ":\t")),
        quote=random.choice(('"', "'", "")) if hjson else '"',
        commas=not (hjson and wide and random.random() < 0.5),
        trailing_commas=random.random() < 0.2,
        comments=tuple(random.sample(("#", "//", "/*"), random.randrange(4))) if wide else (),
        braces=not (hjson and random.random() < 0.3),
        final_newline=random.random() < 0.7,
        mark=random.random() < 0.1,
    )


class TidyText:
    """Writes a config in one look."""

    def __init__(self, random: Random, look: Look) -> None:
        self.random = random
        self.look = look
        self.comments = 0

    def written(self, config: dict[str, Any]) -> str:
        if self.look.braces or not config:
            text = self.value(config, "")
        else:
            text = self.entries(config, "", last_newline=False)
        text = (self.comment("") if self.look.indent is not None else "") + text
        text += "\n" if self.look.final_newline else ""
        return ("\ufeff" if self.look.mark else "") + text.replace("\n", self.look.newline)

    def comment(self, indent: str) -> str:
        """A comment on a line of its own, or nothing."""
        if not self.look.comments or self.random.random() > 0.25:
            return ""
        return indent + self.note(self.random.choice(self.look.comments)) + "\n"

    def comment_behind(self) -> str:
        if not self.look.comments or self.random.random() > 0.25:
            return ""
        return " " + self.note(self.random.choice(self.look.comments))

    def note(self, mark: str) -> str:
        self.comments += 1
        return f"{mark} note-{self.comments}- with, {{ all" + (" */" if mark == "/*" else "")

    def value(self, value: Any, indent: str) -> str:
        if isinstance(value, dict) and value:
            inner = indent + (self.look.indent or "")
            if self.look.indent is None:
                return "{" + self.entries(value, "") + "}"
            return "{\n" + self.entries(value, inner) + indent + "}"
        if isinstance(value, list):
            return "[" + ", ".join(self.value(item, indent) for item in value) + "]"
        return json.dumps(value, ensure_ascii=self.random.random() < 0.5)

    def entries(self, config: dict[str, Any], indent: str, last_newline: bool = True) -> str:
        wide = self.look.indent is not None
        text = ""
        for index, (key, value) in enumerate(config.items()):
            is_last = index == len(config) - 1
            has_comma = not is_last or self.look.trailing_commas
            text += self.comment(indent) if wide else ""
            text += (indent if wide else "") + self.key(key) + self.look.colon + self.value(value, indent)
            text += "," if has_comma and (self.look.commas or not wide) else ""
            text += self.comment_behind() if wide else ("" if is_last else " ")
            text += "\n" if wide and (last_newline or not is_last) else ""
        return text + (self.comment(indent) if wide and last_newline else "")

    def key(self, key: str) -> str:
        if not self.look.quote and key.isidentifier():
            return key
        return single_quoted(key) if self.look.quote == "'" else json.dumps(key, ensure_ascii=False)


def single_quoted(text: str) -> str:
    """A text in single quotes."""
    return "'" + json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"').replace("'", "\\'") + "'"


class WildText:
    """Writes a config so that between any two pieces there may be anything that Hjson allows."""

    def __init__(self, random: Random, doubles: bool = False) -> None:
        self.random = random
        self.doubles = doubles
        self.comments = 0

    def written(self) -> str:
        random = self.random
        braces = random.random() < 0.8
        entries = self.entries(3, min_count=0 if braces else 1)
        text = self.gap() + ("{" + entries + "}" if braces else entries.lstrip()) + self.gap()
        if random.random() < 0.3:
            text = text.replace("\n", "\r\n")
        return text

    def gap(self, newline: bool = False) -> str:
        pieces = [self.gap_piece() for _ in range(self.random.choice((0, 0, 1, 1, 2, 4)))]
        return ("\n" if newline else "") + "".join(pieces)

    def gap_piece(self) -> str:
        kind = self.random.randrange(12)
        if kind < 6:
            return self.random.choice((" ", "  ", "\t"))
        if kind < 9:
            return "\n" + self.random.choice(("", "  ", "\t"))
        self.comments += 1
        note = f"note-{self.comments}- , {{"
        return (f"# {note}\n", f"//{note}\n", self.random.choice((f"/* {note} */", f"/*\n {note}\n*/")))[kind - 9]

    def entries(self, depth: int, min_count: int = 0) -> str:
        random = self.random
        count = random.randrange(min_count, 5)
        names = random.choices(WORDS[:4], k=count) if self.doubles else random.sample(WORDS, count)
        text = self.gap()
        for index, name in enumerate(names):
            value, ends = self.value(depth)
            text += self.key(name) + self.gap() + ":" + self.gap() + value
            text += self.separator(ends, index == len(names) - 1)
        return text

    def separator(self, ends: str, is_last: bool) -> str:
        """What stands behind a value that ends by itself, by a mark, or only with the line."""
        if ends == "line":
            return self.gap(newline=True)
        comma = self.random.random() < (0.2 if is_last else 0.8)
        if comma:
            return self.gap() + "," + self.gap()
        return self.gap(newline=ends == "mark" and not is_last)

    def key(self, name: str) -> str:
        form = self.random.randrange(3)
        if form == 0 and name and not set(name) & set(" \t,:[]{}'\"#/"):
            return name
        return single_quoted(name) if form == 1 else json.dumps(name, ensure_ascii=False)

    def value(self, depth: int) -> tuple[str, str]:
        random = self.random
        kind = random.randrange(8 if depth else 6)
        if kind == 0:
            return random.choice(QUOTELESS), "line"
        if kind == 1:
            return random.choice((*NUMBERS, "true", "false", "null")), "mark"
        if kind == 2:
            return "\n  '''\n  some\n    text\n  '''", "itself"
        if kind < 6:
            text = random.choice(TEXTS)
            return (single_quoted(text) if random.random() < 0.3 else json.dumps(text)), "itself"
        if kind == 6:
            return "{" + self.entries(depth - 1) + "}", "itself"
        return "[" + self.items(depth - 1) + "]", "itself"

    def items(self, depth: int) -> str:
        text = self.gap()
        count = self.random.randrange(4)
        for index in range(count):
            value, ends = self.value(depth)
            text += value + self.separator(ends, index == count - 1)
        return text

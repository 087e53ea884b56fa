"""Seeded mistakes in configs: the same file and seed make the same mutant on every machine.

A config is held as a list of entries instead of a dict, so that a key can stand twice.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import hjson

MOST_MISTAKES = 2


@dataclass
class Entry:
    """A key and its value, which may be a Section."""

    key: str
    value: Any


class Section(list[Entry]):
    """An object of a config, with its entries in their order."""


@dataclass(frozen=True)
class Spot:
    """An entry that a mistake may hit.

    Attributes:
        root: the whole config.
        section: the section that holds the entry.
        entry: the entry.
        path: the dotted key, for people.
    """

    root: Section
    section: Section
    entry: Entry
    path: str


@dataclass(frozen=True)
class Mutant:
    """A config with mistakes.

    Attributes:
        base: name of the file that it was made from.
        seed: what the mistakes follow from.
        text: the config.
        mistakes: what was done, in words.
    """

    base: str
    seed: int
    text: str
    mistakes: tuple[str, ...]

    @property
    def name(self) -> str:
        """What identifies it: the file and the seed."""
        return f"{self.base}#{self.seed}"


class Breeder:
    """Makes mutants of a set of configs.

    Args:
        texts: the configs, by file name; those that are no configs (templates, say) are left out.
        bases: names of those that `mutants` takes; all by default.
    """

    def __init__(self, texts: Mapping[str, str], bases: Collection[str] | None = None) -> None:
        read = {name: read_section(texts[name]) for name in sorted(texts)}
        self._sections = {name: section for name, section in read.items() if section}
        self._names = [name for name in self._sections if bases is None or name in bases]
        self._values: dict[str, list[Any]] = {}
        for section in self._sections.values():
            for spot in spots(section):
                self._values.setdefault(spot.entry.key, []).append(spot.entry.value)
        self._keys = list(self._values)

    def mutants(self, count: int, first_seed: int = 0) -> Iterator[Mutant]:
        """The mutants of this many successive seeds, of any file."""
        for seed in range(first_seed, first_seed + count):
            yield self.mutant(Random(f"file {seed}").choice(self._names), seed)

    def mutant(self, base: str, seed: int) -> Mutant:
        """The mutant of a file and a seed."""
        random = Random(f"{base} {seed}")
        root = copy.deepcopy(self._sections[base])
        mistakes = []
        for _ in range(random.randint(1, MOST_MISTAKES)):
            places = list(spots(root))
            if places:
                mistakes.append(self._make_mistake(random, random.choice(places)))
        return Mutant(base, seed, written(root) + "\n", tuple(mistakes))

    def _make_mistake(self, random: Random, spot: Spot) -> str:
        name = random.choice([*MISTAKES, "swap", "add"])
        if name == "swap":
            return f"swap {spot.path}: {self._swap(random, spot)}"
        if name == "add":
            return f"add beside {spot.path}: {self._add(random, spot)}"
        return f"{name} {spot.path}: {MISTAKES[name](random, spot)}"

    def _swap(self, random: Random, spot: Spot) -> str:
        """Take the value that another file has for the same key; a misspelt one keeps its own."""
        values = self._values.get(spot.entry.key, [spot.entry.value])
        spot.entry.value = copy.deepcopy(random.choice(values))
        return brief(spot.entry.value)

    def _add(self, random: Random, spot: Spot) -> str:
        """Take a key and its value from anywhere, whether it belongs here or not."""
        key = random.choice(self._keys)
        entry = Entry(key, copy.deepcopy(random.choice(self._values[key])))
        spot.section[:] = [*(each for each in spot.section if each.key != key), entry]
        return f"{key} = {brief(entry.value)}"


# --- reading and writing ---


def read_section(text: str) -> Section | None:
    """The entries of a config as DeepSpeed reads it; None if it can't be read or is no object."""

    def section(pairs: list[tuple[str, Any]]) -> Section:
        return Section(Entry(key, value) for key, value in pairs)

    try:
        value = hjson.loads(text, object_pairs_hook=section)
    except hjson.HjsonDecodeError:
        return None
    return value if isinstance(value, Section) else None


def written(value: Any, indent: str = "") -> str:
    """A value as JSON."""
    if isinstance(value, Section):
        if not value:
            return "{}"
        deeper = indent + "  "
        lines = (f"{deeper}{json.dumps(each.key)}: {written(each.value, deeper)}" for each in value)
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, list):
        return f"[{', '.join(written(each, indent) for each in value)}]"
    return json.dumps(value)


def brief(value: Any) -> str:
    """A value in a few words."""
    text = " ".join(written(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def spots(root: Section) -> Iterator[Spot]:
    """All entries of a config."""

    def below(section: Section, above: str) -> Iterator[Spot]:
        for entry in section:
            yield Spot(root, section, entry, f"{above}{entry.key}")
            if isinstance(entry.value, Section):
                yield from below(entry.value, f"{above}{entry.key}.")

    return below(root, "")


# --- mistakes ---

Mistake = Callable[[Random, Spot], str]
"""Changes the config at a spot, and says how."""


def _drop(_: Random, spot: Spot) -> str:
    _take_out(spot)
    return "gone"


def _duplicate(random: Random, spot: Spot) -> str:
    """Let the key stand twice; the second time with the same value, or with another of the same section."""
    value = random.choice([spot.entry.value, random.choice(spot.section).value])
    spot.section.append(Entry(spot.entry.key, copy.deepcopy(value)))
    return brief(value)


def _retype(random: Random, spot: Spot) -> str:
    value = spot.entry.value
    text = brief(value)
    kinds: list[Any] = [text, None, [value], True, False, 0, -1, 1.5, "x", "true", "5e8", "auto", Section()]
    spot.entry.value = random.choice(kinds)
    return brief(spot.entry.value)


def _rename(random: Random, spot: Spot) -> str:
    """Misspell the key."""
    key = spot.entry.key
    letters = list(key)
    at = random.randrange(max(len(key) - 1, 1))
    letters[at : at + 2] = reversed(letters[at : at + 2])
    misspelt = ["".join(letters), key[:at] + key[at + 1 :], f"{key}s", key[:-1], f"_{key}", f"x{key}"]
    restyled = [key.upper(), key.replace("_", "-"), key.replace("_", "")]
    spot.entry.key = random.choice(misspelt + restyled)
    return spot.entry.key


def _move(random: Random, spot: Spot) -> str:
    """Put the entry into another section."""
    _take_out(spot)
    inner = [(each.path, each.entry.value) for each in spots(spot.root) if isinstance(each.entry.value, Section)]
    name, target = random.choice([("the top", spot.root), *inner])
    target[:] = [*(each for each in target if each.key != spot.entry.key), spot.entry]
    return f"to {name}"


def _change_number(random: Random, spot: Spot) -> str:
    """Another number; for what is counted in samples or steps none that would train for hours."""
    value = spot.entry.value
    numbers: list[Any] = [0, -1, 1, 3, 0.5]
    if isinstance(value, int | float):
        numbers.append(value * 2)
    if not any(word in spot.entry.key for word in ("batch", "accumulation")):
        numbers += [10**6, 1e9]
    spot.entry.value = random.choice(numbers)
    return brief(spot.entry.value)


def _take_out(spot: Spot) -> None:
    spot.section[:] = [each for each in spot.section if each is not spot.entry]


MISTAKES: Mapping[str, Mistake] = {
    "drop": _drop,
    "duplicate": _duplicate,
    "retype": _retype,
    "rename": _rename,
    "move": _move,
    "number": _change_number,
}

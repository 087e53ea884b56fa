"""Facts about the keys of a config: unknown ones, values of the wrong type, "auto" that nothing fills."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dslint.documents.document import Document, NodePath
from dslint.runs.auto_values import autos, autos_on_unknown_keys
from dslint.runs.effective import is_config, span_of_entry
from dslint.runs.facts import Fact
from dslint.runs.file_form import is_python_word
from dslint.runs.item import Item
from dslint.runs.keys import KeyTable, NamePath, Schema
from dslint.runs.near_names import Near, advice, near_name
from dslint.runs.unknown import Unknown

Items = tuple[Item, ...]
FALSE_WORDS = ("false", "no", "off", "0", "none", "null")
REPLACED = ("steps_per_print", "zero_allow_untested_optimizer")
"""Keys that Accelerate may replace before it looks for "auto" (Accelerator._prepare_deepspeed)."""
ACCELERATES_DEFAULTS: Mapping[str, Any] = {
    "stage": 2,
    "device": "none",
    "stage3_gather_16bit_weights_on_model_save": False,
}
"""What Accelerate puts for "auto" in zero_optimization, unless its launcher was told otherwise."""
NOTE_PREFIXES = ("_", "//", "#", "$", "comment")


def is_note(name: str) -> bool:
    """Whether a key is a person's own note or a switched-off key: `_lr`, `//`, `comment`."""
    return name.lower().startswith(NOTE_PREFIXES)


def _unknown(document: Document, keys: KeyTable) -> Items:
    if not is_config(document, keys):
        return ()
    return tuple(
        _unknown_item(document, keys, path, section) for path, section in _unknown_keys(document.value, keys)
    )


def _unknown_keys(value: Any, keys: KeyTable) -> Iterator[tuple[NamePath, Schema]]:
    """Paths of keys that their section doesn't have, with the section's schema; notes are left out."""
    yield from _unknown_below(value, (), keys.schema, keys)


def _unknown_below(
    value: Mapping[str, Any], above: NamePath, node: Schema, keys: KeyTable
) -> Iterator[tuple[NamePath, Schema]]:
    section = keys.section(node)
    policy = section.get("x-unknown-keys")
    known = section.get("properties", {})
    for name, child in value.items():
        path = (*above, name)
        if name in known and _was_removed(known[name], above):
            yield path, section
        elif name in known:
            if isinstance(child, dict) and keys.section(known[name]):
                yield from _unknown_below(child, path, known[name], keys)
        elif f"^{name}$" in section.get("patternProperties", {}):
            continue
        elif policy == "raises" or (policy == "ignored" and not is_note(name)):
            yield path, section


def _was_removed(node: Schema, section: NamePath) -> bool:
    """Whether a section once had a key and refuses it now; the larger removals have rules of their own."""
    return "x-until" in node and "not" in node and bool(section) and section != ("zero_optimization",)


def _unknown_item(document: Document, keys: KeyTable, path: NamePath, section: Schema) -> Item:
    name = path[-1]
    siblings = section.get("properties", {})
    near = near_name(name, [key for key, node in siblings.items() if "x-until" not in node])
    homes = _homes(name, keys)
    home = homes[0] if len(homes) == 1 and near is None else None
    given = _sibling_names(document.value, path[:-1])
    raises = section.get("x-unknown-keys") == "raises"
    is_dropped = raises and given[name] == "auto"
    was_removed = "x-until" in siblings.get(name, {})
    fields = {
        "key": name,
        "section": ".".join(path[:-1]),
        "is_top_level": len(path) == 1,
        "refused": raises and not is_dropped,
        "is_dropped": is_dropped,
        "is_slip": near is not None and near.is_slip and near.key not in given,
        "has_home": home is not None,
        "advice": _advice(siblings.get(name, {}), near, home),
        "since": section.get("x-unknown-raises-since", ""),
        "new_name": None if was_removed else _new_name(near, given[name], given, siblings, keys),
        "home": None if home is None or was_removed else _free_place(document.value, (*home, name)),
    }
    later = _release_that_brings(path, keys)
    if later is not None:
        fields |= {"is_slip": False, "has_home": False, "advice": f" (DeepSpeed has it from {later} on)"}
        fields |= {"new_name": None, "home": None}
    return Item(fields, document.source, span_of_entry(document, path))


def _homes(name: str, keys: KeyTable) -> list[NamePath]:
    """The sections that have a key of this name today."""
    sections = keys.sections_by_key.get(name, ())
    return [section for section in sections if "x-until" not in (keys.node((*section, name)) or {})]


def _new_name(
    near: Near | None, value: Any, given: Mapping[str, Any], siblings: Mapping[str, Schema], keys: KeyTable
) -> str | None:
    """The name that a key can be given in its place; None where it is taken or wouldn't go with the value."""
    if near is None or near.key in given:
        return None
    node = siblings[near.key]
    if value == "auto":
        return near.key if node.get("x-auto") == "filled" else None
    from dslint.runs.schema_check import fits

    return near.key if near.is_slip or fits(value, node, keys.schema) else None


def _free_place(value: Any, path: NamePath) -> str | None:
    """A path with dots, where a key belongs; None where it can't go there: something else is in the way."""
    for name in path:
        if not isinstance(value, dict):
            return None
        if name not in value:
            return ".".join(path)
        value = value[name]
    return None


def _release_that_brings(path: NamePath, keys: KeyTable) -> str | None:
    """The later release with which a key came that the one at hand doesn't know."""
    from dslint.runs.schema import load_schema

    newest = load_schema()
    node = KeyTable(newest).node(path) if keys.schema is not newest else None
    return None if node is None or "not" in node else node.get("x-since")


def _advice(node: Schema, near: Near | None, home: NamePath | None) -> str:
    """The end of a message: what to do instead; empty where nothing is known."""
    if "x-until" in node:
        removal = f" (removed after DeepSpeed {node['x-until']}): "
        text: str = node["x-advice"]
        return removal + text[0].lower() + text[1:].rstrip(".")
    return advice(near) if near is not None else _way_home(home)


def _way_home(home: NamePath | None) -> str:
    """The end of a message: where a key belongs; empty where that can't be told."""
    if home is None:
        return ""
    return f": it belongs into `{'.'.join(home)}`" if home else ": it belongs at the top level"


def _sibling_names(value: Any, section: NamePath) -> Mapping[str, Any]:
    for name in section:
        value = value[name]
    return value if isinstance(value, dict) else {}


def _wrong(document: Document, keys: KeyTable, loader: str | Unknown) -> Items:
    """Values that their key doesn't take; "auto" and placeholders have facts of their own."""
    if not is_config(document, keys):
        return ()
    from dslint.runs.schema_check import fits, wrong_values

    if fits(document.value, keys.schema, keys.schema):
        return ()
    placeholders = {placeholder.path for placeholder in document.placeholders}
    return tuple(
        _wrong_item(document, keys, path, value, loader)
        for path, value in wrong_values(document.value, keys.schema)
        if path not in placeholders
        and not _is_value_of_its_own(keys, path, value)
        and not is_python_word(document, path)
    )


def _is_value_of_its_own(keys: KeyTable, path: NodePath, value: Any) -> bool:
    """Whether another fact speaks about a value: "auto" on a key that may have it, anything on a removed key."""
    node = keys.node(tuple(step for step in path if isinstance(step, str))) or {}
    return "x-until" in node or bool(value == "auto" and "x-auto" in node)


def _wrong_item(document: Document, keys: KeyTable, path: NodePath, value: Any, loader: str | Unknown) -> Item:
    from dslint.runs.expected import expected, shown
    from dslint.runs.meant import meant_value

    names = tuple(step for step in path if isinstance(step, str))
    node = keys.node(names) or {}
    fields = {
        "key": ".".join(map(str, path)),
        "shown": shown(_text_at(document, path), value),
        "expected": expected(node, keys),
        "counts_as_true": node.get("x-coerces") == "truthiness" and bool(value),
        "says_false": isinstance(value, str) and value.strip(", ").lower() in FALSE_WORDS,
        "refused": _is_refused(keys, names, node, value, loader),
        "section": names[0] if len(names) > 1 else "",
        "is_typed": "x-type" in node or keys.section(node).get("x-unknown-keys") == "raises",
        "is_null": value is None,
        "meant": meant_value(value, node, keys) if path == names else None,
    }
    return Item(fields, document.source, span_of_entry(document, path))


def _text_at(document: Document, path: NodePath) -> str:
    span = document.values.get(path)
    return document.source.slice(span) if span is not None else ""


def _is_refused(keys: KeyTable, names: NamePath, node: Schema, value: Any, loader: str | Unknown) -> bool:
    """Whether DeepSpeed stops at a wrong value here, rather than perhaps later or never.

    Accelerate replaces whatever steps_per_print says (Accelerator._prepare_deepspeed), and DeepSpeed only asks
    whether there is a "throughput" in `timers`.
    """
    if names == ("steps_per_print",) and loader == "hf":
        return False
    if names == ("timers",) and isinstance(value, str | list):
        return False
    if node.get("x-coerces") == "truthiness":
        return False
    if "x-refuses" in node:
        return value is not None or node.get("default") is not None
    above = keys.node(names[:-1]) or keys.schema
    return len(names) == 1 or "x-type" in node or keys.section(above).get("x-unknown-keys") == "raises"


def _foreign(document: Document, keys: KeyTable) -> Items:
    """The file itself, where it is no DeepSpeed config (one item or none)."""
    if document.value is None or document.placeholders or is_config(document, keys):
        return ()
    kind = "object" if isinstance(document.value, dict) else "other"
    return (Item({"kind": kind}, document.source, span_of_entry(document, ())),)


def _unfilled_auto(document: Document, keys: KeyTable, loader: str | Unknown) -> Items:
    """Each "auto" that stays: on keys that nobody fills, and on all keys where DeepSpeed loads the file."""
    return tuple(
        _auto_item(document, path, node)
        for path, node in autos(document.value, keys)
        if node.get("x-auto") in ("kept", "default", "accelerate")
        or (node.get("x-auto") == "filled" and loader == "deepspeed")
    )


def _auto_item(document: Document, path: NamePath, node: Schema) -> Item:
    fields = {
        "key": ".".join(path),
        "dropped": "x-type" in node or node.get("x-auto") in ("default", "accelerate"),
        "default": node.get("default"),
        "filled_by_trainer": node.get("x-auto") == "filled",
        "is_top_level": len(path) == 1,
        "section": path[0] if len(path) > 1 else "",
        "filled_by_accelerate": node.get("x-auto") == "accelerate",
        "is_flag": node.get("x-coerces") == "truthiness",
        "accelerates": ACCELERATES_DEFAULTS.get(path[-1]) if path[:1] == ("zero_optimization",) else None,
    }
    return Item(fields, document.source, span_of_entry(document, path))


def _strange_auto(document: Document, keys: KeyTable) -> Items:
    """Each "auto" on a key that DeepSpeed doesn't know; parameters of optimizers have facts of their own."""
    if not is_config(document, keys):
        return ()
    return tuple(
        Item(
            {"key": ".".join(path), "new_name": _filled_name(document.value, keys, path)},
            document.source,
            span_of_entry(document, path),
        )
        for path in autos_on_unknown_keys(document.value, keys)
        if path[:2] not in (("optimizer", "params"), ("scheduler", "params")) and path[0] not in REPLACED
    )


def _filled_name(value: Any, keys: KeyTable, path: NamePath) -> str | None:
    """The key beside it that the Trainer fills and whose name this one plainly stands for."""
    section = keys.node(path[:-1])
    properties = keys.section(section).get("properties", {}) if section is not None else {}
    near = near_name(path[-1], properties)
    return _new_name(near, "auto", _sibling_names(value, path[:-1]), properties, keys)


FACTS: Mapping[str, Fact] = {
    "keys.foreign": Fact(
        "a file without any key that DeepSpeed knows (one item or none)",
        lambda facts: _foreign(facts.document, facts.keys),
        frozenset({"kind"}),
    ),
    "keys.unknown": Fact(
        "keys that their section doesn't have",
        lambda facts: _unknown(facts.document, facts.keys),
        frozenset(
            {
                "key",
                "section",
                "is_top_level",
                "refused",
                "is_slip",
                "has_home",
                "advice",
                "since",
                "is_dropped",
                "new_name",
                "home",
            }
        ),
    ),
    "keys.wrong": Fact(
        "values that their key doesn't take",
        lambda facts: _wrong(facts.document, facts.keys, facts.loader),
        frozenset(
            {
                "key",
                "shown",
                "expected",
                "counts_as_true",
                "says_false",
                "refused",
                "is_typed",
                "section",
                "is_null",
                "meant",
            }
        ),
    ),
    "keys.strange_auto": Fact(
        'keys that DeepSpeed doesn\'t know, with the value "auto"',
        lambda facts: _strange_auto(facts.document, facts.keys),
        frozenset({"key", "new_name"}),
    ),
    "keys.unfilled_auto": Fact(
        'keys with the value "auto" that nobody fills',
        lambda facts: _unfilled_auto(facts.document, facts.keys, facts.loader),
        frozenset(
            {
                "key",
                "dropped",
                "default",
                "filled_by_trainer",
                "is_top_level",
                "section",
                "is_flag",
                "filled_by_accelerate",
                "accelerates",
            }
        ),
    ),
}

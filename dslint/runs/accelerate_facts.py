"""Facts about an Accelerate file that its translation into a DeepSpeed config doesn't show."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from dslint.documents.document import Document
from dslint.runs.accelerate import (
    IN_DEEPSPEED_TERMS,
    KNOWN_KEYS,
    OTHER_ARGUMENTS,
    OTHER_TYPES,
    SECTION,
    TOP_KEYS,
    config_file,
    is_dropped,
    plain_value,
    section_of,
)
from dslint.runs.effective import EffectiveConfig, span_of_entry
from dslint.runs.facts import Fact, Facts
from dslint.runs.item import Item
from dslint.runs.near_names import Near, advice, near_name
from dslint.runs.unknown import UNDECIDABLE, Unknown


def unknown_keys(document: Document | None) -> tuple[Item, ...]:
    """Inline keys that Accelerate doesn't read."""
    if document is None:
        return ()
    return tuple(
        Item(
            _about_name(str(name), near_name(str(name), KNOWN_KEYS), section_of(document)),
            document.source,
            span_of_entry(document, (SECTION, name)),
        )
        for name in section_of(document)
        if name not in KNOWN_KEYS and name not in OTHER_ARGUMENTS
    )


def _about_name(name: str, near: Near | None, taken: Container[Any]) -> dict[str, Any]:
    """The fields of an item about an unknown name; `near` is None where that key stands there as well."""
    is_free = near is not None and near.key not in taken
    return {
        "key": name,
        "advice": advice(near),
        "near": near.key if near is not None and is_free else None,
        "slip": near is not None and is_free and near.is_slip,
    }


def unused_section(document: Document | None) -> tuple[Item, ...]:
    """The DeepSpeed section of a file whose distributed_type is another one (one item or none)."""
    if document is None or not section_of(document):
        return ()
    kind = document.value.get("distributed_type")
    if kind not in OTHER_TYPES:
        return ()
    place = span_of_entry(document, ("distributed_type",))
    return (
        Item(
            {"type": str(kind), "type_place": place},
            document.source,
            document.keys[(SECTION,)],
            ((place, "the type that counts"),),
        ),
    )


def unknown_type(document: Document | None) -> tuple[Item, ...]:
    """A distributed_type that Accelerate doesn't have, or none at all (one item or none)."""
    if document is None:
        return ()
    kind = document.value.get("distributed_type")
    if kind == "DEEPSPEED" or kind in OTHER_TYPES or isinstance(kind, bool):
        return ()
    is_there = ("distributed_type",) in document.keys
    place = span_of_entry(document, ("distributed_type",) if is_there else (SECTION,))
    return (Item({"type": None if kind is None else str(kind)}, document.source, place),)


def unknown_top_keys(document: Document | None) -> tuple[Item, ...]:
    """Keys outside of all sections that Accelerate refuses; files for SageMaker have others of their own."""
    if document is None or document.value.get("compute_environment", "LOCAL_MACHINE") != "LOCAL_MACHINE":
        return ()
    return tuple(
        Item(_about_top_key(str(name), document), document.source, span_of_entry(document, (name,)))
        for name in document.value
        if name not in TOP_KEYS
    )


def _about_top_key(name: str, document: Document) -> dict[str, Any]:
    """The fields of an item about a key outside of all sections, which may be one of the DeepSpeed section."""
    if name in KNOWN_KEYS:
        fields = _about_name(name, None, ())
        return {**fields, "advice": f": it belongs into `{SECTION}`", "home": f"{SECTION}.{name}"}
    return {**_about_name(name, near_name(name, TOP_KEYS), document.value), "home": None}


def keys_beside_config_file(document: Document | None, config: EffectiveConfig | None = None) -> tuple[Item, ...]:
    """Inline keys that Accelerate refuses beside a config file (DeepSpeedPlugin._deepspeed_config_checks).

    Args:
        document: the Accelerate file.
        config: what the config file says.
    """
    reference = None if document is None else config_file(document)
    if document is None or reference is None:
        return ()
    return tuple(
        Item(
            {"key": name, "same": _says_the_same(name, section_of(document)[name], config)},
            document.source,
            span_of_entry(document, (SECTION, name)),
            ((reference[1], "the config file"),),
        )
        for name in section_of(document)
        if name in IN_DEEPSPEED_TERMS
    )


def _says_the_same(name: str, value: Any, config: EffectiveConfig | None) -> bool | Unknown:
    """Whether a config says, in words or by its default, what an inline key does."""
    effective = UNDECIDABLE if config is None else config.value(tuple(map(str, IN_DEEPSPEED_TERMS[name])))
    if isinstance(effective, Unknown):
        return effective
    plain = plain_value(value)
    return bool(plain == effective or (effective is None and plain in ("none", "None")))


def precision_beside_config_file(document: Document | None) -> tuple[Item, ...]:
    """A mixed_precision that Accelerate refuses beside a config file (one item or none)."""
    reference = None if document is None else config_file(document)
    if document is None or reference is None or document.value.get("mixed_precision") is None:
        return ()
    value = document.value["mixed_precision"]
    place = span_of_entry(document, ("mixed_precision",))
    return (Item({"value": value}, document.source, place, ((reference[1], "the config file"),)),)


def useless_init_flag(document: Document | None, stage: Any) -> tuple[Item, ...] | Unknown:
    """A zero3_init_flag that is on at another ZeRO stage than 3 (one item or none)."""
    flag = None if document is None else section_of(document).get("zero3_init_flag")
    if document is None or flag is None or plain_value(flag) is not True or stage == 3:
        return ()
    if isinstance(stage, Unknown):
        return stage
    return (Item({"stage": stage}, document.source, span_of_entry(document, (SECTION, "zero3_init_flag"))),)


def clipping_of_zero(document: Document | None) -> tuple[Item, ...]:
    """An inline gradient_clipping of 0, which Accelerate drops (one item or none)."""
    if document is None or config_file(document) is not None:
        return ()
    if not is_dropped("gradient_clipping", section_of(document).get("gradient_clipping")):
        return ()
    return (
        Item(
            {"key": "gradient_clipping"},
            document.source,
            span_of_entry(document, (SECTION, "gradient_clipping")),
        ),
    )


def _clippings_of_zero(facts: Facts) -> tuple[Item, ...]:
    """The same, in the file and in the arguments that a script gives its plugin."""
    in_file = clipping_of_zero(facts.run.accelerate)
    if facts.run.script is None:
        return in_file
    from dslint.runs.script.facts.accelerate_making import clippings_of_zero

    return (*in_file, *clippings_of_zero(facts))


def _is_config(facts: Facts) -> bool:
    """Whether the run's config is what an Accelerate file's own keys make."""
    return facts.run.accelerate is not None and facts.run.accelerate.source is facts.main_source


FACTS: Mapping[str, Fact] = {
    "accelerate.is_config": Fact("whether the config is what an Accelerate file's own keys make", _is_config),
    "accelerate.unknown_keys": Fact(
        "inline keys that Accelerate doesn't read",
        lambda facts: unknown_keys(facts.run.accelerate),
        frozenset({"key", "advice", "near", "slip"}),
    ),
    "accelerate.unused_section": Fact(
        "a DeepSpeed section beside another distributed_type (one item or none)",
        lambda facts: unused_section(facts.run.accelerate),
        frozenset({"type", "type_place"}),
    ),
    "accelerate.unknown_type": Fact(
        "a distributed_type that Accelerate doesn't have, None where it is missing (one item or none)",
        lambda facts: unknown_type(facts.run.accelerate),
        frozenset({"type"}),
    ),
    "accelerate.unknown_top_keys": Fact(
        "keys outside of all sections that Accelerate refuses",
        lambda facts: unknown_top_keys(facts.run.accelerate),
        frozenset({"key", "advice", "near", "slip", "home"}),
    ),
    "accelerate.keys_beside_config_file": Fact(
        "inline keys that Accelerate refuses beside a config file; `same` where the file says that too",
        lambda facts: keys_beside_config_file(facts.run.accelerate, facts.config),
        frozenset({"key", "same"}),
    ),
    "accelerate.precision_beside_config_file": Fact(
        "a mixed_precision that Accelerate refuses beside a config file (one item or none)",
        lambda facts: precision_beside_config_file(facts.run.accelerate),
        frozenset({"value"}),
    ),
    "accelerate.clipping_of_zero": Fact(
        "an inline gradient_clipping of 0, which Accelerate drops (one item or none)",
        _clippings_of_zero,
        frozenset({"key"}),
    ),
    "accelerate.useless_init_flag": Fact(
        "a zero3_init_flag that is on at another stage than 3 (one item or none)",
        lambda facts: useless_init_flag(facts.run.accelerate, facts.value("zero_stage")),
        frozenset({"stage"}),
    ),
}

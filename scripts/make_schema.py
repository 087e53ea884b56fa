"""Writes schemas/ds_config.schema.json from DeepSpeed's own models and constants.

Three sources are joined: the installed DeepSpeed (types, defaults, bounds, aliases, deprecations),
schemas/overlay.yaml (what only a person can say: descriptions, the shapes of untyped keys) and
schemas/key-history.json (which release read which key; scripts/key_history.py makes it).

    python scripts/make_schema.py           # write
    python scripts/make_schema.py --check   # exit 1 with a diff if the committed file is stale

Besides the usual keywords the schema has annotations of its own:

    x-unknown-keys    on each object, what a key outside `properties` does: raises, ignored, checked-by-rule.
                      Where it raises, a key with the value "auto" is dropped before DeepSpeed looks at it.
    x-unknown-raises-since   the release in which the object began to refuse unknown keys
    x-auto            what "auto" does: filled (Hugging Face Trainer fills it in; without it, a key of a typed
                      section has its default and any other fails), accelerate (only settings of Accelerate fill
                      it in, mostly with its default), default (dropped, so the default holds), kept (reaches
                      DeepSpeed as a string), accepted (a value of its own)
    x-type            the type that a typed section turns the value into: bool, int, float, str, path, list,
                      object, any
    x-coerces         "truthiness": DeepSpeed only asks whether the value is true, so "false" is true
    x-refuses         in a section that is read without checks, "at initialize": any other value stops
                      deepspeed.initialize, whether the feature is used or not
    x-unit            what a number counts
    x-since, x-until  first and last release that reads the key; x-gap: releases between that did not
    x-advice          what to do about a removed key; x-former: its shape while it was read. A removed key has
                      `not: {}` if DeepSpeed refuses it now, or else is `deprecated`
    x-default-before  earlier defaults, oldest first, each with the last release that had it
    x-renamed-to      path of the key that takes a deprecated key's place
    x-aliases         other spellings of the key, which are properties too, with x-alias-of
    x-deepspeed       at the root: the release that the schema describes
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import enum
import importlib
import json
import logging
import pathlib
import sys
import types
import typing
from typing import Any

SCHEMAS = pathlib.Path(__file__).resolve().parent.parent / "schemas"
TARGET = SCHEMAS / "ds_config.schema.json"
OVERLAY = SCHEMAS / "overlay.yaml"
HISTORY = SCHEMAS / "key-history.json"

Json = dict[str, Any]

KEY_ORDER = (
    "description", "deprecated", "$ref", "not", "type", "const", "enum", "anyOf", "pattern", "minLength",
    "items", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf", "default",
    "examples", "x-type", "x-coerces", "x-refuses", "x-unit", "x-auto", "x-since", "x-gap", "x-until", "x-advice",
    "x-former", "x-default-before", "x-renamed-to", "x-aliases", "x-alias-of", "x-unknown-keys",
    "x-unknown-raises-since", "properties", "additionalProperties",
)  # fmt: skip


class OverlayError(Exception):
    """The overlay and DeepSpeed disagree."""


def main(argv: list[str] | None = None) -> int:
    """Write the schema, or check the committed one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit 1 if the committed schema is stale")
    options = parser.parse_args(argv)
    text = schema_text()
    if not options.check:
        TARGET.write_text(text, encoding="utf-8")
        return 0
    committed = TARGET.read_text(encoding="utf-8") if TARGET.exists() else ""
    if committed == text:
        return 0
    diff = difflib.unified_diff(
        committed.splitlines(), text.splitlines(), "committed", "generated", lineterm="", n=1
    )
    lines = list(diff)
    print("\n".join(lines[:60]))
    print(f"{TARGET.name} is stale ({len(lines)} lines of diff); run python scripts/make_schema.py")
    return 1


def schema_text() -> str:
    """The schema as it should stand in the repository."""
    import yaml

    overlay = yaml.safe_load(OVERLAY.read_text(encoding="utf-8"))
    history = json.loads(HISTORY.read_text(encoding="utf-8")) if HISTORY.exists() else {}
    return json.dumps(build(overlay, history), indent=2, ensure_ascii=False) + "\n"


def build(overlay: Json, history: Json) -> Json:
    """Join overlay, history and the installed DeepSpeed into one schema."""
    logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
    joiner = Joiner(history)
    properties = joiner.plain_section(overlay["keys"], "", {})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": overlay["title"],
        "description": overlay["description"],
        "x-deepspeed": deepspeed_module("").__version__,
        "type": "object",
        "x-unknown-keys": "ignored",
        "properties": properties,
        "additionalProperties": True,
        "$defs": overlay["defs"],
    }


def deepspeed_module(name: str) -> Any:
    """A module of the installed DeepSpeed."""
    return importlib.import_module(f"deepspeed.{name}" if name else "deepspeed")


def named(reference: str) -> Any:
    """The object that `module:Name` stands for."""
    module, _, name = reference.partition(":")
    return getattr(deepspeed_module(module), name)


def ordered(node: Json) -> Json:
    """The same mapping with its keys in the fixed order."""
    unexpected = set(node) - set(KEY_ORDER)
    if unexpected:
        raise OverlayError(f"no place in KEY_ORDER for {sorted(unexpected)}")
    return {key: node[key] for key in KEY_ORDER if key in node}


def either_case(word: str) -> str:
    """A pattern for the word in any case."""
    return "".join(f"[{c.upper()}{c.lower()}]" if c.isalpha() else c for c in word)


class Joiner:
    """Builds the property of each key, knowing the history of all."""

    def __init__(self, history: Json) -> None:
        self.oldest: str = next(iter(history.get("releases", [])), "")
        self.keys: Json = history.get("keys", {})
        self.raises: Json = history.get("raises", {})
        self.sections: Json = {}

    # -- sections ---------------------------------------------------------------------------------

    def plain_section(self, keys: Json, path: str, defaults: Json) -> Json:
        """The properties of a section whose keys only the overlay describes."""
        return {name: self.plain_key(entry, join(path, name), defaults) for name, entry in keys.items()}

    def plain_key(self, entry: Json, path: str, defaults: Json) -> Json:
        """The property of one key outside the typed sections."""
        if "until" in entry:
            return self.removed(entry, path)
        node: Json = {"description": entry["is"]}
        if "model" in entry or "alias-of" in entry:
            node |= self.typed_object(entry, path)
        elif "keys" in entry:
            node |= self.plain_object(entry, path)
        else:
            node |= self.untyped_value(entry, path, defaults)
        return self.annotate(node, entry, path)

    def plain_object(self, entry: Json, path: str) -> Json:
        """An object that ignores unknown keys, or hands them on."""
        defaults: Json = {}
        if "dataclass" in entry:
            fields = dataclasses.fields(named(entry["dataclass"]))
            defaults = {f.name: f.default for f in fields if not f.name.startswith("_")}
            if set(defaults) != set(entry["keys"]):
                raise OverlayError(f"{path}: {sorted(set(defaults) ^ set(entry['keys']))}")
        return {
            **section_type(entry),
            "x-unknown-keys": entry["unknown"],
            "properties": self.plain_section(entry["keys"], path, defaults),
            "additionalProperties": True,
        }

    def typed_object(self, entry: Json, path: str) -> Json:
        """An object that a pydantic model reads; it refuses unknown keys."""
        source = self.sections[entry["alias-of"]] if "alias-of" in entry else entry
        self.sections[path] = entry
        body = self.model_body(named(source["model"]), source.get("keys", {}), path)
        if "alias-of" in entry:
            body["properties"] = {name: unfilled(node) for name, node in body["properties"].items()}
        return {**section_type(entry), **body}

    def model_body(self, model: Any, keys: Json, path: str) -> Json:
        """What a pydantic model accepts, as keywords for an object."""
        properties: Json = {}
        known: set[str] = set()
        for name, field in model.model_fields.items():
            spelling = field.alias or name
            known |= {spelling}
            if spelling not in keys:
                raise OverlayError(f"{path}.{spelling} is not in the overlay")
            properties[spelling] = self.typed_key(field, keys[spelling], join(path, spelling))
            if field.alias:
                properties[spelling]["x-aliases"] = [name]
                properties[spelling] = ordered(properties[spelling])
                properties[name] = ordered(alias_of(spelling, properties[spelling]))
        for name, entry in keys.items():
            if name in known:
                continue
            if "until" not in entry:
                raise OverlayError(f"{path}.{name} is not a field of {model.__name__}")
            properties[name] = self.removed(entry, join(path, name))
        if model.model_config.get("extra") != "forbid":
            raise OverlayError(f"{model.__name__} does not refuse unknown keys any more")
        body: Json = {"x-unknown-keys": "raises"}
        since = self.raises.get(path.replace("bfloat16", "bf16"))
        if since and since != self.oldest:
            body["x-unknown-raises-since"] = since
        return body | {
            "properties": properties,
            "additionalProperties": False,
        }

    def removed(self, entry: Json, path: str) -> Json:
        """A key that DeepSpeed once read and now refuses or ignores."""
        former = entry["former"]
        shape = self.value_shape(former) if "shape" in former else {}
        if "default" in former:
            shape["default"] = former["default"]
        node: Json = {"description": entry["is"]}
        if entry.get("ignored"):
            node["deprecated"] = True
        else:
            node["not"] = {}
        node |= {"x-until": entry["until"], "x-advice": entry["advice"], "x-former": ordered(shape)}
        if "renamed-to" in entry:
            node["x-renamed-to"] = entry["renamed-to"]
        seen = self.keys.get(path, {})
        if seen and seen["last"] != entry["until"]:
            raise OverlayError(f"{path}: the overlay says until {entry['until']}, history says {seen['last']}")
        if seen and seen["first"] != self.oldest:
            node["x-since"] = seen["first"]
        return ordered(node)

    # -- values -----------------------------------------------------------------------------------

    def untyped_value(self, entry: Json, path: str, defaults: Json) -> Json:
        """The shape and default of a key that DeepSpeed takes as it stands."""
        node = self.value_shape(entry)
        name = path.rpartition(".")[2]
        reference = entry.get("constant") or entry.get("read-as")
        if reference and named(reference) != name:
            raise OverlayError(f"{path}: {reference} is {named(reference)!r}")
        if "constant" in entry:
            node["default"] = named(entry["constant"] + "_DEFAULT")
        elif name in defaults and jsonable(defaults[name]):
            node["default"] = defaults[name]
        if "default" in entry:
            node["default"] = entry["default"]
        auto = entry.get("auto", "kept")
        if auto in ("filled", "accelerate", "accepted"):
            node = with_auto(node)
        return node | {"x-auto": auto}

    def value_shape(self, entry: Json) -> Json:
        """The JSON Schema of an overlay entry's `shape`."""
        shape = entry.get("shape", {})
        if shape == "flag":
            node: Json = {"type": "boolean", "x-coerces": "truthiness"}
        elif isinstance(shape, str):
            node = {"$ref": f"#/$defs/{shape}"}
        elif "words" in shape:
            words = shape["words"]
            pattern = "^(?:" + "|".join(either_case(word) for word in words) + ")$"
            node = {"anyOf": [{"enum": words}, {"type": "string", "pattern": pattern}]}
            if shape.get("nullable"):
                node["anyOf"].append({"type": "null"})
        else:
            node = dict(shape)
        if entry.get("nullable"):
            node = {"anyOf": [node, {"type": "null"}]}
        if "minimum" in entry:
            node["minimum"] = entry["minimum"]
        return node

    def typed_key(self, field: Any, entry: Json, path: str) -> Json:
        """The property of one field of a pydantic model."""
        node: Json = {"description": entry["is"]}
        annotation, optional = without_none(field.annotation)
        bounds = field_bounds(field)
        if is_model(annotation):
            kinds = ["object", "null"] if optional or entry.get("nullable") else ["object"]
            node |= {"type": [*kinds, "string"], "pattern": "^auto$"}
            node |= self.model_body(annotation, entry.get("keys", {}), path)
        else:
            shape, kind = (self.value_shape(entry), "") if "shape" in entry else value_of(annotation, bounds)
            node |= with_auto(shape, optional) | bounds
            kind = kind or value_of(annotation, bounds)[1]
            node["x-type"] = kind
        default = field.get_default(call_default_factory=True)
        if jsonable(default):
            node["default"] = plain(default)
        elif is_model(annotation):
            node["default"] = {}
        node["x-auto"] = entry.get("auto", "default")
        extra = field.json_schema_extra or {}
        if extra.get("deprecated") and "renamed-to" not in entry:
            raise OverlayError(f"{path} is deprecated; the overlay must say what takes its place")
        return self.annotate(node, entry, path)

    def annotate(self, node: Json, entry: Json, path: str) -> Json:
        """Add what history and overlay know about a key, and put all in order."""
        if "renamed-to" in entry:
            node |= {"deprecated": True, "x-renamed-to": entry["renamed-to"]}
        if "alias-of" in entry:
            node["x-alias-of"] = entry["alias-of"]
        if entry.get("refuses"):
            node["x-refuses"] = "at initialize"
        if "unit" in entry:
            node["x-unit"] = entry["unit"]
        if "auto" in entry:
            node["x-auto"] = entry["auto"]
        seen = self.keys.get(path.replace("bfloat16.", "bf16."), {})
        since = entry.get("since") or seen.get("first")
        if since and since != self.oldest:
            node["x-since"] = since
        if "missing" in seen:
            node["x-gap"] = [seen["missing"][0], seen["missing"][-1]]
        if seen.get("defaults") and "default" in node:
            node["x-default-before"] = seen["defaults"]
        return ordered(node)


def join(path: str, name: str) -> str:
    """The dotted path of a key in a section."""
    return f"{path}.{name}" if path else name


def section_type(entry: Json) -> Json:
    """The JSON types a section may have."""
    kinds = ["object", *entry.get("also", [])]
    if entry.get("nullable"):
        kinds.append("null")
    node: Json = {"type": kinds if len(kinds) > 1 else "object"}
    if entry.get("auto") == "default":
        node = {"type": [*kinds, "string"], "pattern": "^auto$"}
    if entry.get("falsy"):
        node["type"] = [*kinds, "boolean"]
        node["not"] = {"const": True}
    return node


def alias_of(spelling: str, node: Json) -> Json:
    """The other name of a key."""
    return unfilled({key: value for key, value in node.items() if key != "x-aliases"} | {"x-alias-of": spelling})


def unfilled(node: Json) -> Json:
    """A key under its other name, by which nobody fills it."""
    return node | {"x-auto": "default"} if node.get("x-auto") in ("filled", "accelerate") else node


def with_auto(shape: Json, optional: bool = False) -> Json:
    """The shape, or "auto", or (if optional) null."""
    if not shape:
        return shape
    kept = {k: v for k, v in shape.items() if k in ("default", "examples")}
    bare = {k: v for k, v in shape.items() if k not in kept}
    choices = bare["anyOf"] if set(bare) == {"anyOf"} else [bare]
    if not any("auto" in choice.get("enum", []) for choice in choices):
        choices = [*choices, {"$ref": "#/$defs/auto"}]
    if optional:
        choices = [*choices, {"type": "null"}]
    return {"anyOf": choices} | kept


def without_none(annotation: Any) -> tuple[Any, bool]:
    """The annotation without Optional, and whether it had it."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        rest = [a for a in typing.get_args(annotation) if a is not type(None)]
        if len(rest) < len(typing.get_args(annotation)):
            return (rest[0] if len(rest) == 1 else typing.Union[tuple(rest)]), True  # noqa: UP007
    return annotation, False


def is_model(annotation: Any) -> bool:
    """Whether the annotation is a pydantic model."""
    return isinstance(annotation, type) and hasattr(annotation, "model_fields")


def field_bounds(field: Any) -> Json:
    """The bounds of a field as JSON Schema keywords."""
    words = {
        "ge": "minimum",
        "gt": "exclusiveMinimum",
        "le": "maximum",
        "lt": "exclusiveMaximum",
    }
    found: Json = {}
    for constraint in field.metadata:
        for word, keyword in words.items():
            if hasattr(constraint, word):
                found[keyword] = getattr(constraint, word)
    return found


def value_of(annotation: Any, bounds: Json) -> tuple[Json, str]:
    """What pydantic accepts for a type, and the type's short name."""
    if annotation is bool:
        return {"$ref": "#/$defs/coerced_bool"}, "bool"
    if annotation is int:
        suffix = {"minimum": "_from_0", "exclusiveMinimum": "_from_1"}.get(next(iter(bounds), ""), "")
        if suffix and next(iter(bounds.values())) != 0:
            raise OverlayError(f"no definition for an integer with {bounds}")
        return {"$ref": f"#/$defs/coerced_int{suffix}"}, "int"
    if annotation is float:
        share = {bounds.get("minimum", bounds.get("exclusiveMinimum")), *bounds.values()} == {0, 1}
        return {"$ref": f"#/$defs/{'coerced_share' if share else 'coerced_float'}"}, "float"
    if annotation in (str, pathlib.Path):
        return {"type": "string"}, "str" if annotation is str else "path"
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        values = sorted({member.value for member in annotation})
        if values == [0, 1, 2, 3]:
            return {"$ref": "#/$defs/zero_stage"}, "int"
        return {"enum": [member.value for member in annotation]}, "str"
    origin, arguments = typing.get_origin(annotation) or annotation, typing.get_args(annotation)
    if origin is typing.Literal:
        return {"enum": list(arguments)}, "str"
    if origin in (list, tuple):
        node: Json = {"type": "array"}
        if arguments:
            node["items"] = value_of(arguments[0], {})[0]
        return node, "list"
    if origin is dict:
        return {"type": "object"}, "object"
    return {}, "any"


def jsonable(value: Any) -> bool:
    """Whether a default can stand in a schema."""
    return isinstance(value, (str, int, float, list, dict, type(None)))


def plain(value: Any) -> Any:
    """A default without DeepSpeed's own classes around it."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return value


if __name__ == "__main__":
    sys.exit(main())

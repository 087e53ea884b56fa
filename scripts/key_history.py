"""Finds out which DeepSpeed releases read which config key, and writes schemas/key-history.json.

    python scripts/key_history.py FOLDER    # a folder with source archives, deepspeed-*.tar.gz

The archives are read, never run or unpacked: classes derived from DeepSpeedConfigModel and the constants that
name a key are found with `ast`. A key's first and last release are those among the archives at hand, so more
archives give finer answers. To fetch one without building it: `pip download --no-deps --no-binary :all:`.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import json
import pathlib
import re
import sys
import tarfile
from typing import Any

SCHEMAS = pathlib.Path(__file__).resolve().parent.parent / "schemas"
TARGET = SCHEMAS / "key-history.json"
OVERLAY = SCHEMAS / "overlay.yaml"

Json = dict[str, Any]
UNKNOWN = object()
# The parts of DeepSpeed that read configs.
PARTS = (
    "__init__.py", "runtime/", "comm/", "monitor/", "profiling/", "autotuning/", "compile/", "elasticity/",
    "compression/", "nebula/", "datastates/", "inference/config.py", "utils/config.py",
    "module_inject/auto_ep",
)  # fmt: skip
REMOVED_TABLES = {"_REMOVED_TOP_LEVEL_CONFIG_KEYS": "", "_REMOVED_ZERO_CONFIG_KEYS": "zero_optimization."}


def main(argv: list[str] | None = None) -> int:
    """Read all archives of a folder and write the history."""
    import yaml

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="holds deepspeed-*.tar.gz")
    options = parser.parse_args(argv)
    archives = sorted(options.folder.glob("deepspeed-*.tar.gz"), key=lambda path: numbers(release_of(path)))
    if not archives:
        print(f"no deepspeed-*.tar.gz in {options.folder}", file=sys.stderr)
        return 2
    overlay = yaml.safe_load(OVERLAY.read_text(encoding="utf-8"))
    TARGET.write_text(json.dumps(history(overlay, archives), indent=1) + "\n", encoding="utf-8")
    return 0


def release_of(path: pathlib.Path) -> str:
    """The version in an archive's name."""
    return path.name.removeprefix("deepspeed-").removesuffix(".tar.gz")


def numbers(version: str) -> tuple[int, ...]:
    """A version as numbers, for sorting."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def history(overlay: Json, archives: list[pathlib.Path]) -> Json:
    """First and last release of each key, its earlier defaults, and when typed sections began to refuse."""
    names = [release_of(path) for path in archives]
    seen: dict[str, list[tuple[str, Any]]] = {}
    raises: dict[str, str] = {}
    for archive in archives:
        release = Release(archive)
        keys, refusing = release.keys_of(overlay["keys"])
        for path, default in keys.items():
            seen.setdefault(path, []).append((release.version, default))
        for path in refusing:
            raises.setdefault(path, release.version)
    found: Json = {}
    for path in sorted(seen):
        rows = seen[path]
        entry: Json = {"first": rows[0][0], "last": rows[-1][0]}
        between = names[names.index(rows[0][0]) : names.index(rows[-1][0]) + 1]
        missing = [name for name in between if name not in {version for version, _ in rows}]
        if missing:
            entry["missing"] = missing
        earlier = earlier_defaults(rows)
        if earlier:
            entry["defaults"] = earlier
        found[path] = entry
    return {"releases": names, "keys": found, "raises": dict(sorted(raises.items()))}


def earlier_defaults(rows: list[tuple[str, Any]]) -> list[Json]:
    """The defaults that a key had before the present one, with the last release of each."""
    known = [(version, default) for version, default in rows if default is not UNKNOWN]
    found = []
    for (version, default), (_, following) in itertools.pairwise(known):
        if default != following or isinstance(default, bool) != isinstance(following, bool):
            found.append({"until": version, "default": default})
    return found


class Release:
    """The source of one DeepSpeed release, as far as configs go."""

    def __init__(self, archive: pathlib.Path) -> None:
        self.version = release_of(archive)
        trees: dict[str, ast.Module] = {}
        with tarfile.open(archive) as tar:
            for member in tar:
                name = member.name.partition("/deepspeed/")[2]
                if not (name.startswith(PARTS) and name.endswith(".py") and member.isfile()):
                    continue
                source = tar.extractfile(member)
                if source is None:
                    continue
                try:
                    trees[name] = ast.parse(source.read())
                except (SyntaxError, ValueError):
                    continue
        self.constants: dict[str, dict[str, Any]] = {}
        self.classes: dict[str, list[tuple[str, ast.ClassDef]]] = {}
        self.loaded: set[str] = set()
        self.strings: dict[str, set[str]] = {}
        self.removed: set[str] = set()
        for name, tree in trees.items():
            self.scan(name, tree)

    def scan(self, name: str, tree: ast.Module) -> None:
        """Note the constants, classes, used names and strings of a file."""
        constants = self.constants.setdefault(name, {})
        for statement in tree.body:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                target = statement.targets[0].id
                if target in REMOVED_TABLES and isinstance(statement.value, ast.Dict):
                    keys = [str(key.value) for key in statement.value.keys if isinstance(key, ast.Constant)]
                    self.removed |= {REMOVED_TABLES[target] + key for key in keys}
                    continue
                value = evaluate(statement.value, constants)
                if value is not UNKNOWN:
                    constants[target] = value
        strings = self.strings.setdefault(name, set())
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                self.classes.setdefault(node.name, []).append((name, node))
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self.loaded.add(node.id)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                strings.add(node.value)

    def keys_of(self, keys: Json) -> tuple[dict[str, Any], set[str]]:
        """The config keys that this release reads, with defaults, and the sections that refuse others."""
        self.found: dict[str, Any] = {}
        self.refusing: set[str] = set()
        self.section(keys, "")
        for path in self.removed:
            self.found.pop(path, None)
        return self.found, self.refusing

    def section(self, keys: Json, prefix: str) -> None:
        """Look for each key of the overlay."""
        for name, entry in keys.items():
            path = prefix + name
            if "model" in entry:
                module, _, class_name = entry["model"].partition(":")
                if self.find_class(class_name, module):
                    self.found[path] = UNKNOWN
                    self.model(class_name, module, path)
                elif "before" in entry:
                    self.prefixed(entry["before"], path)
            elif "dataclass" in entry:
                module, _, class_name = entry["dataclass"].partition(":")
                if self.find_class(class_name, module):
                    self.found[path] = UNKNOWN
                    self.model(class_name, module, path)
            elif "constant" in entry or "read-as" in entry:
                self.constant(entry.get("constant") or entry["read-as"], name, path)
            elif "read-in" in entry:
                if any(name in self.strings.get(file, ()) for file in entry["read-in"].split()):
                    self.found[path] = UNKNOWN
            elif "until" in entry and any(name in strings for strings in self.strings.values()):
                self.found[path] = UNKNOWN
            if "keys" in entry and "model" not in entry and "dataclass" not in entry:
                before = len(self.found)
                self.section(entry["keys"], path + ".")
                if len(self.found) > before:
                    self.found.setdefault(path, UNKNOWN)

    def constant(self, reference: str, key: str, path: str) -> None:
        """A key that a constant names, if something uses the constant."""
        module, _, constant = reference.partition(":")
        own = module.replace(".", "/") + ".py"
        for file in [own, *sorted(self.constants)]:
            values = self.constants.get(file, {})
            if values.get(constant) == key and constant in self.loaded:
                self.found[path] = values.get(constant + "_DEFAULT", UNKNOWN)
                return

    def prefixed(self, reference: str, path: str) -> None:
        """A section whose keys are named by constants with one prefix."""
        module, _, prefix = reference.partition(":")
        values = self.constants.get(module.replace(".", "/") + ".py", {})
        for constant, key in values.items():
            if constant.startswith(prefix) and constant + "_DEFAULT" in values and constant in self.loaded:
                self.found[path] = UNKNOWN
                self.found[f"{path}.{key}"] = values[constant + "_DEFAULT"]

    def find_class(self, name: str, module: str) -> tuple[str, ast.ClassDef] | None:
        """The class by this name, by preference in this module."""
        candidates = self.classes.get(name, [])
        own = module.replace(".", "/") + ".py"
        return next((c for c in candidates if c[0] == own), candidates[0] if candidates else None)

    def model(self, name: str, module: str, path: str) -> None:
        """Note the fields of a model, of its bases and of the models in it."""
        located = self.find_class(name, module)
        if located is None:
            return
        file, definition = located
        home = file.removesuffix(".py").replace("/", ".")
        if forbids(definition):
            self.refusing.add(path)
        for base in base_names(definition):
            if base in self.classes:
                self.model(base, home, path)
        scope = self.scope(file)
        for statement in definition.body:
            if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
                continue
            target: ast.expr
            if isinstance(statement, ast.Assign):
                target, annotation = statement.targets[0], []
            else:
                target, annotation = statement.target, [statement.annotation]
            if not isinstance(target, ast.Name) or target.id.startswith("_") or target.id == "model_config":
                continue
            default, alias = field_default(statement.value, scope)
            spelling = f"{path}.{alias or target.id}"
            self.found[spelling] = default
            if alias:
                self.found[f"{path}.{target.id}"] = default
            for part in (node for root in annotation for node in ast.walk(root)):
                if isinstance(part, ast.Name) and part.id != name:
                    inner = self.find_class(part.id, home)
                    if inner and "DeepSpeedConfigModel" in base_names(inner[1]):
                        self.model(part.id, home, spelling)

    def scope(self, file: str) -> dict[str, Any]:
        """The constants that a file sees, from itself and from the constants file beside it."""
        beside = str(pathlib.PurePosixPath(file).parent / "constants.py")
        loss = self.constants.get("runtime/fp16/loss_scaler.py", {})
        return {**loss, **self.constants.get(beside, {}), **self.constants.get(file, {})}


def base_names(definition: ast.ClassDef) -> list[str]:
    """The names of a class's bases."""
    return [base.id for base in definition.bases if isinstance(base, ast.Name)]


def forbids(definition: ast.ClassDef) -> bool:
    """Whether a model's own settings refuse unknown keys."""
    return any(isinstance(node, ast.Constant) and node.value == "forbid" for node in ast.walk(definition))


def field_default(value: ast.expr | None, scope: dict[str, Any]) -> tuple[Any, str | None]:
    """The default and the alias of a model's field."""
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "Field"):
        return (UNKNOWN if value is None else evaluate(value, scope)), None
    alias = None
    default: Any = evaluate(value.args[0], scope) if value.args else UNKNOWN
    for keyword in value.keywords:
        if keyword.arg == "alias" and isinstance(keyword.value, ast.Constant):
            alias = str(keyword.value.value)
        elif keyword.arg == "default":
            default = evaluate(keyword.value, scope)
    return default, alias


def evaluate(node: ast.expr, scope: dict[str, Any]) -> Any:
    """The value of a literal expression, or UNKNOWN."""
    if isinstance(node, ast.Constant):
        return UNKNOWN if node.value is Ellipsis else node.value
    if isinstance(node, ast.Name):
        return scope.get(node.id, UNKNOWN)
    if isinstance(node, ast.List):
        items = [evaluate(item, scope) for item in node.elts]
        return UNKNOWN if any(item is UNKNOWN for item in items) else items
    if isinstance(node, ast.Dict) and not node.keys:
        return {}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = evaluate(node.operand, scope)
        return -inner if isinstance(inner, (int, float)) else UNKNOWN
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "pp_int" and node.args:
        inner = evaluate(node.args[0], scope)
        return int(inner) if isinstance(inner, (int, float)) else UNKNOWN
    if isinstance(node, ast.BinOp):
        left, right = evaluate(node.left, scope), evaluate(node.right, scope)
        if isinstance(left, (int, float)) and isinstance(right, (int, float)):
            if isinstance(node.op, ast.Mult):
                return left * right
            if isinstance(node.op, ast.Pow) and right < 64:
                return left**right
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and "sys" in node.value.id:
        return sys.maxsize if node.attr == "maxsize" else UNKNOWN
    return UNKNOWN


if __name__ == "__main__":
    sys.exit(main())

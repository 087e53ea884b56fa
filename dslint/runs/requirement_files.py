"""Files in which a project asks for DeepSpeed: lock files, requirements, pyproject, setup, conda."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from dslint.runs.releases import PARTS, numbers_in

_LARGEST_FILE = 8 * 1024 * 1024  # bytes; lock files reach one or two
_LONGEST_LINE = 4096  # characters; a requirement has a few dozen

_REQUIREMENT = r"(?i:deepspeed)\s*(?:\[[^\]]*\])?\s*(?P<rest>$|[(<>=!~;@,\s].*)"


@dataclass(frozen=True)
class Mention:
    """A line that asks for DeepSpeed.

    Attributes:
        spec: the version specifier, "" for any version; None where the version can't be told (a URL).
        text: the requirement as written.
        path: the file.
        line: the line in it, from 1.
    """

    spec: str | None
    text: str
    path: str
    line: int


def names_in(folder: str) -> list[str]:
    """The names in a folder, in order; none where it can't be listed."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries)
    except (OSError, ValueError):
        return []


def _lines(path: str) -> list[str]:
    """The lines of a file; none where it can't be read."""
    try:
        if not os.path.isfile(path):
            return []
        with open(path, "rb") as stream:
            data = stream.read(_LARGEST_FILE)
    except (OSError, ValueError):
        return []
    return data.decode("utf-8-sig", "replace").splitlines()


def _lock_lines(path: str) -> Iterator[tuple[int, str]]:
    """The numbered lines of a lock file from the first that names DeepSpeed; these files are long."""
    lines = _lines(path)
    first = next((index for index, line in enumerate(lines) if '"deepspeed"' in line.lower()), len(lines))
    return enumerate(lines[first:], start=first + 1)


def _requirement(text: str, path: str, line: int) -> Mention | None:
    """The mention that a requirement such as `deepspeed[sparse]>=0.12 ; python_version > "3.8"` is."""
    match = re.fullmatch(_REQUIREMENT, text.strip()) if len(text) <= _LONGEST_LINE else None
    if match is None:
        return None
    written = text.strip().split(";")[0].strip()
    if match["rest"].startswith("@"):
        return Mention(None, written, path, line)
    spec = re.split(r";|\s--", match["rest"])[0].strip()
    if spec.startswith("(") and spec.endswith(")"):
        spec = spec[1:-1]
    return Mention(spec.strip().strip("\\").strip(), written, path, line)


def _from_lock_files(folder: str) -> list[Mention]:
    mentions: list[Mention] = []
    for name in ("uv.lock", "poetry.lock", "pdm.lock"):
        mentions += _locked_toml(os.path.join(folder, name))
    return mentions + _locked_pipfile(os.path.join(folder, "Pipfile.lock"))


def _locked_toml(path: str) -> list[Mention]:
    """The version that stands in the `[[package]]` table of DeepSpeed."""
    mentions = []
    inside = False
    for number, line in _lock_lines(path):
        if line.startswith("["):
            inside = False
        elif line.startswith("name") and re.match(r'name\s*=\s*"deepspeed"', line, re.IGNORECASE):
            inside = True
        elif inside and (match := re.match(r'version\s*=\s*"([^"]+)"', line)):
            mentions.append(Mention(f"=={match[1]}", f"deepspeed {match[1]}", path, number))
    return mentions


def _locked_pipfile(path: str) -> list[Mention]:
    """The version that stands in the object of DeepSpeed."""
    inside = False
    for number, line in _lock_lines(path):
        if re.match(r'\s*"deepspeed"\s*:', line):
            inside = True
        elif line.strip().startswith("}"):
            inside = False
        elif inside and (match := re.match(r'\s*"version"\s*:\s*"([^"]+)"', line)):
            return [Mention(match[1], f"deepspeed {match[1]}", path, number)]
    return []


def _from_requirements(folder: str) -> list[Mention]:
    """Mentions in requirements*.txt and requirements/*.txt, plain `requirements.txt` first."""
    paths = [os.path.join(folder, name) for name in names_in(folder) if re.fullmatch(r"requirements.*\.txt", name)]
    paths.sort(key=lambda path: os.path.basename(path) != "requirements.txt")
    below = os.path.join(folder, "requirements")
    paths += [os.path.join(below, name) for name in names_in(below) if name.endswith(".txt")]
    return [mention for path in paths for mention in _required(path, follow=True)]


def _required(path: str, *, follow: bool) -> Iterator[Mention]:
    """Mentions in one requirements file and in those that it includes."""
    for number, line in enumerate(_lines(path), start=1):
        content = re.sub(r"(^|\s)#.*", "", line).strip()
        mention = _requirement(content, path, number)
        if mention is not None:
            yield mention
        included = re.match(r"(?:-r|-c|--requirement|--constraint)[\s=]*(\S+)", content)
        if included is not None and follow:
            yield from _required(os.path.join(os.path.dirname(path), included[1]), follow=False)


def _from_pyproject(folder: str) -> list[Mention]:
    path = os.path.join(folder, "pyproject.toml")
    mentions = []
    for number, place, line in _toml_lines(_lines(path)):
        if _holds_requirements(place):
            mentions += _quoted_requirements(line, path, number)
        elif re.search(r"^tool\.poetry\..*dependencies\.deepspeed$", place, re.IGNORECASE):
            mentions += _poetry_requirement(line, path, number)
    return mentions


def _toml_lines(lines: Iterable[str]) -> Iterator[tuple[int, str, str]]:
    """The number of each line, the table and key it belongs to ("project.dependencies"), and its text.

    A scan that knows tables, keys and arrays over several lines, and nothing else.
    """
    table = key = ""
    depth = 0
    for number, line in enumerate(lines, start=1):
        bare = re.sub(r"#.*", "", re.sub(r'"[^"]*"|\'[^\']*\'', '""', line)).strip()
        if depth == 0 and (header := re.fullmatch(r"\[+([^\]]+)\]+", re.sub(r"#.*", "", line).strip())):
            table, key = header[1].strip(), ""
            continue
        if depth == 0 and (start := re.match(r"\s*([\w.\-\"']+)\s*=", line)):
            key = start[1]
        yield number, f"{table}.{key}".replace('"', "").replace("'", "").strip("."), line
        depth = max(0, depth + sum(map(bare.count, "[{")) - sum(map(bare.count, "]}")))


def _holds_requirements(place: str) -> bool:
    """Whether the strings at this place of a pyproject.toml are requirements."""
    return (
        place == "project.dependencies"
        or place.startswith(("project.optional-dependencies", "dependency-groups"))
        or place in ("tool.uv.dev-dependencies", "tool.uv.constraint-dependencies")
        or place.startswith("tool.pdm.dev-dependencies")
    )


def _quoted_requirements(line: str, path: str, number: int) -> list[Mention]:
    """The requirements that stand in quotes on a line of TOML or Python."""
    parts = re.finditer(r"\"([^\"]*)\"|'([^']*)'|#.*", line)
    found = (_requirement(part[1] or part[2] or "", path, number) for part in parts)
    return [mention for mention in found if mention is not None]


def _poetry_requirement(line: str, path: str, number: int) -> list[Mention]:
    """The mention in `deepspeed = "^0.14"` or `deepspeed = {version = "^0.14", optional = true}`."""
    value = line.split("=", 1)[1].strip()
    match = re.match(r"[\"']([^\"']*)[\"']", value) or re.search(r"version\s*=\s*[\"']([^\"']*)[\"']", value)
    spec = None if match is None else _pip_style(match[1])
    return [Mention(spec, line.split("#")[0].strip(), path, number)]


def _pip_style(spec: str) -> str:
    """Poetry's `^0.14.0`, `~0.14`, `*` and bare `0.14.0` as the specifiers that pip knows."""
    return ",".join(filter(None, (_pip_clause(part.strip()) for part in spec.split(","))))


def _pip_clause(part: str) -> str:
    if part == "*":
        return ""
    if re.fullmatch(r"v?\d[\w.*+-]*", part):
        return f"=={part}"
    bound = re.fullmatch(r"([\^~])\s*(\d+(?:\.\d+)*)", part)
    if bound is None:
        return part
    numbers = numbers_in(bound[2])
    fixed = min(2, len(numbers)) if bound[1] == "~" else _caret_length(numbers)
    return f">={bound[2]},=={'.'.join(map(str, numbers[:fixed]))}.*"


def _caret_length(numbers: tuple[int, ...]) -> int:
    """How many numbers a caret keeps: up to the first that is not zero."""
    return next((index + 1 for index, number in enumerate(numbers) if number), len(numbers))


def _from_setup(folder: str) -> list[Mention]:
    return [*_setup_py(os.path.join(folder, "setup.py")), *_setup_cfg(os.path.join(folder, "setup.cfg"))]


def _setup_py(path: str) -> Iterator[Mention]:
    """Requirements in quotes; a bare "deepspeed" counts only alone on its line, as in a list."""
    for number, line in enumerate(_lines(path), start=1):
        alone = re.fullmatch(r"\s*[\"'](?i:deepspeed)[\"'],?\s*(#.*)?", line)
        for mention in _quoted_requirements(line, path, number):
            if mention.spec != "" or alone:
                yield mention


def _setup_cfg(path: str) -> Iterator[Mention]:
    """Requirements in the `options` sections."""
    section = ""
    for number, line in enumerate(_lines(path), start=1):
        header = re.fullmatch(r"\[(.+)\]\s*", line)
        section = header[1] if header else section
        value = re.sub(r"^[\w.-]+\s*=(?!=)|\s#.*", "", line).strip()
        mention = _requirement(value, path, number) if section.startswith("options") else None
        if mention is not None:
            yield mention


def _from_conda(folder: str) -> list[Mention]:
    """Mentions in environment*.yml and conda*.yaml, in conda's own list and in its list for pip."""
    names = [name for name in names_in(folder) if re.fullmatch(r"(environment|conda).*\.ya?ml", name)]
    paths = (os.path.join(folder, name) for name in names)
    return [mention for path in paths for mention in _conda_requirements(path)]


def _conda_requirements(path: str) -> Iterator[Mention]:
    for number, line in enumerate(_lines(path), start=1):
        item = re.match(r"\s*-\s+[\"']?(?:[\w-]+::)?([^\"'#]+)", line)
        mention = _requirement(_conda_style(item[1].strip()), path, number) if item else None
        if item and mention is not None:
            yield Mention(mention.spec, item[1].strip(), path, number)


def _conda_style(text: str) -> str:
    """Conda's `deepspeed=0.14=build` as the requirement that pip knows."""
    single = re.fullmatch(r"(\w+)\s*=\s*(\d+(?:\.\d+)*)(\.\*)?(=[\w*]+)?", text)
    if single is None:
        return text
    full = single[2].count(".") >= PARTS - 1 and not single[3]
    return f"{single[1]}=={single[2]}" + ("" if full else ".*")


FINDERS: tuple[Callable[[str], list[Mention]], ...] = (
    _from_lock_files,
    _from_requirements,
    _from_pyproject,
    _from_setup,
    _from_conda,
)
"""What reads one kind of file in a folder, the most trusted kind first."""

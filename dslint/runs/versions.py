"""DeepSpeed releases: their order, version specifiers, and which release a project says it uses."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

_PARTS = 3  # a release has this many numbers: 0.19 means 0.19.0
_HIGHEST_PARENT = 6  # folders above the file that are searched where there is no repository
_LARGEST_FILE = 8 * 1024 * 1024  # bytes; lock files reach one or two
_MOST_MENTIONS = 100  # more in one folder are no project's
_LONGEST_LINE = 4096  # characters; a requirement has a few dozen

_SUFFIX = r"(?:[-_.]?(?:dev|post|alpha|beta|pre|rc|a|b|c)(?:[-_.]?\d+)?){0,3}(?:\+[\w.]+)?"
_RELEASE = r"v?(\d{1,6}(?:\.\d{1,6}){1,5})" + _SUFFIX
_CLAUSE = r"(===|==|~=|!=|<=|>=|<|>)\s*v?(\d{1,6}(?:\.\d{1,6}){0,5})(\.\*)?" + _SUFFIX
_REQUIREMENT = r"(?i:deepspeed)\s*(?:\[[^\]]*\])?\s*(?P<rest>$|[(<>=!~;@,\s].*)"

_LAST_PATCHES = {7: 7, 8: 3, 9: 5, 10: 3, 11: 2, 12: 6, 13: 5, 14: 5, 15: 4, 16: 9, 17: 6, 18: 9, 19: 8}


@dataclass(frozen=True, order=True)
class Release:
    """A release of DeepSpeed.

    Attributes:
        text: how it was written.
        key: its numbers, by which releases are ordered and compared; suffixes such as `.dev1` don't count.
    """

    text: str = field(compare=False)
    key: tuple[int, ...]


@dataclass(frozen=True)
class KnownVersion:
    """The release that a project uses, and how that is known.

    Attributes:
        release: the release; the newest possible one where only a range is known.
        exact: whether a file names this very release.
        where: the place for people: "requirements.txt:3 `deepspeed>=0.12`".
        path: the file or folder that tells it.
        line: the line in it, from 1.
    """

    release: Release
    exact: bool
    where: str
    path: str | None
    line: int | None


@dataclass(frozen=True)
class _Mention:
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


def parse_release(text: str) -> Release:
    """The release that a text names: "0.19.8", "v0.19.8", "0.19.8+cu121", "0.16.4.dev1".

    Raises:
        ValueError: it names none.
    """
    written = text.strip()
    match = re.fullmatch(_RELEASE, written, re.IGNORECASE)
    if match is None:
        raise ValueError(f"{written[:40]!r} is not a DeepSpeed release: write it like 0.19.8")
    return Release(written, _padded(_numbers(match[1])))


NEWEST = Release("0.19.8", (0, 19, 8))
KNOWN_RELEASES: tuple[Release, ...] = tuple(
    Release(f"0.{minor}.{patch}", (0, minor, patch))
    for minor, last in _LAST_PATCHES.items()
    for patch in range(last + 1)
)
"""The releases on the Python package index from 0.7.0 to `NEWEST`, oldest first."""


def matches(spec: str, release: Release) -> bool:
    """Whether a release satisfies every clause of a specifier such as ">=0.18,<0.19.3".

    Raises:
        ValueError: the specifier is malformed; see `check_spec`.
    """
    return all(_clause_holds(clause, release.key) for clause in _clauses(spec))


def check_spec(spec: str) -> None:
    """Makes sure that a version specifier can be read.

    Raises:
        ValueError: it can't, with the clause at fault.
    """
    _clauses(spec)


def find_version(near: str) -> KnownVersion | None:
    """The DeepSpeed release that the project around a file asks for, or None where no file tells.

    The file's folder is searched first, then its parents up to the repository's root, or six of them. In
    one folder a lock file counts more than requirements files, these more than pyproject.toml, then
    setup.py and setup.cfg, then a conda environment. The nearest folder that mentions DeepSpeed decides:
    one that takes it from a URL gives None.
    """
    for folder in _folders(near):
        for find in _FINDERS:
            mentions = find(folder)
            if mentions:
                return _decide(mentions)
    return None


def installed_version() -> KnownVersion | None:
    """The DeepSpeed that this Python could import, told by the names of folders alone."""
    for entry in sys.path:
        folder = entry or os.curdir
        for name in _names(folder):
            match = re.fullmatch(r"(?i:deepspeed)-(.+)\.(?:dist|egg)-info", name)
            if match is not None:
                known = _installed(match[1], os.path.join(folder, name))
                if known is not None:
                    return known
    return None


def _installed(version: str, path: str) -> KnownVersion | None:
    """The release of an installed package; None for a folder name that holds no version."""
    try:
        release = parse_release(re.split(r"-py\d", version)[0])
    except ValueError:
        return None
    return KnownVersion(release, exact=True, where=f"installed: {path}", path=path, line=None)


# --- specifiers ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Clause:
    """One condition of a specifier; `numbers` as written, not padded."""

    operator: str
    numbers: tuple[int, ...]
    wildcard: bool
    text: str


@cache
def _clauses(spec: str) -> tuple[_Clause, ...]:
    """The conditions of a specifier, none for an empty one.

    Raises:
        ValueError: one of them is malformed.
    """
    if not spec.strip():
        return ()
    return tuple(_clause(part.strip(), spec) for part in spec.strip().rstrip(",").split(","))


def _clause(text: str, spec: str) -> _Clause:
    match = re.fullmatch(_CLAUSE, text)
    if match is None:
        within = "" if text == spec.strip() else f" in {spec.strip()[:60]!r}"
        raise ValueError(f"{text[:40]!r}{within} is not a version condition: write it like >=0.19.7 or ==0.14.*")
    clause = _Clause(match[1], _numbers(match[2]), match[3] is not None, text)
    if clause.wildcard and clause.operator not in ("==", "!="):
        raise ValueError(f"{text[:40]!r}: .* goes with == and != only")
    if clause.operator == "~=" and len(clause.numbers) == 1:
        raise ValueError(f"{text[:40]!r}: ~= needs two numbers or more, like ~=0.16.0")
    return clause


def _clause_holds(clause: _Clause, key: tuple[int, ...]) -> bool:
    """Whether a release with this key satisfies one condition."""
    wanted, found = clause.numbers, key
    if clause.wildcard:
        return (_same_prefix(wanted, found)) is (clause.operator == "==")
    length = max(len(wanted), len(found))
    return _compare(clause, _padded(found, length), _padded(wanted, length))


def _compare(clause: _Clause, found: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether numbers of equal length stand in the relation that the operator says."""
    match clause.operator:
        case "==" | "===":
            return found == wanted
        case "!=":
            return found != wanted
        case "<":
            return found < wanted
        case "<=":
            return found <= wanted
        case ">":
            return found > wanted
        case ">=":
            return found >= wanted
        case _:  # ~=
            return found >= wanted and _same_prefix(clause.numbers[:-1], found)


def _same_prefix(prefix: tuple[int, ...], key: tuple[int, ...]) -> bool:
    """Whether a release belongs to the series that `0.14.*` names."""
    return _padded(key, len(prefix))[: len(prefix)] == prefix


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _padded(numbers: tuple[int, ...], length: int = _PARTS) -> tuple[int, ...]:
    return numbers + (0,) * (length - len(numbers))


# --- from a requirement to a release ------------------------------------------------------------------------


def _decide(mentions: Sequence[_Mention]) -> KnownVersion | None:
    """What the mentions of one kind of file say: the first that names a release, else the first."""
    known = [_known(mention) for mention in mentions[:_MOST_MENTIONS]]
    exact = (version for version in known if version is not None and version.exact)
    return next(exact, known[0])


def _known(mention: _Mention) -> KnownVersion | None:
    """The release that one requirement means; None where it can't be told."""
    found = None if mention.spec is None else _release_for(mention.spec)
    if found is None:
        return None
    release, exact = found
    path = _shown_path(mention.path)
    where = f"{path}:{mention.line} `{mention.text}`"
    return KnownVersion(release, exact, where, path, mention.line)


def _release_for(spec: str) -> tuple[Release, bool] | None:
    """The newest release that a specifier allows, and whether it names that one.

    None where the specifier is malformed, or allows only releases older than those known here.
    """
    try:
        clauses = _clauses(spec)
    except ValueError:
        return None
    for clause in clauses:
        if clause.operator in ("==", "===") and not clause.wildcard:
            written = re.sub(r"^=+\s*", "", clause.text)
            return Release(written, _padded(clause.numbers)), True
    for release in reversed(KNOWN_RELEASES):
        if all(_clause_holds(clause, release.key) for clause in clauses):
            return release, False
    return _beyond_known(clauses)


def _beyond_known(clauses: Iterable[_Clause]) -> tuple[Release, bool] | None:
    """The lowest release of a range that begins after `NEWEST`."""
    lower = [clause.numbers for clause in clauses if clause.operator in (">=", ">", "~=", "==")]
    key = _padded(max(lower, default=()))
    return (Release(".".join(map(str, key)), key), False) if key > NEWEST.key else None


def _shown_path(path: str) -> str:
    """A path as people want to read it: relative where it lies below the current folder."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        return path
    return path if relative.startswith(os.pardir) else relative


# --- files --------------------------------------------------------------------------------------------------


def _folders(near: str) -> Iterator[str]:
    """The folder of a file and its parents, up to the repository's root."""
    path = os.path.abspath(near.replace("\0", ""))
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    for _ in range(_HIGHEST_PARENT + 1):
        yield folder
        parent = os.path.dirname(folder)
        if parent == folder or os.path.exists(os.path.join(folder, ".git")):
            return
        folder = parent


def _names(folder: str) -> list[str]:
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


def _requirement(text: str, path: str, line: int) -> _Mention | None:
    """The mention that a requirement such as `deepspeed[sparse]>=0.12 ; python_version > "3.8"` is."""
    match = re.fullmatch(_REQUIREMENT, text.strip()) if len(text) <= _LONGEST_LINE else None
    if match is None:
        return None
    written = text.strip().split(";")[0].strip()
    if match["rest"].startswith("@"):
        return _Mention(None, written, path, line)
    spec = re.split(r";|\s--", match["rest"])[0].strip()
    if spec.startswith("(") and spec.endswith(")"):
        spec = spec[1:-1]
    return _Mention(spec.strip().strip("\\").strip(), written, path, line)


def _from_lock_files(folder: str) -> list[_Mention]:
    mentions: list[_Mention] = []
    for name in ("uv.lock", "poetry.lock", "pdm.lock"):
        mentions += _locked_toml(os.path.join(folder, name))
    return mentions + _locked_pipfile(os.path.join(folder, "Pipfile.lock"))


def _locked_toml(path: str) -> list[_Mention]:
    """The version that stands in the `[[package]]` table of DeepSpeed."""
    mentions = []
    inside = False
    for number, line in _lock_lines(path):
        if line.startswith("["):
            inside = False
        elif line.startswith("name") and re.match(r'name\s*=\s*"deepspeed"', line, re.IGNORECASE):
            inside = True
        elif inside and (match := re.match(r'version\s*=\s*"([^"]+)"', line)):
            mentions.append(_Mention(f"=={match[1]}", f"deepspeed {match[1]}", path, number))
    return mentions


def _locked_pipfile(path: str) -> list[_Mention]:
    """The version that stands in the object of DeepSpeed."""
    inside = False
    for number, line in _lock_lines(path):
        if re.match(r'\s*"deepspeed"\s*:', line):
            inside = True
        elif line.strip().startswith("}"):
            inside = False
        elif inside and (match := re.match(r'\s*"version"\s*:\s*"([^"]+)"', line)):
            return [_Mention(match[1], f"deepspeed {match[1]}", path, number)]
    return []


def _from_requirements(folder: str) -> list[_Mention]:
    """Mentions in requirements*.txt and requirements/*.txt, plain `requirements.txt` first."""
    paths = [os.path.join(folder, name) for name in _names(folder) if re.fullmatch(r"requirements.*\.txt", name)]
    paths.sort(key=lambda path: os.path.basename(path) != "requirements.txt")
    below = os.path.join(folder, "requirements")
    paths += [os.path.join(below, name) for name in _names(below) if name.endswith(".txt")]
    return [mention for path in paths for mention in _required(path, follow=True)]


def _required(path: str, *, follow: bool) -> Iterator[_Mention]:
    """Mentions in one requirements file and in those that it includes."""
    for number, line in enumerate(_lines(path), start=1):
        content = re.sub(r"(^|\s)#.*", "", line).strip()
        mention = _requirement(content, path, number)
        if mention is not None:
            yield mention
        included = re.match(r"(?:-r|-c|--requirement|--constraint)[\s=]*(\S+)", content)
        if included is not None and follow:
            yield from _required(os.path.join(os.path.dirname(path), included[1]), follow=False)


def _from_pyproject(folder: str) -> list[_Mention]:
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


def _quoted_requirements(line: str, path: str, number: int) -> list[_Mention]:
    """The requirements that stand in quotes on a line of TOML or Python."""
    parts = re.finditer(r"\"([^\"]*)\"|'([^']*)'|#.*", line)
    found = (_requirement(part[1] or part[2] or "", path, number) for part in parts)
    return [mention for mention in found if mention is not None]


def _poetry_requirement(line: str, path: str, number: int) -> list[_Mention]:
    """The mention in `deepspeed = "^0.14"` or `deepspeed = {version = "^0.14", optional = true}`."""
    value = line.split("=", 1)[1].strip()
    match = re.match(r"[\"']([^\"']*)[\"']", value) or re.search(r"version\s*=\s*[\"']([^\"']*)[\"']", value)
    spec = None if match is None else _pip_style(match[1])
    return [_Mention(spec, line.split("#")[0].strip(), path, number)]


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
    numbers = _numbers(bound[2])
    fixed = min(2, len(numbers)) if bound[1] == "~" else _caret_length(numbers)
    return f">={bound[2]},=={'.'.join(map(str, numbers[:fixed]))}.*"


def _caret_length(numbers: tuple[int, ...]) -> int:
    """How many numbers a caret keeps: up to the first that is not zero."""
    return next((index + 1 for index, number in enumerate(numbers) if number), len(numbers))


def _from_setup(folder: str) -> list[_Mention]:
    return [*_setup_py(os.path.join(folder, "setup.py")), *_setup_cfg(os.path.join(folder, "setup.cfg"))]


def _setup_py(path: str) -> Iterator[_Mention]:
    """Requirements in quotes; a bare "deepspeed" counts only alone on its line, as in a list."""
    for number, line in enumerate(_lines(path), start=1):
        alone = re.fullmatch(r"\s*[\"'](?i:deepspeed)[\"'],?\s*(#.*)?", line)
        for mention in _quoted_requirements(line, path, number):
            if mention.spec != "" or alone:
                yield mention


def _setup_cfg(path: str) -> Iterator[_Mention]:
    """Requirements in the `options` sections."""
    section = ""
    for number, line in enumerate(_lines(path), start=1):
        header = re.fullmatch(r"\[(.+)\]\s*", line)
        section = header[1] if header else section
        value = re.sub(r"^[\w.-]+\s*=(?!=)|\s#.*", "", line).strip()
        mention = _requirement(value, path, number) if section.startswith("options") else None
        if mention is not None:
            yield mention


def _from_conda(folder: str) -> list[_Mention]:
    """Mentions in environment*.yml and conda*.yaml, in conda's own list and in its list for pip."""
    names = [name for name in _names(folder) if re.fullmatch(r"(environment|conda).*\.ya?ml", name)]
    paths = (os.path.join(folder, name) for name in names)
    return [mention for path in paths for mention in _conda_requirements(path)]


def _conda_requirements(path: str) -> Iterator[_Mention]:
    for number, line in enumerate(_lines(path), start=1):
        item = re.match(r"\s*-\s+[\"']?(?:[\w-]+::)?([^\"'#]+)", line)
        mention = _requirement(_conda_style(item[1].strip()), path, number) if item else None
        if item and mention is not None:
            yield _Mention(mention.spec, item[1].strip(), path, number)


def _conda_style(text: str) -> str:
    """Conda's `deepspeed=0.14=build` as the requirement that pip knows."""
    single = re.fullmatch(r"(\w+)\s*=\s*(\d+(?:\.\d+)*)(\.\*)?(=[\w*]+)?", text)
    if single is None:
        return text
    full = single[2].count(".") >= _PARTS - 1 and not single[3]
    return f"{single[1]}=={single[2]}" + ("" if full else ".*")


_FINDERS: tuple[Callable[[str], list[_Mention]], ...] = (
    _from_lock_files,
    _from_requirements,
    _from_pyproject,
    _from_setup,
    _from_conda,
)

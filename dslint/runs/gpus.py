"""Finding a GPU by the name that people, clouds and drivers give it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from dslint.runs.gpu_table import CLOUD_MACHINES, GIB, GPUS, Gpu, nvidia_gpu

__all__ = ["Gpu", "NoGpuFound", "UnknownGpu", "find_gpu", "gpu_names", "local_gpus"]

_MAKERS = frozenset({"nvidia", "amd", "tesla", "geforce", "instinct", "gpu", "generation", "edition"})
_FORM_FACTORS = ("sxm", "pcie", "pci", "hbm", "nvlink", "oam")
_MEMORY_UNITS = ("gib", "gb", "g")
_NEAR = 0.12  # a card reports up to 12 % less memory than its name says
_LISTING = "`--gpu list` shows every name"
_QUERY = ("nvidia-smi", "--query-gpu=name,memory.total,compute_cap", "--format=csv,noheader,nounits")
_QUERY_SECONDS = 10
_ARCHITECTURES = {
    3: "Kepler",
    5: "Maxwell",
    6: "Pascal",
    7: "Volta",
    8: "Ampere",
    9: "Hopper",
    10: "Blackwell",
    11: "Blackwell",
    12: "Blackwell",
}


class UnknownGpu(ValueError):  # noqa: N818 - the name says it
    """A name that no known GPU has; the text suggests others."""


class NoGpuFound(RuntimeError):  # noqa: N818 - the name says it
    """This machine has no GPU that `nvidia-smi` can tell about; the text says why."""


def gpu_names() -> tuple[str, ...]:
    """The names of all known GPUs, newest and largest first within each kind."""
    return tuple(gpu.name for gpu in GPUS)


def find_gpu(text: str) -> Gpu:
    """The GPU that somebody means: "a100-80g", "NVIDIA A100-SXM4-80GB", "2080ti", "p4d.24xlarge".

    Raises:
        UnknownGpu: no known GPU has such a name, or none has it with that much memory.
    """
    words = _words(text)
    if not words:
        raise UnknownGpu(f"no GPU is named: write a name like h100 or a100-80g ({_LISTING})")
    gpu = _in_cloud(text)
    if gpu is not None:
        return gpu
    family, memory = _family(words)
    if not family:
        raise UnknownGpu(_unknown_message(text, words))
    if memory is None:
        return family[0]
    member = _with_memory(family, memory * GIB)
    if member is None:
        names = ", ".join(f"{gpu.name} ({gpu.memory // GIB} GB)" for gpu in family)
        raise UnknownGpu(f"no {_shown(text)} with {memory} GB is known, only {names}")
    return member


def local_gpus() -> tuple[Gpu, ...]:
    """The GPUs of this machine, as `nvidia-smi` lists them.

    Raises:
        NoGpuFound: `nvidia-smi` is missing, fails, or lists nothing.
    """
    gpus = tuple(_reported_gpu(line) for line in _ask_driver().splitlines() if line.strip())
    if not gpus:
        raise NoGpuFound("nvidia-smi lists no GPU on this machine: name the type with --gpu")
    return gpus


def _words(text: str) -> list[str]:
    """The parts of a name in lower case, less the makers' names: "NVIDIA A100-SXM4" is a100, sxm4."""
    spaced = "".join(char if char.isalnum() else " " for char in text.lower())
    return [word for word in spaced.split() if word not in _MAKERS]


@lru_cache(maxsize=1)
def _index() -> Mapping[str, tuple[Gpu, ...]]:
    """The GPUs that share a name or alias, by that name without gaps; one that is called so comes first."""
    index: dict[str, dict[Gpu, None]] = {"".join(_words(gpu.name)): {gpu: None} for gpu in GPUS}
    for gpu in GPUS:
        for alias in gpu.aliases:
            index.setdefault("".join(_words(alias)), {})[gpu] = None
    return {name: tuple(gpus) for name, gpus in index.items()}


def _family(words: Sequence[str]) -> tuple[tuple[Gpu, ...], int | None]:
    """The GPUs of that name, and the memory in GB that the name asks for.

    A full name wins ("h100 pcie"); then the memory is taken for an addition, then the form factor too.
    """
    index = _index()
    whole = _lookup(index, words)
    if whole:
        return whole, None
    rest, memory = _split_memory(words)
    family = _lookup(index, rest) or _lookup(index, [word for word in rest if not _is_form_factor(word)])
    return family, memory


def _lookup(index: Mapping[str, tuple[Gpu, ...]], words: Sequence[str]) -> tuple[Gpu, ...]:
    """The GPUs whose name these words are, also where a maker's name is glued on: "teslav100"."""
    name = "".join(words)
    for maker in _MAKERS:
        name = name.removeprefix(maker)
    return index.get(name, ())


def _split_memory(words: Sequence[str]) -> tuple[list[str], int | None]:
    """The words without "80gb" or "80", "gb"; and that number."""
    for position, word in enumerate(words):
        if position == 0:
            continue  # the first word is the name
        if word in _MEMORY_UNITS and words[position - 1].isdecimal():
            return [*words[: position - 1], *words[position + 1 :]], int(words[position - 1][:9])
        number = _gigabytes(word)
        if number is not None:
            return [*words[:position], *words[position + 1 :]], number
    return list(words), None


def _gigabytes(word: str) -> int | None:
    """80 for "80gb"; None for a word that is no amount of memory."""
    for unit in _MEMORY_UNITS:
        number = word.removesuffix(unit)
        if number != word and number.isdecimal():
            return int(number[:9])
    return None


def _is_form_factor(word: str) -> bool:
    """Whether a word tells how the chip is mounted: "sxm4", "hbm3e"."""
    return any(word.startswith(form) for form in _FORM_FACTORS)


def _with_memory(family: Iterable[Gpu], memory: int) -> Gpu | None:
    """The member nearest to this memory; None where all are too far off."""
    nearest = min(family, key=lambda gpu: abs(gpu.memory - memory))
    return nearest if abs(nearest.memory - memory) <= _NEAR * nearest.memory else None


def _in_cloud(text: str) -> Gpu | None:
    """The GPU of a rented machine type; None for a text that names no such type."""
    from fnmatch import fnmatchcase

    machine_type = text.strip().lower().removeprefix("ml.").removeprefix("standard_")
    for machine in CLOUD_MACHINES:
        if fnmatchcase(machine_type, machine.pattern):
            return next(gpu for gpu in GPUS if gpu.name == machine.gpu)
    return None


def _unknown_message(text: str, words: Sequence[str]) -> str:
    """What to tell somebody whose name for a GPU is not known."""
    names = _suggestions("".join(words))
    question = f"did you mean {', '.join(names)}? " if names else ""
    return f"unknown GPU {_shown(text)}: {question}({_LISTING})"


def _suggestions(name: str) -> list[str]:
    """Up to four known names that look like this one or contain it."""
    from difflib import get_close_matches

    index = _index()
    holding = [known for known in index if len(name) > 2 and name in known]
    close = get_close_matches(name[:40], index, n=4, cutoff=0.6)
    found = (gpu.name for known in (*holding, *close) for gpu in index[known])
    return list(dict.fromkeys(found))[:4]


def _shown(text: str) -> str:
    """A text as a message can quote it."""
    return repr(text if len(text) <= 40 else text[:40] + "…")


def _ask_driver() -> str:
    """What `nvidia-smi` prints: a line for each GPU."""
    import subprocess

    try:
        answer = subprocess.run(
            _QUERY, capture_output=True, text=True, errors="replace", timeout=_QUERY_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        reason = f"nvidia-smi gave no answer in {_QUERY_SECONDS} s"
        raise NoGpuFound(f"{reason}: name the GPU with --gpu") from None
    except OSError:
        raise NoGpuFound("nvidia-smi can't be run on this machine: name the GPU with --gpu") from None
    if answer.returncode != 0:
        lines = (answer.stderr.strip() or answer.stdout.strip()).splitlines()
        reason = lines[0] if lines else f"exit status {answer.returncode}"
        raise NoGpuFound(f"nvidia-smi failed ({reason}): name the GPU with --gpu")
    return answer.stdout


def _reported_gpu(line: str) -> Gpu:
    """The GPU of one line of the driver's list: "NVIDIA L4, 23034, 8.9"."""
    name, mebibytes, capability = _split_report(line)
    memory = int(mebibytes) * 1024**2 if mebibytes.isdecimal() else None
    family, _ = _family(_words(name))
    known = _known_member(name, family, memory)
    if known is not None:
        return known
    major, _, minor = capability.partition(".")
    if memory is None or not (major.isdecimal() and minor.isdecimal()):
        raise NoGpuFound(f"nvidia-smi reports an unknown GPU ({_shown(line.strip())}): name it with --gpu")
    return _unlisted_gpu(name, (int(major), int(minor)), memory)


def _split_report(line: str) -> tuple[str, str, str]:
    """Name, memory and compute capability of one line of the driver's list; empty where it has none."""
    fields = [field.strip() for field in line.rsplit(",", 2)]
    name, memory, capability = [*fields, "", ""][:3]
    return name, memory, capability


def _known_member(name: str, family: tuple[Gpu, ...], memory: int | None) -> Gpu | None:
    """The table's GPU of that name, chosen by the memory where the driver tells it."""
    if not family:
        return None
    if memory is not None:
        return _with_memory(family, memory)
    try:
        return find_gpu(name)
    except UnknownGpu:
        return None


def _unlisted_gpu(name: str, capability: tuple[int, int], memory: int) -> Gpu:
    """A GPU that the table lacks, from what its driver says about it."""
    exact = {(7, 5): "Turing", (8, 9): "Ada"}.get(capability)
    architecture = exact or _ARCHITECTURES.get(capability[0], "unknown")
    return nvidia_gpu(name.removeprefix("NVIDIA "), architecture, capability, memory)

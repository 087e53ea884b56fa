"""Reads the stacks that `faulthandler` writes; shows them without dslint's frames and with short paths."""

from __future__ import annotations

import contextlib
import linecache
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_HEADER = re.compile(r"^(?:Stack|Current thread .*) \(most recent call first\):$", re.MULTILINE)
_FRAME = re.compile(r'^\s*File "(.*)", line (\d{1,9}) in (.*)$', re.MULTILINE)
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")

_DSLINT = re.compile(r"/dslint/smoke/")
_INSTALLED = re.compile(r"^.*/(?:site|dist)-packages/")
_STANDARD = re.compile(r"^.*/lib(?:64)?/python3\.\d+t?/")
_CHECKOUT = re.compile(
    r"^.*/(?=deepspeed/(?:accelerator|checkpoint|comm|compile|inference|module_inject|moe|ops|pipe|runtime|sequence"
    r"|utils|__init__\.py))|^.*/src/(?=(?:accelerate|datasets|peft|transformers|trl)/)"
    r"|^.*/(?=torch/(?:_dynamo|autograd|distributed|nn|optim|utils)/)"
)
"""Libraries that are imported from a checkout of their own, as an editable install does it."""

_WRAPPERS = frozenset(
    {
        "_call_impl",
        "_fn",
        "_wrapped_call_impl",
        "decorate_context",
        "inner",
        "log_wrapper",
        "wrapped_fn",
        "wrapper",
    }
)
"""Functions of libraries that only call another one."""

_LARGEST_SOURCE = 4 * 2**20
_LONGEST_CODE = 80
_SHOWN_AT_ENDS = 6
"""Frames of libraries that are shown at either end of a long stack."""


@dataclass(frozen=True)
class Frame:
    """One call that had not ended.

    Attributes:
        path: the file, as Python names it.
        line: the line, from 1.
        name: the function; `<module>` outside of any.
    """

    path: str
    line: int
    name: str

    @property
    def is_dslint(self) -> bool:
        """Whether it is dslint's, or what starts a module that Python runs by its name."""
        return self.path.startswith("<frozen ") or _DSLINT.search(self.path) is not None

    @property
    def is_own(self) -> bool:
        """Whether it is the user's own: neither dslint's, nor of a library that is installed."""
        return not (self.is_dslint or self.path.startswith("<") or self._library_path is not None)

    @property
    def is_wrapper(self) -> bool:
        """Whether it only calls another function."""
        return not self.is_own and (self.name in _WRAPPERS or self.short_path in ("contextlib.py", "functools.py"))

    @cached_property
    def _library_path(self) -> str | None:
        """The path as the library itself sees it; None if it is none's."""
        for kind in (_INSTALLED, _STANDARD, _CHECKOUT):
            if found := kind.match(self.path):
                return self.path[found.end() :]
        return None

    @cached_property
    def short_path(self) -> str:
        """The file as people name it: within its package, or from the working folder on."""
        path = self.path if self._library_path is None else self._library_path
        with contextlib.suppress(OSError, ValueError):
            path = str(Path(path).relative_to(Path.cwd())) if self._library_path is None else path
        return path.encode("utf-8", "backslashreplace").decode()

    @property
    def code(self) -> str:
        """The text of the line; empty if it can't be read."""
        with contextlib.suppress(OSError, ValueError, SyntaxError):
            file = Path(self.path)
            if file.is_absolute() and file.is_file() and file.stat().st_size < _LARGEST_SOURCE:
                text = linecache.getline(self.path, self.line).strip()
                return text if len(text) <= _LONGEST_CODE else f"{text[:_LONGEST_CODE]}…"
        return ""

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.short_path}:{self.line}"


def frames_of(text: str) -> tuple[Frame, ...]:
    """The frames of the last stack in a text, innermost first; none if it has no stack."""
    headers = list(_HEADER.finditer(text))
    last = text[headers[-1].end() :] if headers else text
    return tuple(Frame(_unescaped(path), int(line), name) for path, line, name in _FRAME.findall(last))


def _unescaped(path: str) -> str:
    """A path whose characters beyond ASCII faulthandler has written as escapes."""
    return _ESCAPE.sub(_character, path)


def _character(escape: re.Match[str]) -> str:
    number = int(escape[1] or escape[2] or escape[3], 16)
    is_character = number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF
    return chr(number) if is_character else escape[0]


def shown_lines(text: str) -> list[str]:
    """A stack for people, innermost first: a frame a line, without dslint's and without mere wrappers."""
    frames = [frame for frame in frames_of(text) if not (frame.is_dslint or frame.is_wrapper)]
    return [line for block in _blocks(frames) for line in _shown_block(block)]


def _blocks(frames: Sequence[Frame]) -> Iterator[list[Frame]]:
    """Neighbours that all are the user's, or all libraries'."""
    block: list[Frame] = []
    for frame in frames:
        if block and frame.is_own != block[-1].is_own:
            yield block
            block = []
        block.append(frame)
    if block:
        yield block


def _shown_block(block: Sequence[Frame]) -> Iterator[str]:
    left_out = len(block) - 2 * _SHOWN_AT_ENDS
    for number, frame in enumerate(block):
        if left_out > 1 and number == _SHOWN_AT_ENDS:
            yield f"… {left_out} more"
        if left_out <= 1 or number < _SHOWN_AT_ENDS or number >= _SHOWN_AT_ENDS + left_out:
            code = frame.code if frame.is_own else ""
            yield f"{frame.place} in {frame.name}" + (f": {code}" if code else "")
